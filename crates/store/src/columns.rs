//! What a table knows about a task beside its document: the columns that are searched and sorted by.

use rehearsal_core::{AgentName, SessionName, Standing, Task, Wait};
use serde::Serialize;

/// The columns of a task's row. All of them follow from the task.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct TaskColumns {
    pub(crate) id: String,
    pub(crate) session: Option<String>,
    pub(crate) flow_version: String,
    pub(crate) priority: i64,
    pub(crate) state: String,
    pub(crate) status: String,
    pub(crate) standing: String,
    pub(crate) open: i64,
    pub(crate) done: i64,
    pub(crate) claimable_at: Option<i64>,
    pub(crate) lane: String,
    pub(crate) touches: Option<String>,
    pub(crate) created_at: i64,
    pub(crate) updated_at: i64,
    pub(crate) fence: i64,
}

impl TaskColumns {
    pub(crate) fn of(task: &Task) -> Self {
        Self {
            id: task.id.to_string(),
            session: task.session.as_ref().map(ToString::to_string),
            flow_version: task.flow_version.clone(),
            priority: task.priority.rank(),
            state: task.state.to_string(),
            status: task.status().to_owned(),
            standing: standing(task).to_owned(),
            open: i64::from(!task.is_ended()),
            done: i64::from(task.is_done()),
            claimable_at: claimable_at(task),
            lane: lane(task.next_agent(), task.session.as_ref()),
            touches: touches(task),
            created_at: task.created_at.0,
            updated_at: task.updated_at.0,
            fence: task.fence.0,
        }
    }
}

/// What is held back together: `AGENT/SESSION`. No name has a slash.
pub(crate) fn lane(agent: Option<&AgentName>, session: Option<&SessionName>) -> String {
    format!("{}/{}", agent.map_or("", AgentName::as_str), session.map_or("", SessionName::as_str))
}

/// The patterns as a list in JSON; none if there are none, as is usual.
fn touches(task: &Task) -> Option<String> {
    let is_some = !task.touches.is_empty();
    is_some.then(|| serde_json::Value::from(task.touches.as_slice()).to_string())
}

fn standing(task: &Task) -> &'static str {
    match task.standing {
        Standing::Ready => "ready",
        Standing::Claimed(_) => "claimed",
        Standing::Waiting(_) => "waiting",
        Standing::Ended { .. } => "ended",
    }
}

/// From when a worker may take it. A ready task may be taken at any time, also by a worker whose clock is behind.
fn claimable_at(task: &Task) -> Option<i64> {
    match &task.standing {
        Standing::Ready => Some(0),
        Standing::Waiting(Wait { until, .. }) => until.map(|until| until.0),
        Standing::Claimed(_) | Standing::Ended { .. } => None,
    }
}

//! What happened to a task, and who decided it.

use std::fmt;

use rehearsal_core::transition::TaskInput;
use rehearsal_core::{Actor, Event, EventKind, Person, TaskId, Timestamp};
use rehearsal_store::{EventQuery, Store, StoreError};
use serde::Serialize;

use crate::project::{Project, ProjectError};

/// `task history --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TaskHistory {
    /// The task's id.
    pub task: TaskId,
    /// Its title.
    pub title: String,
    /// Its events, oldest first.
    pub events: Vec<Event>,
    /// How many older events were left out.
    pub left_out: u64,
}

/// What a person decided about a task.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Decision {
    /// What.
    pub what: Decided,
    /// Who.
    pub by: Person,
    /// When.
    pub at: Timestamp,
}

/// What a person can decide about a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Decided {
    Approved,
    Rejected,
    Answered,
    Unblocked,
    Blocked,
    Finished,
    Cancelled,
    Retried,
    Edited,
}

impl fmt::Display for Decided {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Approved => "approved",
            Self::Rejected => "rejected",
            Self::Answered => "answered",
            Self::Unblocked => "unblocked",
            Self::Blocked => "blocked",
            Self::Finished => "finished",
            Self::Cancelled => "cancelled",
            Self::Retried => "retried",
            Self::Edited => "edited",
        })
    }
}

impl Decided {
    fn of(input: &TaskInput) -> Option<Self> {
        Some(match input {
            TaskInput::Decide { approve: true, .. } => Self::Approved,
            TaskInput::Decide { approve: false, .. } => Self::Rejected,
            TaskInput::Answer { .. } => Self::Answered,
            TaskInput::Unblock => Self::Unblocked,
            TaskInput::Block { .. } => Self::Blocked,
            TaskInput::Finish => Self::Finished,
            TaskInput::Cancel => Self::Cancelled,
            TaskInput::Retry => Self::Retried,
            TaskInput::Edit { .. } => Self::Edited,
            _ => return None,
        })
    }
}

/// The last events of a task, which is named by a unique prefix of its id.
pub async fn history(project: &Project, task: &str, limit: u32) -> Result<TaskHistory, ProjectError> {
    let store = project.store().await?;
    let task = store.find_task(task).await?;
    let mut events = events_of(&*store, &task.id).await?;
    let left_out = events.len().saturating_sub(limit as usize);
    events.drain(..left_out);
    Ok(TaskHistory { task: task.id, title: task.title, events, left_out: left_out as u64 })
}

/// The last decision of a person about a task.
pub(crate) async fn last_decision(store: &dyn Store, task: &TaskId) -> Result<Option<Decision>, StoreError> {
    let decision = |event: Event| match (event.kind, event.actor) {
        (EventKind::TaskChanged { input, .. }, Actor::Person(by)) => {
            Decided::of(&input).map(|what| Decision { what, by, at: event.at })
        }
        _ => None,
    };
    Ok(events_of(store, task).await?.into_iter().rev().find_map(decision))
}

async fn events_of(store: &dyn Store, task: &TaskId) -> Result<Vec<Event>, StoreError> {
    store.events(&EventQuery { task: Some(task.clone()), ..EventQuery::default() }).await
}

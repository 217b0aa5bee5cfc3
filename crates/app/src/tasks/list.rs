//! Tasks as they are.

use std::collections::BTreeSet;
use std::sync::Arc;

use rehearsal_core::flow::{Flow, SHIPPED};
use rehearsal_core::{Run, SessionName, Standing, StateName, Task, TaskId, Timestamp, nearest};
use rehearsal_engine::is_in_checkout;
use rehearsal_store::{RunQuery, Scope, StatusFilter, Store, TaskQuery};
use serde::Serialize;

use super::TaskError;
use super::history::{Decision, last_decision};
use crate::project::{Project, ProjectError};

/// Which tasks to list.
#[derive(Debug)]
pub struct TaskFilter {
    /// Only of this session.
    pub session: Option<SessionName>,
    /// Only with one of these statuses; none: see `all`.
    pub statuses: Vec<String>,
    /// Only in this state of their flow.
    pub state: Option<StateName>,
    /// Only with this label.
    pub label: Option<String>,
    /// Only with this text in title or description.
    pub text: Option<String>,
    /// Also those that are over.
    pub all: bool,
    /// At most this many.
    pub limit: u32,
    /// Those that follow this task.
    pub after: Option<TaskId>,
}

/// `task list --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TaskList {
    /// Most urgent first.
    pub tasks: Vec<Task>,
    /// Whether there are more; ask for those after the last id with `--from`.
    pub more: bool,
}

/// `task show --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TaskDetails {
    /// The task.
    pub task: Task,
    /// The word that listings show.
    pub status: String,
    /// Until when its worker holds it, unless that says again that it is alive.
    pub lease_until: Option<Timestamp>,
    /// Its runs, newest first.
    pub runs: Vec<Run>,
    /// What a person decided last.
    pub decision: Option<Decision>,
    /// The flow, as it was when the task was added.
    #[serde(skip)]
    pub flow: Arc<Flow>,
    /// The flow as it is now.
    #[serde(skip)]
    pub flow_now: FlowNow,
}

/// What became of the flow that an open task began with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FlowNow {
    /// It is the same, or the task is over.
    Same,
    /// It has this version now.
    Changed {
        /// The version.
        version: String,
    },
    /// It cannot be read any more.
    Unreadable,
}

/// The runs that are shown with a task.
const RUNS: u32 = 20;

/// Lists tasks, most urgent first.
pub async fn list(project: &Project, filter: TaskFilter) -> Result<TaskList, TaskError> {
    let store = project.store().await?;
    if let Some(session) = &filter.session {
        store.session(session).await?;
    }
    let status = match (filter.statuses.is_empty(), filter.all) {
        (false, _) => StatusFilter::Words(filter.statuses.clone()),
        (true, true) => StatusFilter::All,
        (true, false) => StatusFilter::Open,
    };
    let query = TaskQuery {
        session: filter.session,
        status,
        state: filter.state.clone(),
        label: filter.label,
        text: filter.text,
        after: filter.after,
        limit: Some(filter.limit.saturating_add(1)),
    };
    let mut tasks = store.tasks(&query).await?;
    let more = tasks.len() > filter.limit as usize;
    tasks.truncate(filter.limit as usize);
    if tasks.is_empty() {
        check_words(&filter.statuses, filter.state.as_ref(), project)?;
    }
    Ok(TaskList { tasks, more })
}

/// Nothing was found: is the word that was asked for one that exists? Flows that tasks began with may have had other states, so
/// what finds something is never refused.
fn check_words(statuses: &[String], state: Option<&StateName>, project: &Project) -> Result<(), TaskError> {
    let shipped = SHIPPED.iter().map(|(name, _)| (*name).to_owned());
    let flows: Vec<Flow> =
        shipped.chain(project.own_flows()?).filter_map(|name| project.flow(&name).ok()).collect();
    let states: BTreeSet<&str> =
        flows.iter().flat_map(|flow| flow.states.keys()).map(StateName::as_str).collect();
    let words: Vec<&str> = Task::STATUSES.into_iter().chain(["ready", "claimed"]).collect();
    let known = |word: &str| states.contains(word);
    let status = statuses.iter().find(|word| !known(word) && !words.contains(&word.as_str()));
    let (what, word) = match (status, state) {
        (Some(word), _) => ("status", word.as_str()),
        (None, Some(state)) if !known(state.as_str()) => ("state", state.as_str()),
        (None, _) => return Ok(()),
    };
    let names: BTreeSet<&str> = match what {
        "status" => words.into_iter().chain(states).collect(),
        _ => states,
    };
    Err(TaskError::UnknownWord {
        what,
        word: word.to_owned(),
        near: nearest(word, names.iter().copied()).map(ToOwned::to_owned),
        known: names.into_iter().map(ToOwned::to_owned).collect(),
    })
}

/// Shows a task, which is named by a unique prefix of its id, and its runs.
pub async fn show(project: &Project, task: &str) -> Result<TaskDetails, ProjectError> {
    let store = project.store().await?;
    let task = store.find_task(task).await?;
    let query = RunQuery { scope: Scope::Task(task.id.clone()), limit: Some(RUNS) };
    Ok(TaskDetails {
        status: task.status().to_owned(),
        lease_until: lease_of(&task, &*store, project).await?,
        runs: store.runs(&query).await?,
        decision: last_decision(&*store, &task.id).await?,
        flow: store.flow(&task.flow_version).await?,
        flow_now: flow_now(&task, project),
        task,
    })
}

async fn lease_of(
    task: &Task,
    store: &dyn Store,
    project: &Project,
) -> Result<Option<Timestamp>, ProjectError> {
    let Standing::Claimed(claim) = &task.standing else { return Ok(None) };
    if is_in_checkout(claim, &project.state_dir()?) {
        return Ok(None);
    }
    let leases = store.leases().await?;
    Ok(leases.into_iter().find(|(leased, _)| leased.id == task.id).map(|(_, until)| until))
}

fn flow_now(task: &Task, project: &Project) -> FlowNow {
    if task.is_ended() {
        return FlowNow::Same;
    }
    match project.flow(task.flow.as_str()) {
        Ok(now) if now.version == task.flow_version => FlowNow::Same,
        Ok(now) => FlowNow::Changed { version: now.version },
        Err(_) => FlowNow::Unreadable,
    }
}

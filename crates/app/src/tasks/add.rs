//! New tasks.

use std::sync::Arc;

use rehearsal_core::flow::Flow;
use rehearsal_core::{AgentName, Budget, FlowName, NewTask, Priority, SessionName, TaskId};
use rehearsal_engine::random_bits;
use rehearsal_store::{Change, Store};

use super::{TaskDocument, TaskError, only_task};
use crate::ids::commit_drawn;
use crate::project::{Project, ProjectError};
use crate::sessions::the_session;

/// A task as a person asks for it.
#[derive(Debug, Default)]
pub struct TaskRequest {
    /// What to do, in one line.
    pub title: String,
    /// The whole description.
    pub body: String,
    /// Can be left out if there is only one session, and for flows that no loop takes tasks through.
    pub session: Option<SessionName>,
    /// Otherwise the one that the settings name.
    pub flow: Option<FlowName>,
    /// Who does it, instead of the agent that its flow begins with.
    pub agent: Option<AgentName>,
    /// Patterns of files that it will change.
    pub touches: Vec<String>,
    /// What must hold when it is done.
    pub criteria: Vec<String>,
    /// How urgent it is.
    pub priority: Priority,
    /// Labels.
    pub labels: Vec<String>,
    /// Unique prefixes of the ids of tasks that must be done before.
    pub depends_on: Vec<String>,
    /// What all its runs together may cost, in dollars.
    pub max_cost: Option<f64>,
}

/// Adds a task.
pub async fn add(project: &Project, request: TaskRequest) -> Result<TaskDocument, TaskError> {
    project.caller.may_change()?;
    let store = project.store().await?;
    let flow = Arc::new(project.flow_for_tasks(request.flow.as_ref())?);
    if let Some(agent) = &request.agent {
        project.check_agent(agent)?;
    }
    let new = NewTask {
        session: session_for(&*store, request.session, &flow).await?,
        title: request.title,
        body: request.body,
        criteria: request.criteria,
        priority: request.priority,
        labels: request.labels,
        depends_on: whole_ids(&*store, &request.depends_on).await?,
        touches: request.touches,
        author: request.agent,
        budget: Budget { usd: request.max_cost, ..Budget::default() },
    };
    let draw = async || {
        let id = TaskId::from_random(random_bits());
        let add = Change::AddTask { task: Box::new(new.clone()), id, flow: Arc::clone(&flow) };
        Ok::<_, ProjectError>((vec![add], ()))
    };
    let (committed, ()) = commit_drawn(project, draw).await?;
    Ok(TaskDocument::new(only_task(committed)?))
}

/// The session of new tasks. Only a loop needs one: a worker takes tasks with and without.
pub(super) async fn session_for(
    store: &dyn Store,
    named: Option<SessionName>,
    flow: &Flow,
) -> Result<Option<SessionName>, TaskError> {
    if named.is_none() && flow.fits_a_loop().is_err() {
        let mut sessions = store.sessions().await?;
        let only = if sessions.len() == 1 { sessions.pop() } else { None };
        return Ok(only.map(|only| only.session.name));
    }
    Ok(Some(the_session(store, named).await?))
}

/// Ids from unique prefixes.
pub(super) async fn whole_ids(store: &dyn Store, prefixes: &[String]) -> Result<Vec<TaskId>, TaskError> {
    let mut ids = Vec::new();
    for prefix in prefixes {
        ids.push(store.find_task(prefix).await?.id);
    }
    Ok(ids)
}

//! What is going on.

use camino::Utf8Path;
use rehearsal_core::{Run, SessionName, Standing, Task, Timestamp};
use rehearsal_engine::{LeftWork, LeftWorkError, LoopLock, has_died, is_in_checkout, left_work};
use rehearsal_store::{Counts, Scope, Store};
use serde::Serialize;

use crate::lanes::{HeldLane, held};
use crate::project::{Project, ProjectError};

/// `status --json`.
#[derive(Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Status {
    /// The process of the loop that runs here now.
    pub loop_process: Option<String>,
    /// By name.
    pub sessions: Vec<SessionStatus>,
    /// Tasks of no session.
    pub without_session: Option<SessionStatus>,
    /// Tasks in work under a lease, in this process or in others.
    pub in_work: Vec<InWork>,
    /// Runs without an end that are under no lease: a loop's.
    pub running: Vec<RunningView>,
    /// Uncommitted work of runs in this checkout, also of those that were killed.
    pub left: Vec<LeftWorkView>,
    /// Lanes that stand still.
    pub held: Vec<HeldLane>,
    /// What all runs cost, where they told it.
    pub cost_usd: Option<f64>,
}

/// A session in numbers.
#[derive(Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionStatus {
    /// Its name; `-` for the tasks of none.
    pub name: String,
    /// Tasks that are not over.
    pub open: u64,
    /// Tasks that are done.
    pub done: u64,
    /// All tasks.
    pub total: u64,
    /// By the word that listings show.
    pub by_status: std::collections::BTreeMap<String, u64>,
}

/// A task in work.
#[derive(Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InWork {
    /// The task's id.
    pub task: String,
    /// Its title.
    pub title: String,
    /// The state of its flow.
    pub state: String,
    /// Who works on it; none: its steps are done.
    pub agent: Option<String>,
    /// The run's id.
    pub run: String,
    /// Who has it.
    pub worker: String,
    /// Since when.
    pub since: Timestamp,
    /// Until when it is the worker's, unless that says again that it is alive.
    pub lease_until: Timestamp,
    /// Whether the worker has died. The next one on this machine continues its work.
    pub worker_died: bool,
}

/// A run under no lease.
#[derive(Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunningView {
    /// Its id.
    pub run: String,
    /// The task's id.
    pub task: String,
    /// The task's title.
    pub title: String,
    /// Who works on it.
    pub agent: String,
    /// Since when.
    pub started_at: Timestamp,
    /// The session of the task.
    pub session: Option<SessionName>,
    /// Whether the worker has died. The next one on this machine ends the run.
    pub worker_died: bool,
}

/// Uncommitted work of a run.
#[derive(Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LeftWorkView {
    /// The task's id.
    pub task: String,
    /// The run's id.
    pub run: String,
    /// The files.
    pub files: Vec<String>,
}

/// What is in work, what stands still, and how many tasks there are.
pub async fn status(project: &Project) -> Result<Status, ProjectError> {
    let store = project.store().await?;
    let sessions = store.sessions().await?;
    let sessions: Vec<SessionStatus> = sessions
        .into_iter()
        .map(|summary| SessionStatus::of(summary.session.name.to_string(), summary.counts))
        .collect();
    let rest = rest(store.count_tasks(None).await?, &sessions);
    let state_dir = project.state_dir()?;
    let in_work: Vec<InWork> =
        store.leases().await?.iter().filter_map(|leased| in_work(leased, &state_dir)).collect();
    let mut running = Vec::new();
    let is_leased = |run: &Run| in_work.iter().any(|task| task.run == run.start.id.as_str());
    for run in store.unfinished_runs().await?.into_iter().filter(|run| !is_leased(run)) {
        let title = store.task(&run.start.task).await?.map_or_else(String::new, |task| task.title);
        running.push(view(&run, title, &state_dir));
    }
    let cost = store.cost_of(&Scope::All).await?;
    Ok(Status {
        loop_process: LoopLock::holder(&state_dir),
        sessions,
        without_session: (rest.total > 0).then(|| SessionStatus::of("-".to_owned(), rest)),
        in_work,
        running,
        left: left(project, &*store, &state_dir).await?,
        held: held(project).await?,
        cost_usd: (cost.runs > cost.without_usd).then_some(cost.usd),
    })
}

impl SessionStatus {
    fn of(name: String, counts: Counts) -> Self {
        let Counts { by_status, open, done, total } = counts;
        Self { name, open, done, total, by_status }
    }
}

/// What is left of all tasks without those of the sessions.
fn rest(mut all: Counts, sessions: &[SessionStatus]) -> Counts {
    for session in sessions {
        all.open = all.open.saturating_sub(session.open);
        all.done = all.done.saturating_sub(session.done);
        all.total = all.total.saturating_sub(session.total);
        for (status, count) in &session.by_status {
            if let Some(left) = all.by_status.get_mut(status) {
                *left = left.saturating_sub(*count);
            }
        }
    }
    all.by_status.retain(|_, count| *count > 0);
    all
}

/// A task of a worker. That of a loop in this checkout is shown with its run.
fn in_work((task, lease_until): &(Task, Timestamp), state_dir: &Utf8Path) -> Option<InWork> {
    let Standing::Claimed(claim) = &task.standing else { return None };
    if is_in_checkout(claim, state_dir) {
        return None;
    }
    Some(InWork {
        task: task.id.to_string(),
        title: task.title.clone(),
        state: task.state.to_string(),
        agent: task.next_agent().map(ToString::to_string),
        run: claim.run.to_string(),
        worker: claim.worker.to_string(),
        since: claim.since,
        lease_until: *lease_until,
        worker_died: has_died(&claim.worker, state_dir),
    })
}

/// Where git has no answer, nothing is known to be left.
async fn left(
    project: &Project,
    store: &dyn Store,
    state_dir: &Utf8Path,
) -> Result<Vec<LeftWorkView>, ProjectError> {
    let found = match left_work(store, state_dir, &project.root).await {
        Ok(found) => found,
        Err(LeftWorkError::Git(_)) => Vec::new(),
        Err(LeftWorkError::Store(error)) => return Err(error.into()),
    };
    let view =
        |LeftWork { task, run, files }| LeftWorkView { task: task.to_string(), run: run.to_string(), files };
    Ok(found.into_iter().map(view).collect())
}

fn view(run: &Run, title: String, state_dir: &Utf8Path) -> RunningView {
    RunningView {
        run: run.start.id.to_string(),
        task: run.start.task.to_string(),
        title,
        agent: run.start.agent.to_string(),
        started_at: run.start.started_at,
        session: run.start.session.clone(),
        worker_died: has_died(&run.start.worker, state_dir),
    }
}

//! The processes that work on tasks.

use std::collections::BTreeMap;

use rehearsal_core::{RunId, Standing, StateName, TaskId, Timestamp, WorkerId};
use rehearsal_engine::workers_here;
use serde::Serialize;

use crate::project::{Project, ProjectError};

/// `workers --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkerList {
    /// By id.
    pub workers: Vec<WorkerView>,
}

/// A worker, and what it does now.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkerView {
    /// Its id.
    pub id: WorkerId,
    /// Where it runs, and whether it is alive.
    pub presence: WorkerPresence,
    /// When it last renewed its leases, by the lease that is set now; none: it has no task.
    pub last_heartbeat: Option<Timestamp>,
    /// The tasks that it has.
    pub tasks: Vec<WorkerTask>,
}

/// What is known of a worker's process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WorkerPresence {
    /// `work`, alive on this machine.
    Work,
    /// `run`, alive on this machine.
    Run,
    /// It died on this machine; the next worker continues its tasks.
    Dead,
    /// On another machine: it is alive for as long as its leases hold.
    Elsewhere,
}

/// A task that a worker has.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[expect(missing_docs, reason = "the names say it")]
pub struct WorkerTask {
    pub id: TaskId,
    pub title: String,
    pub state: StateName,
    pub run: RunId,
    pub since: Timestamp,
    pub lease_until: Timestamp,
}

/// Lists the workers that are alive, or that died with a task.
pub async fn workers(project: &Project) -> Result<WorkerList, ProjectError> {
    let store = project.store().await?;
    let lease = project.settings()?.work.lease.0;
    let mut workers: BTreeMap<WorkerId, WorkerView> = BTreeMap::new();
    for worker in workers_here(&project.state_dir()?) {
        let presence = match (worker.has_died, worker.is_loop) {
            (true, _) => WorkerPresence::Dead,
            (false, true) => WorkerPresence::Run,
            (false, false) => WorkerPresence::Work,
        };
        workers.insert(worker.id.clone(), WorkerView::new(worker.id, presence));
    }
    for (task, lease_until) in store.leases().await? {
        let Standing::Claimed(claim) = task.standing else { continue };
        let id = claim.worker.clone();
        let new = || WorkerView::new(claim.worker, WorkerPresence::Elsewhere);
        let worker = workers.entry(id).or_insert_with(new);
        let lease_ms = i64::try_from(lease.as_millis()).unwrap_or(i64::MAX);
        let heartbeat = Timestamp(lease_until.0.saturating_sub(lease_ms));
        worker.last_heartbeat = worker.last_heartbeat.max(Some(heartbeat));
        worker.tasks.push(WorkerTask {
            id: task.id,
            title: task.title,
            state: task.state,
            run: claim.run,
            since: claim.since,
            lease_until,
        });
    }
    Ok(WorkerList { workers: workers.into_values().collect() })
}

impl WorkerView {
    fn new(id: WorkerId, presence: WorkerPresence) -> Self {
        Self { id, presence, last_heartbeat: None, tasks: Vec::new() }
    }
}

//! Clearing away what is not needed any more.

use std::collections::BTreeSet;

use rehearsal_core::{Task, TaskId, WorkerId};
use rehearsal_engine::forget_dead_workers;
use rehearsal_forge::{Collected, GcEntry, GcMode, Worktrees, remote_head, sweep_references};
use rehearsal_git::{Git, Oid};
use rehearsal_store::{StatusFilter, Store, StoreError, TaskQuery};
use serde::Serialize;

use crate::outlet::Destination;
use crate::places::{WorktreesError, open_worktrees};
use crate::project::Project;

/// `gc --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GcDocument {
    /// Whether it was only said.
    pub dry_run: bool,
    /// Each worktree, and what becomes of it.
    pub worktrees: Vec<WorktreeView>,
    /// References of processes that were killed, removed from the repository.
    pub references: Vec<String>,
    /// Traces of dead workers, removed.
    pub workers: Vec<WorkerId>,
}

/// A worktree, and what becomes of it.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorktreeView {
    /// Where it is.
    pub path: String,
    /// Whose it is.
    pub task: Option<TaskId>,
    /// What becomes of it.
    pub fate: Fate,
    /// Why it is kept.
    pub because: Option<String>,
}

/// What becomes of a worktree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// It is removed, or would be.
    Removed,
    /// It stays.
    Kept,
}

/// Removes worktrees that no open task needs, and what killed processes have left. Work that is nowhere else stays.
pub async fn gc(project: &Project, mode: GcMode) -> Result<GcDocument, WorktreesError> {
    project.caller.may_change()?;
    let store = project.store().await?;
    let worktrees = open_worktrees(project.settings()?, project).await?;
    let saved = saved_elsewhere(&worktrees, &*store, project).await?;
    let entries = worktrees.gc(&needed(&*store).await?, &saved, mode).await?;
    Ok(GcDocument {
        dry_run: mode == GcMode::DryRun,
        worktrees: entries.iter().map(view).collect(),
        references: sweep_references(&project.root, project.caller.now(), mode).await?,
        workers: forget_dead_workers(&*store, &project.state_dir()?, mode).await?,
    })
}

/// The tasks that are not over, and the checkouts in which their merges are tested.
async fn needed(store: &dyn Store) -> Result<BTreeSet<TaskId>, StoreError> {
    let query = TaskQuery { status: StatusFilter::Open, ..TaskQuery::default() };
    let mut needed = BTreeSet::new();
    for task in store.tasks(&query).await? {
        needed.extend(TaskId::new(format!("{}-gate", task.id)).ok());
        needed.insert(task.id);
    }
    Ok(needed)
}

/// The commits of tasks that are over which the remote has: on its base, or on a branch where they are still now.
async fn saved_elsewhere(
    worktrees: &Worktrees,
    store: &dyn Store,
    project: &Project,
) -> Result<Vec<Oid>, WorktreesError> {
    let git = Git::at(project.root.clone());
    // Where there is no remote, nothing was pushed.
    let destination = Destination::choose(project.settings()?, project).await.ok();
    let mut saved = Vec::new();
    for owner in worktrees.owners() {
        let Some(task) = store.task(&owner).await?.filter(Task::is_ended) else { continue };
        let delivery = task.delivery;
        saved.extend(delivery.merged);
        if let (Some(to), Some(branch), Some(pushed)) = (&destination, delivery.branch, delivery.pushed) {
            let there = remote_head(&git, to.remote(), &branch).await.ok().flatten();
            saved.extend(there.filter(|there| *there == pushed));
        }
    }
    Ok(saved)
}

fn view(entry: &GcEntry) -> WorktreeView {
    let because = match &entry.collected {
        Collected::Removed => None,
        Collected::InUse => Some("its task is not over".to_owned()),
        Collected::Busy => Some("another process is busy with it".to_owned()),
        Collected::Kept(unsaved) => {
            Some(unsaved.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
        }
    };
    WorktreeView {
        path: entry.path.to_string(),
        task: entry.task.clone(),
        fate: if because.is_none() { Fate::Removed } else { Fate::Kept },
        because,
    }
}

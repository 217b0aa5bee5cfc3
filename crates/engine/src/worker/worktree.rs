//! Where a task is worked on, and whether the newest of its work is there.

use rehearsal_core::{Notice, OutcomeName, RunId, StepFailure, Task};
use rehearsal_forge::{Occupied, Origin, Released, RemoteError, Worktree, WorktreeError, Worktrees, fetch};
use rehearsal_git::{Git, Oid};

use super::slot::Slot;
use super::{Outlet, WorkEvent, WorkerState};
use crate::steps;

impl Slot<'_> {
    /// The worktrees, and where the work goes. No task in a checkout has a step that needs them.
    pub(super) fn worktrees(&self) -> Result<(&Worktrees, &Outlet), StepFailure> {
        let reason = || "a task in the user's checkout has no worktree".to_owned();
        self.state.worker.workspace.worktrees().ok_or_else(|| StepFailure::Unknown { reason: reason() })
    }

    /// The task's worktree, made if it is not there.
    pub(super) async fn worktree(&self) -> Result<&Worktree, StepFailure> {
        let place = self.place.get_or_try_init(|| self.prepare()).await?;
        Ok(&place.0)
    }

    async fn prepare(&self) -> Result<(Worktree, Occupied), StepFailure> {
        let (worktrees, _) = self.worktrees()?;
        // What is there needs no base, and a remote that is asked takes its time.
        let base = if worktrees.has(&self.task.id) { None } else { Some(self.base().await?) };
        let base = base.as_ref().map_or("HEAD", Oid::as_str);
        let fence = self.task.fence;
        let prepared = worktrees.prepare(&self.task.id, fence, base).await;
        let worktree = prepared.map_err(|error| of_worktree(&error))?;
        let occupied = worktrees.occupy(&worktree).await.map_err(|error| of_worktree(&error))?;
        let worktree = self.catch_up(worktree).await?;
        if self.is_elsewhere(&worktree).await? {
            let reason = "its work is in a place of another machine, from which it was not pushed".to_owned();
            return Err(StepFailure::Transient { reason });
        }
        Ok((worktree, occupied))
    }

    /// Brings what was pushed from another place, if that is not here.
    async fn catch_up(&self, worktree: Worktree) -> Result<Worktree, StepFailure> {
        if !self.is_behind(&worktree).await? {
            return Ok(worktree);
        }
        let ((worktrees, outlet), delivery) = (self.worktrees()?, &self.task.delivery);
        let git = Git::at(worktree.path.clone());
        let found = match fetch(&git, &outlet.remote, &self.task.branch()).await {
            Ok(found) if delivery.may_have_pushed(&found) => found,
            // A branch that others moved is not ours to take, and one that is gone was merged and deleted.
            Ok(_) | Err(RemoteError::NoBranch { .. }) => return Ok(worktree),
            Err(error) => return Err(steps::of_remote(&error)),
        };
        if !self.only_decides() && has_seen(&worktree, &found).await? {
            return Ok(worktree);
        }
        worktrees.bring(&worktree, &found).await.map_err(|error| of_worktree(&error))
    }

    /// Whether something was pushed, or may have been, that this place does not know. Who decides on the work must see it as
    /// it will be merged.
    async fn is_behind(&self, worktree: &Worktree) -> Result<bool, StepFailure> {
        let delivery = &self.task.delivery;
        if self.only_decides() {
            return Ok(delivery.pushed.as_ref().is_some_and(|pushed| *pushed != worktree.head));
        }
        for commit in delivery.pushed.iter().chain(&delivery.offered) {
            if !has_seen(worktree, commit).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether what is to be decided on, or to go out, is not here, and cannot be brought.
    async fn is_elsewhere(&self, worktree: &Worktree) -> Result<bool, StepFailure> {
        let delivery = &self.task.delivery;
        let is_work_of_others = self.only_decides() || self.task.agent.is_none();
        match delivery.head.as_ref().filter(|head| is_work_of_others && !delivery.may_have_pushed(head)) {
            Some(head) => Ok(!has_seen(worktree, head).await?),
            None => Ok(false),
        }
    }

    /// Whether what the agent did, whose steps are to be done, is not here.
    pub(super) fn is_gone(&self, worktree: &Worktree) -> bool {
        let Some(pending) = self.task.pending.as_ref().filter(|_| self.only_steps) else { return false };
        if self.task.agent.is_none() || self.only_decides() {
            return false;
        }
        let is_left = matches!(worktree.origin, Origin::Reused | Origin::Rebuilt { is_own: true, .. });
        let was_here = pending.run.as_ref().is_some_and(|run| self.was_here(run));
        let is_newest = self.task.newest_commit(&self.flow) == Some(&worktree.head);
        !(is_newest || is_left && was_here)
    }

    /// Whether a run of the task was on this machine.
    pub(super) fn was_here(&self, run: &RunId) -> bool {
        self.state.run_dir(run).is_dir()
    }

    /// Where new work begins: the base as the remote has it, or as it is here if the remote does not answer.
    async fn base(&self) -> Result<Oid, StepFailure> {
        let (worktrees, outlet) = self.worktrees()?;
        let git = Git::at(worktrees.root());
        match fetch(&git, &outlet.remote, &outlet.base).await {
            Ok(base) => Ok(base),
            Err(error) => match git.commit(&format!("refs/heads/{}", outlet.base)).await {
                Ok(base) => Ok(base),
                Err(_) => Err(StepFailure::Transient { reason: error.to_string() }),
            },
        }
    }

    pub(super) fn tell_prepared(&self, worktree: &Worktree) {
        let origin = match &worktree.origin {
            Origin::Fresh => "fresh",
            Origin::Warm => "warm",
            Origin::Reused => "reused",
            Origin::Brought { .. } => "brought",
            Origin::Rebuilt { .. } => "rebuilt",
        };
        self.state.tell(WorkEvent::Prepared {
            task: self.task.id.clone(),
            worktree: worktree.path.to_string(),
            origin: origin.to_owned(),
        });
        let task = self.task.id.clone();
        match &worktree.origin {
            Origin::Rebuilt { set_aside: Some(path), .. } => {
                self.state.warn(Notice::WorktreeRebuilt { task, set_aside: path.to_string() });
            }
            Origin::Brought { set_aside: Some(path) } => {
                self.state.warn(Notice::WorktreeUpdated { task, set_aside: path.to_string() });
            }
            _ => {}
        }
    }
}

async fn has_seen(worktree: &Worktree, commit: &Oid) -> Result<bool, StepFailure> {
    worktree.has_seen(commit).await.map_err(|error| steps::of_git(&error))
}

impl WorkerState {
    /// What is merged or pushed is elsewhere; anything else stays until `gc` is asked, which keeps it too.
    pub(super) async fn give_worktree_back(&self, task: &Task) {
        let Some((worktrees, outlet)) = self.worker.workspace.worktrees() else { return };
        let delivery = &task.delivery;
        let mut saved: Vec<Oid> = delivery.pushed.iter().chain(&delivery.merged).cloned().collect();
        if saved.is_empty() {
            // Nothing came of it, and it stands where the base stood: that is the remote's.
            let git = Git::at(worktrees.root());
            saved.extend(fetch(&git, &outlet.remote, &outlet.base).await.ok());
        }
        let mut released = worktrees.release(&task.id, task.fence, &saved).await;
        if matches!(released, Err(WorktreeError::Unsaved { .. })) && task.is_done() {
            released = self.keep_and_release(worktrees, task, saved).await.unwrap_or(released);
        }
        if let Err(error) = released {
            self.warn(Notice::WorktreeKept { task: task.id.clone(), error: error.to_string() });
        }
    }

    /// The task was done in another place: what was done here in vain is kept, and the place given back.
    async fn keep_and_release(
        &self,
        worktrees: &Worktrees,
        task: &Task,
        mut saved: Vec<Oid>,
    ) -> Option<Result<Released, WorktreeError>> {
        let out = task.delivery.pushed.as_ref()?;
        let (reference, commit) = worktrees.keep(&task.id, out).await.ok()??;
        saved.push(commit);
        let released = worktrees.release(&task.id, task.fence, &saved).await;
        if released.is_ok() {
            self.warn(Notice::EarlierWorkSaved { task: task.id.clone(), reference });
        }
        Some(released)
    }
}

/// What it means that there is no worktree. None of it is the agent's fault.
pub(super) fn of_worktree(error: &WorktreeError) -> StepFailure {
    let reason = error.to_string();
    match error {
        WorktreeError::Git(error) => steps::of_git(error),
        WorktreeError::Busy { .. } | WorktreeError::Superseded { .. } => StepFailure::Transient { reason },
        WorktreeError::Setup { .. }
        | WorktreeError::IncludesTooMuch { .. }
        | WorktreeError::Unsaved { .. } => StepFailure::Unknown { reason },
        WorktreeError::Inside { .. } => {
            StepFailure::Systemic { outcome: OutcomeName::PermissionDenied, reason }
        }
    }
}

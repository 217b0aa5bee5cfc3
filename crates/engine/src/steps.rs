//! What the engine does between an agent's work and the next state.
//!
//! Each step looks first whether it is already done (by comparing commits, never by mere existence), then does it,
//! then looks whether the effect lasts. So each can be begun again after any crash. A step fails by the task's
//! fault, for a while, or for everyone: [`StepFailure`] says which.

mod assess;
mod branch;
mod command;
mod gate;
mod merge;
mod pull_request;

use camino::Utf8Path;
use rehearsal_core::config::HumanDuration;
use rehearsal_core::flow::Step;
use rehearsal_core::{Delivery, OutcomeName, RedVerdict, StepFailure, Task};
use rehearsal_forge::{ErrorClass, ForgeError, RemoteError, Work};
use rehearsal_git::{Git, GitError};
use tokio_util::sync::CancellationToken;

use crate::worker::Desk;

pub(crate) use merge::{MergeQueue, clear_gate_of, task_of_gate};

/// Where a step is done.
pub(crate) struct Scene<'a> {
    pub(crate) desk: &'a Desk,
    pub(crate) task: &'a Task,
    pub(crate) worktree: &'a Utf8Path,
    pub(crate) cancel: &'a CancellationToken,
}

/// Does a step. What comes back is the work as it is outside now.
pub(crate) async fn take(step: &Step, scene: &Scene<'_>) -> Result<Delivery, StepFailure> {
    match step {
        Step::CommitLeftovers => scene.commit_leftovers().await,
        Step::Rebase => scene.rebase().await,
        Step::RunTests => scene.run_tests().await,
        Step::Assess => scene.assess().await,
        Step::PushBranch => scene.push_branch().await,
        Step::CreatePr => scene.create_pr().await,
        Step::CheckConflicts => scene.check_conflicts().await,
        Step::CheckCi => scene.check_ci().await,
        Step::PostComment(text) => scene.post_comment(text).await,
        Step::MergePr => scene.merge_pr().await,
        Step::Pause(time) => scene.pause(time.0),
        Step::Command(command) => scene.command(command).await,
    }
}

impl Scene<'_> {
    fn work(&self) -> Work {
        Work::at(self.worktree).dated(self.desk.now())
    }

    fn git(&self) -> Git {
        Git::at(self.worktree).dated(self.desk.now())
    }

    fn delivery(&self) -> Delivery {
        self.task.delivery.clone()
    }

    /// The time begins when the step is first looked at, and is over when it is looked at again.
    fn pause(&self, time: std::time::Duration) -> Result<Delivery, StepFailure> {
        if self.task.pending.as_ref().is_some_and(|pending| pending.tries > 0) {
            return Ok(self.delivery());
        }
        let until = self.desk.now().plus(time);
        Err(StepFailure::Pending { reason: format!("{} have to pass", HumanDuration(time)), until })
    }
}

pub(super) fn red(verdict: RedVerdict, reason: impl Into<String>) -> StepFailure {
    StepFailure::Red { verdict, reason: reason.into() }
}

/// What git's own trouble means. What it is about is not the task's fault.
pub(crate) fn of_git(error: &GitError) -> StepFailure {
    let reason = error.to_string();
    match error {
        GitError::TimedOut { .. } | GitError::LockHeld { .. } => StepFailure::Transient { reason },
        GitError::Io { source, .. } if source.kind() == std::io::ErrorKind::StorageFull => {
            StepFailure::Systemic { outcome: OutcomeName::DiskFull, reason }
        }
        _ if reason.contains("No space left on device") => {
            StepFailure::Systemic { outcome: OutcomeName::DiskFull, reason }
        }
        _ => StepFailure::Systemic { outcome: OutcomeName::PermissionDenied, reason },
    }
}

pub(crate) fn of_remote(error: &RemoteError) -> StepFailure {
    of_class(error.class(), error.to_string())
}

pub(super) fn of_forge(error: &ForgeError, verdict: RedVerdict) -> StepFailure {
    match error.class() {
        ErrorClass::Task => red(verdict, error.to_string()),
        class => of_class(class, error.to_string()),
    }
}

/// An error that is nobody's verdict.
fn of_class(class: ErrorClass, reason: String) -> StepFailure {
    match class {
        ErrorClass::Transient { .. } => StepFailure::Transient { reason },
        ErrorClass::Systemic => StepFailure::Systemic { outcome: OutcomeName::AuthFailed, reason },
        ErrorClass::Task | ErrorClass::Unknown => StepFailure::Unknown { reason },
    }
}

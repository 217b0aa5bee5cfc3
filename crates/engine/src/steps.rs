//! What the engine does between an agent's work and the next state.
//!
//! A step is a row of [`rehearsal_core::flow::STEPS`] and a file here. Each step looks first whether it is already done (by comparing commits, never by mere existence), then does it,
//! then looks whether the effect lasts. So each can be begun again after any crash. A step fails by the task's
//! fault, for a while, or for everyone: [`StepFailure`] says which.

mod assess;
mod check_ci;
mod check_conflicts;
mod checkout;
mod command;
mod commit_leftovers;
mod create_pr;
mod merge_pr;
mod pause;
mod post_comment;
mod push_branch;
mod rebase;
mod run_tests;

use camino::Utf8Path;
use rehearsal_core::flow::{Need, Step};
use rehearsal_core::{Delivery, OutcomeName, RedVerdict, StepFailure, Task};
use rehearsal_forge::{ErrorClass, ForgeError, PrState, PullRequest, RemoteError, Work, Worktrees, fetch};
use rehearsal_git::{Git, GitError, Oid};
use tokio_util::sync::CancellationToken;

use crate::worker::{Outlet, WorkerState};

pub(crate) use checkout::CheckoutContext;
pub(crate) use merge_pr::{MergeQueue, clear_gate_of, task_of_gate};

/// Where a step is done.
pub(crate) struct StepContext<'a> {
    pub(crate) state: &'a WorkerState,
    pub(crate) task: &'a Task,
    pub(crate) worktree: &'a Utf8Path,
    pub(crate) worktrees: &'a Worktrees,
    pub(crate) outlet: &'a Outlet,
    pub(crate) cancel: &'a CancellationToken,
}

/// Does a step, in its own file. What comes back is the work as it is outside now.
pub(crate) async fn run(step: &Step, context: &StepContext<'_>) -> Result<Delivery, StepFailure> {
    if let Some(need) = step.spec().needs.iter().find(|need| !context.has(**need)) {
        return Err(missing(*need));
    }
    match step {
        Step::CommitLeftovers => context.commit_leftovers().await,
        Step::Rebase => context.rebase().await,
        Step::RunTests => context.run_tests().await,
        Step::Assess => context.assess().await,
        Step::PushBranch => context.push_branch().await,
        Step::CreatePr => context.create_pr().await,
        Step::CheckConflicts => context.check_conflicts().await,
        Step::CheckCi => context.check_ci().await,
        Step::PostComment(text) => context.post_comment(text).await,
        Step::MergePr => context.merge_pr().await,
        Step::Land => context.land().await,
        Step::Pause(time) => context.pause(time.0),
        Step::Command(command) => context.command(command).await,
    }
}

impl StepContext<'_> {
    fn work(&self) -> Work {
        Work::at(self.worktree).dated(self.state.now())
    }

    fn git(&self) -> Git {
        Git::at(self.worktree).dated(self.state.now())
    }

    fn delivery(&self) -> Delivery {
        self.task.delivery.clone()
    }

    /// The base as the remote has it now.
    async fn base_tip(&self) -> Result<Oid, StepFailure> {
        let outlet = self.outlet;
        fetch(&self.git(), &outlet.remote, &outlet.base).await.map_err(|error| of_remote(&error))
    }

    async fn head(&self) -> Result<Oid, StepFailure> {
        self.work().head().await.map_err(|error| of_git(&error))
    }

    fn pushed(&self) -> Result<Oid, StepFailure> {
        self.task.delivery.pushed.clone().ok_or_else(|| missing(Need::Branch))
    }

    fn number(&self) -> Result<u64, StepFailure> {
        let number = self.task.delivery.pull_request.as_ref().map(|it| it.number);
        number.ok_or_else(|| missing(Need::PullRequest))
    }

    async fn view(&self) -> Result<PullRequest, StepFailure> {
        let view = self.outlet.forge.view(self.number()?).await;
        let view = view.map_err(|error| of_forge(&error, RedVerdict::MergeFailed))?;
        if view.state == PrState::Closed {
            let reason = format!("pull request {} was closed without being merged", view.number);
            return Err(StepFailure::Unknown { reason });
        }
        Ok(view)
    }

    fn has(&self, need: Need) -> bool {
        match need {
            Need::Branch => self.task.delivery.pushed.is_some(),
            Need::PullRequest => self.task.delivery.pull_request.is_some(),
        }
    }
}

/// A flow in which a step comes before the one that it needs.
fn missing(need: Need) -> StepFailure {
    let (what, step) = match need {
        Need::Branch => ("was pushed", need.step()),
        Need::PullRequest => ("has a pull request", need.step()),
    };
    StepFailure::Systemic {
        outcome: OutcomeName::PermissionDenied,
        reason: format!("nothing of this task {what}: the flow needs `{step}` before this step"),
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

//! The work on its way to a branch of the remote.

use rehearsal_core::{Delivery, RedVerdict, StepFailure};
use rehearsal_forge::{LeftoversError, PushError, RebaseError, Rebased, fetch};
use rehearsal_git::Oid;

use super::{Scene, of_class, of_git, of_remote, red};

impl Scene<'_> {
    pub(super) async fn commit_leftovers(&self) -> Result<Delivery, StepFailure> {
        let message = format!("{}\n\nLeft uncommitted by the agent.", self.task.title);
        match self.work().commit_leftovers(&message).await {
            Ok(_) => self.with_head().await,
            Err(error @ LeftoversError::Unmerged { .. }) => Err(red(RedVerdict::Conflict, error.to_string())),
            Err(LeftoversError::Git(error)) => Err(of_git(&error)),
        }
    }

    pub(super) async fn rebase(&self) -> Result<Delivery, StepFailure> {
        let base = self.base_tip().await?;
        match self.work().rebase(&base).await {
            Ok(Rebased::Already(head) | Rebased::Moved(head)) => {
                Ok(Delivery { base: Some(base), head: Some(head), needs_rebase: false, ..self.delivery() })
            }
            Err(error @ RebaseError::Conflict { .. }) => {
                Err(red(RedVerdict::Conflict, format!("{error} (at {base:.10})")))
            }
            Err(error @ RebaseError::Uncommitted) => Err(red(RedVerdict::Conflict, error.to_string())),
            Err(RebaseError::Git(error)) => Err(of_git(&error)),
        }
    }

    pub(super) async fn push_branch(&self) -> Result<Delivery, StepFailure> {
        let head = self.head().await?;
        let base = self.base_tip().await?;
        let is_behind = self.git().is_ancestor(&head, &base).await.map_err(|error| of_git(&error))?;
        if is_behind {
            return Err(red(RedVerdict::NoChanges, "there are no commits that could go out"));
        }
        let (branch, outlet, delivery) = (self.task.branch(), &self.desk.worker.outlet, &self.task.delivery);
        if !delivery.may_have_pushed(&head) {
            let reason = format!("{head:.10} came to the work while it was about to go out");
            return Err(StepFailure::Transient { reason });
        }
        let offered = delivery.offered.iter().cloned().map(Some);
        let expected: Vec<Option<Oid>> = std::iter::once(delivery.pushed.clone()).chain(offered).collect();
        match self.work().push(&outlet.remote, &branch, &head, &expected).await {
            Ok(_) => Ok(Delivery {
                branch: Some(branch),
                head: Some(head.clone()),
                pushed: Some(head),
                offered: Vec::new(),
                ..self.delivery()
            }),
            Err(PushError::Remote(error)) => Err(of_remote(&error)),
            // Someone else's commits are on our branch: nobody but a person can say what to do with them.
            Err(error) => Err(of_class(error.class(), error.to_string())),
        }
    }

    /// The base as the remote has it now.
    pub(super) async fn base_tip(&self) -> Result<Oid, StepFailure> {
        let outlet = &self.desk.worker.outlet;
        fetch(&self.git(), &outlet.remote, &outlet.base).await.map_err(|error| of_remote(&error))
    }

    pub(super) async fn head(&self) -> Result<Oid, StepFailure> {
        self.work().head().await.map_err(|error| of_git(&error))
    }

    async fn with_head(&self) -> Result<Delivery, StepFailure> {
        Ok(Delivery { head: Some(self.head().await?), ..self.delivery() })
    }
}

//! Pushes the work to its branch on the remote.

use rehearsal_core::{Delivery, RedVerdict, StepFailure};
use rehearsal_forge::PushError;
use rehearsal_git::Oid;

use super::{StepContext, of_class, of_git, of_remote, red};

impl StepContext<'_> {
    pub(super) async fn push_branch(&self) -> Result<Delivery, StepFailure> {
        let head = self.head().await?;
        let base = self.base_tip().await?;
        let is_behind = self.git().is_ancestor(&head, &base).await.map_err(|error| of_git(&error))?;
        if is_behind {
            return Err(red(RedVerdict::NoChanges, "there are no commits that could go out"));
        }
        let (branch, outlet, delivery) = (self.task.branch(), self.outlet, &self.task.delivery);
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
}

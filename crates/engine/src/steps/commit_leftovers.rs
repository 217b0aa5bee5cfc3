//! Commits what the agent left uncommitted.

use rehearsal_core::{Delivery, RedVerdict, StepFailure};
use rehearsal_forge::LeftoversError;

use super::{StepContext, of_git, red};

impl StepContext<'_> {
    pub(super) async fn commit_leftovers(&self) -> Result<Delivery, StepFailure> {
        let message = format!("{}\n\nLeft uncommitted by the agent.", self.task.title);
        match self.work().commit_leftovers(&message).await {
            Ok(_) => Ok(Delivery { head: Some(self.head().await?), ..self.delivery() }),
            Err(error @ LeftoversError::Unmerged { .. }) => Err(red(RedVerdict::Conflict, error.to_string())),
            Err(LeftoversError::Git(error)) => Err(of_git(&error)),
        }
    }
}

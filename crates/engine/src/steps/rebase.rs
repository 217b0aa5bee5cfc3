//! Puts the work on top of its base.

use rehearsal_core::{Delivery, RedVerdict, StepFailure};
use rehearsal_forge::{RebaseError, Rebased};

use super::{StepContext, of_git, red};

impl StepContext<'_> {
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
}

//! Whether the work still fits its base.

use rehearsal_core::{Delivery, RedVerdict, StepFailure};
use rehearsal_forge::{CandidateError, Mergeable, check_fit};

use super::{StepContext, of_git, red};

impl StepContext<'_> {
    pub(super) async fn check_conflicts(&self) -> Result<Delivery, StepFailure> {
        let (head, base) = (self.pushed()?, self.base_tip().await?);
        match check_fit(&self.git(), &base, &head).await {
            Ok(()) => {}
            Err(error @ CandidateError::Conflict { .. }) => {
                return Err(red(RedVerdict::Conflict, format!("{error} (at {base:.10})")));
            }
            Err(CandidateError::Git(error)) => return Err(of_git(&error)),
        }
        // The forge may know more: rules, or a base that only it has.
        let view = self.view().await?;
        match view.mergeable {
            Mergeable::Conflicting => {
                Err(red(RedVerdict::Conflict, "the forge says that it conflicts with the base"))
            }
            Mergeable::Clean | Mergeable::Unknown | Mergeable::Blocked { .. } => Ok(self.delivery()),
        }
    }
}

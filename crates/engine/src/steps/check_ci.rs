//! How the forge's checks of the pushed commit went.

use std::time::Duration;

use rehearsal_core::{Delivery, RedVerdict, StepFailure};
use rehearsal_forge::Checks;

use super::{StepContext, of_forge, red};

/// How long to wait before the checks of a forge are looked at again.
const LOOK_AT_CHECKS: Duration = Duration::from_secs(30);

impl StepContext<'_> {
    pub(super) async fn check_ci(&self) -> Result<Delivery, StepFailure> {
        let pushed = self.pushed()?;
        let checks = self.outlet.forge.checks(&pushed).await;
        match checks.map_err(|error| of_forge(&error, RedVerdict::CiFailed))? {
            Checks::Passed { .. } => Ok(self.delivery()),
            Checks::Pending { names } => Err(StepFailure::Pending {
                reason: format!("{} of {pushed:.10} are not finished", names.join(", ")),
                until: self.state.now().plus(LOOK_AT_CHECKS),
            }),
            Checks::Failed { names } => Err(red(
                RedVerdict::CiFailed,
                format!("these checks of {pushed:.10} failed: {}", names.join(", ")),
            )),
            // None is not a pass: they may not have begun.
            Checks::None => {
                Err(StepFailure::Transient { reason: format!("the forge has no checks of {pushed:.10}") })
            }
            Checks::Never => Err(StepFailure::Unknown {
                reason: "a repository on this machine has no checks: leave `check_ci` out of the flow, or use GitHub".to_owned(),
            }),
            Checks::Unfetchable { reason } => Err(StepFailure::Transient { reason }),
        }
    }
}

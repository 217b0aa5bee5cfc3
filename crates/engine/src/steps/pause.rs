//! Lets time pass.

use std::time::Duration;

use rehearsal_core::config::HumanDuration;
use rehearsal_core::{Delivery, StepFailure};

use super::StepContext;

impl StepContext<'_> {
    /// The time begins when the step is first looked at, and is over when it is looked at again.
    pub(super) fn pause(&self, time: Duration) -> Result<Delivery, StepFailure> {
        if self.task.pending.as_ref().is_some_and(|pending| pending.tries > 0) {
            return Ok(self.delivery());
        }
        let until = self.state.now().plus(time);
        Err(StepFailure::Pending { reason: format!("{} have to pass", HumanDuration(time)), until })
    }
}

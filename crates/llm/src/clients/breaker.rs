//! Leaves a vendor alone that fails again and again.
//!
//! Closed, it counts failures in a row. Open, it lets nobody through until it has rested. Then one request tries the vendor out:
//! if it is answered, all may ask again, and otherwise the rest begins anew.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rehearsal_core::{Clock, Timestamp};

use super::policy::BreakerPolicy;
use crate::model::ModelError;

pub(super) struct Breaker {
    policy: BreakerPolicy,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

struct State {
    failures: u32,
    /// When it was opened for the last time, until when it is, and what for; none if it is closed.
    open: Option<Open>,
}

struct Open {
    until: Timestamp,
    last: ModelError,
}

/// The right to ask once.
pub(super) struct Pass {
    breaker: Arc<Breaker>,
    /// Until when nobody else may ask, because this one tries the vendor out.
    probe: Option<Timestamp>,
    is_settled: bool,
}

impl Breaker {
    pub(super) fn new(policy: BreakerPolicy, clock: Arc<dyn Clock>) -> Self {
        Self { policy, clock, state: Mutex::new(State { failures: 0, open: None }) }
    }

    /// Asks for the right to ask.
    pub(super) fn enter(self: &Arc<Self>) -> Result<Pass, ModelError> {
        let now = self.clock.now();
        let mut state = self.state();
        let failures = state.failures;
        let probe = match &mut state.open {
            Some(open) if now < open.until => {
                let last = Box::new(open.last.clone());
                return Err(ModelError::Resting { until: open.until, failures, last });
            }
            Some(open) => {
                // Whoever comes while it is tried out rests on, but not for ever: a probe may hang.
                open.until = now.plus(self.policy.rest);
                Some(open.until)
            }
            None => None,
        };
        Ok(Pass { breaker: Arc::clone(self), probe, is_settled: false })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pass {
    /// Says how it went.
    pub(super) fn settle(mut self, error: Option<&ModelError>) {
        self.is_settled = true;
        let now = self.breaker.clock.now();
        let mut state = self.breaker.state();
        let Some(error) = error.filter(|error| error.is_illness()) else {
            *state = State { failures: 0, open: None };
            return;
        };
        state.failures = state.failures.saturating_add(1);
        if state.failures >= self.breaker.policy.failures {
            state.open = Some(Open { until: now.plus(self.breaker.policy.rest), last: error.clone() });
        }
    }
}

/// Who hangs up has not found out how the vendor is: the next one may try.
impl Drop for Pass {
    fn drop(&mut self) {
        if self.is_settled {
            return;
        }
        let now = self.breaker.clock.now();
        let mut state = self.breaker.state();
        if let (Some(probe), Some(open)) = (self.probe, &mut state.open)
            && open.until == probe
        {
            open.until = now;
        }
    }
}

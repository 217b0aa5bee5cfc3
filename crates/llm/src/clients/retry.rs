//! When to ask again.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rehearsal_core::{Timestamp, seed};

use super::attempt::Failure;
use super::policy::RetryPolicy;

/// Fractions of a wait that follow from a seed.
#[derive(Debug)]
pub(super) struct Jitter {
    seed: u64,
    drawn: AtomicU64,
}

impl Jitter {
    pub(super) fn new(seed: u64) -> Self {
        Self { seed: seed::mix(seed), drawn: AtomicU64::new(0) }
    }

    fn draw(&self) -> f64 {
        seed::fraction(self.seed.wrapping_add(self.drawn.fetch_add(1, Ordering::Relaxed)))
    }
}

impl RetryPolicy {
    /// When the next try begins; none if there is to be none.
    pub(super) fn next_try(
        &self,
        failure: &Failure,
        tries: u32,
        now: Timestamp,
        jitter: &Jitter,
    ) -> Option<Timestamp> {
        if tries >= self.tries || !failure.may_be_asked_again() {
            return None;
        }
        let backoff = self.most(tries).mul_f64(jitter.draw());
        let told = failure.error.until().map(|until| until.since(now));
        let wait = told.unwrap_or_default().max(backoff);
        (wait <= self.longest_wait).then(|| now.plus(wait))
    }

    /// The longest wait after so many tries.
    fn most(&self, tries: u32) -> Duration {
        let doubled = 2_u32.checked_pow(tries.saturating_sub(1)).unwrap_or(u32::MAX);
        self.first_wait.saturating_mul(doubled).min(self.longest_wait)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::ModelError;

    const NOW: Timestamp = Timestamp(1_000_000);

    fn failure(until: Option<Timestamp>) -> Failure {
        Failure::from(ModelError::RateLimited { until, message: String::new() })
    }

    fn waits(seed: u64) -> Vec<u64> {
        let (policy, jitter) = (RetryPolicy { tries: 9, ..RetryPolicy::default() }, Jitter::new(seed));
        let next = |tries| policy.next_try(&failure(None), tries, NOW, &jitter);
        (1..9).map(|tries| u64::try_from(next(tries).unwrap().since(NOW).as_millis()).unwrap()).collect()
    }

    #[test]
    fn the_same_seed_waits_the_same() {
        assert_eq!(waits(7), waits(7));
        assert_ne!(waits(7), waits(8));
    }

    #[test]
    fn the_last_try_is_the_last() {
        let jitter = Jitter::new(1);
        let next = |tries| RetryPolicy::default().next_try(&failure(None), tries, NOW, &jitter);
        assert!(next(3).is_some());
        assert_eq!(next(4), None);
    }

    #[test]
    fn what_the_vendor_says_is_waited_for_unless_it_is_too_long() {
        let (policy, jitter) = (RetryPolicy::default(), Jitter::new(1));
        let until = |seconds| failure(Some(NOW.plus(Duration::from_secs(seconds))));
        assert_eq!(policy.next_try(&until(60), 1, NOW, &jitter), Some(NOW.plus(Duration::from_secs(60))));
        assert_eq!(policy.next_try(&until(61), 1, NOW, &jitter), None);
    }

    proptest! {
        #[test]
        fn no_wait_is_longer_than_its_bound(seed: u64, tries in 1u32..100) {
            let policy = RetryPolicy { tries: 200, ..RetryPolicy::default() };
            let at = policy.next_try(&failure(None), tries, NOW, &Jitter::new(seed)).unwrap();
            let bound = Duration::from_secs(1 << (tries - 1).min(6)).min(policy.longest_wait);
            prop_assert!(at.since(NOW) <= bound);
        }
    }
}

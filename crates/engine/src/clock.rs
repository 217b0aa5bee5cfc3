//! The real clock.

use std::time::Duration;

use rehearsal_core::{Clock, Timestamp};
use rustix::time::{ClockId, clock_gettime};

/// The system's time. The one place of the program that reads it.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

/// A sleep is cut into pieces of this length: a laptop that slept must not sleep on after it woke.
const LONGEST_SLEEP: Duration = Duration::from_secs(30);

#[async_trait::async_trait]
impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock that all others take")]
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Timestamp(0).plus(since)
    }

    fn monotonic(&self) -> Duration {
        let now = clock_gettime(ClockId::Monotonic);
        Duration::new(now.tv_sec.try_into().unwrap_or(0), now.tv_nsec.try_into().unwrap_or(0))
    }

    async fn sleep_until(&self, until: Timestamp) {
        while self.now() < until {
            tokio::time::sleep(until.since(self.now()).min(LONGEST_SLEEP)).await;
        }
    }
}

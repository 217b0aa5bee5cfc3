//! Time as a port. Rules take a [`Timestamp`]; whoever waits takes a [`Clock`].

use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Milliseconds since 1970-01-01 UTC. An integer everywhere, also in the store: dates as text do not compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// This moment and a duration more.
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)))
    }

    /// How long after `earlier` this is; zero when it is not after it.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Where time comes from: the system's in production, a virtual one in a rehearsal.
#[async_trait::async_trait]
pub trait Clock: Send + Sync {
    /// The present moment.
    fn now(&self) -> Timestamp;
    /// The time since a fixed moment, on a clock that nobody sets: durations are measured with it. A virtual clock is never set.
    fn monotonic(&self) -> Duration {
        self.now().since(Timestamp(0))
    }
    /// Returns once `until` is reached; at once when it is past.
    async fn sleep_until(&self, until: Timestamp);

    /// Waits for the turn to do something that takes real time. Under the real clock everyone has it always; in a
    /// rehearsal one at a time has it, and time stands still meanwhile: so what happens has one order.
    async fn turn(&self) -> Turn {
        Turn::free()
    }
}

/// Held while something is done that takes real time.
pub struct Turn(Option<Box<dyn FnOnce() + Send>>);

impl Turn {
    /// One that nobody waits for.
    pub fn free() -> Self {
        Self(None)
    }

    /// One that someone waits for; `over` is called when it ends.
    pub fn until_over(over: impl FnOnce() + Send + 'static) -> Self {
        Self(Some(Box::new(over)))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(over) = self.0.take() {
            over();
        }
    }
}

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Turn")
    }
}

/// A clock that stands still until someone waits on it, then jumps: a five-hour wait takes no time.
#[derive(Debug)]
pub struct VirtualClock {
    now: AtomicI64,
}

impl VirtualClock {
    /// A clock that shows `start`.
    pub fn starting_at(start: Timestamp) -> Self {
        Self { now: AtomicI64::new(start.0) }
    }

    /// Moves the clock forward.
    pub fn advance(&self, by: Duration) {
        let target = self.now().plus(by);
        self.now.fetch_max(target.0, Ordering::SeqCst);
    }
}

#[async_trait::async_trait]
impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.now.load(Ordering::SeqCst))
    }

    async fn sleep_until(&self, until: Timestamp) {
        self.now.fetch_max(until.0, Ordering::SeqCst);
    }
}

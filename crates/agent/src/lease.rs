//! A lease on a task, as its agent's supervisor knows it: when it runs out without a word, the agent is frozen, so
//! that two agents never work on one task. Counted on a clock that goes on while the machine sleeps.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tokio::sync::watch;

/// A moment on the clock that goes on while the machine sleeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct BootInstant(Duration);

impl BootInstant {
    /// Now.
    pub fn now() -> Self {
        let now = clock_gettime(ClockId::Boottime);
        let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
        Self(Duration::new(seconds, u32::try_from(now.tv_nsec).unwrap_or(0)))
    }

    /// How long until then; zero when it is past.
    fn time_left(self) -> Duration {
        self.0.saturating_sub(Self::now().0)
    }
}

/// How long before the end of a lease its agent is frozen: time enough for whoever takes over to find it still.
const MARGIN: Duration = Duration::from_secs(10);

/// Prolongs a lease.
#[derive(Debug)]
pub struct LeaseKeeper {
    freeze_at: watch::Sender<BootInstant>,
}

/// A lease under which an agent runs.
#[derive(Debug, Clone)]
pub struct Lease {
    freeze_at: watch::Receiver<BootInstant>,
}

impl PartialEq for Lease {
    fn eq(&self, other: &Self) -> bool {
        self.freeze_at.same_channel(&other.freeze_at)
    }
}

impl Lease {
    /// A lease that was asked for at a moment, for so long.
    pub fn new(asked_at: BootInstant, length: Duration) -> (LeaseKeeper, Self) {
        let (freeze_at, received) = watch::channel(freeze_at(asked_at, length));
        (LeaseKeeper { freeze_at }, Self { freeze_at: received })
    }

    /// Whether nothing may be begun under it any more.
    pub fn has_run_out(&self) -> bool {
        self.freeze_at.borrow().time_left().is_zero()
    }

    /// How long the agent may go on from now. Tells each change once.
    pub(crate) async fn next(&mut self) -> Duration {
        if self.freeze_at.changed().await.is_err() {
            // Whoever prolonged it is gone, and so is our task with it.
            std::future::pending::<()>().await;
        }
        self.left()
    }

    /// How long the agent may go on from now.
    pub(crate) fn left(&mut self) -> Duration {
        self.freeze_at.borrow_and_update().time_left()
    }
}

impl LeaseKeeper {
    /// The lease was prolonged; it counts from when that was asked for, not from when the answer came.
    pub fn prolonged(&self, asked_at: BootInstant, length: Duration) {
        self.freeze_at.send_replace(freeze_at(asked_at, length));
    }
}

fn freeze_at(asked_at: BootInstant, length: Duration) -> BootInstant {
    BootInstant(asked_at.0 + length.saturating_sub(MARGIN.min(length / 4)))
}

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

    /// So long after this one.
    pub(crate) fn plus(self, time: Duration) -> Self {
        Self(self.0.saturating_add(time))
    }

    /// How long until then; zero when it is past.
    pub(crate) fn time_left(self) -> Duration {
        self.0.saturating_sub(Self::now().0)
    }
}

/// How long before the end of a lease its agent is frozen: time enough for whoever takes over to find it still.
const MARGIN: Duration = Duration::from_secs(10);

/// When an agent is frozen unless its lease is prolonged, and when the lease is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Term {
    freeze_at: BootInstant,
    ends_at: BootInstant,
}

/// How long an agent may go on from now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeLeft {
    /// Until it is frozen.
    pub freeze_in: Duration,
    /// Until its lease is over.
    pub ends_in: Duration,
}

/// Prolongs a lease.
#[derive(Debug)]
pub struct LeaseKeeper {
    term: watch::Sender<Term>,
}

/// A lease under which an agent runs.
#[derive(Debug, Clone)]
pub struct Lease {
    term: watch::Receiver<Term>,
}

impl PartialEq for Lease {
    fn eq(&self, other: &Self) -> bool {
        self.term.same_channel(&other.term)
    }
}

impl Lease {
    /// A lease that was asked for at a moment, for so long.
    pub fn new(asked_at: BootInstant, length: Duration) -> (LeaseKeeper, Self) {
        let (sender, term) = watch::channel(Term::of(asked_at, length));
        (LeaseKeeper { term: sender }, Self { term })
    }

    /// Whether nothing may be begun under it any more.
    pub fn has_run_out(&self) -> bool {
        self.term.borrow().freeze_at.time_left().is_zero()
    }

    /// How long the agent may go on from now. Tells each change once.
    pub async fn next(&mut self) -> TimeLeft {
        if self.term.changed().await.is_err() {
            // Whoever prolonged it is gone, and so is our task with it.
            std::future::pending::<()>().await;
        }
        self.left()
    }

    /// How long the agent may go on from now.
    pub fn left(&mut self) -> TimeLeft {
        let Term { freeze_at, ends_at } = *self.term.borrow_and_update();
        TimeLeft { freeze_in: freeze_at.time_left(), ends_in: ends_at.time_left() }
    }
}

impl LeaseKeeper {
    /// The lease was prolonged; it counts from when that was asked for, not from when the answer came.
    pub fn prolonged(&self, asked_at: BootInstant, length: Duration) {
        self.term.send_replace(Term::of(asked_at, length));
    }
}

impl Term {
    fn of(asked_at: BootInstant, length: Duration) -> Self {
        let freeze_at = asked_at.plus(length.saturating_sub(MARGIN.min(length / 4)));
        Self { freeze_at, ends_at: asked_at.plus(length) }
    }
}

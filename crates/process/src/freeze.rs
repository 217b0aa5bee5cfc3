//! Freezing an agent whose lease is about to run out: it does nothing more, and loses nothing, until it is known whose
//! the task is. A thaw is its going on; the end of the lease without a worker, or a worker that lost the task, ends it.

use std::collections::HashSet;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::process::{Pid, Signal};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

use super::table;
use crate::BootInstant;

/// Rounds of freezing: a process that forks meanwhile leaves a child behind that is found in the next one.
const ROUNDS: u32 = 4;

pub(super) struct Freezer {
    /// Fires shortly before the end of the lease, and at its end, also if the machine slept over it.
    pub(super) timer: OwnedFd,
    /// When the lease is over; none: there is none.
    ends_at: Option<BootInstant>,
    frozen: bool,
}

impl Freezer {
    pub(super) fn new() -> io::Result<Self> {
        let timer = timerfd_create(TimerfdClockId::Boottime, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
        Ok(Self { timer, ends_at: None, frozen: false })
    }

    /// Lets the agent go on, and freezes it after this time, under a lease that ends later.
    pub(super) fn go_on_for(&mut self, freeze_in: Duration, ends_in: Duration) {
        self.ends_at = Some(BootInstant::now().plus(ends_in));
        self.ring_in(freeze_in);
        self.thaw();
    }

    /// Whether there is a lease, and it is not over.
    pub(super) fn lease_holds(&self) -> bool {
        self.ends_at.is_some_and(|at| !at.time_left().is_zero())
    }

    fn ring_in(&self, time: Duration) {
        // Zero would switch the timer off.
        let time = time.max(Duration::from_nanos(1));
        let it_value = Timespec {
            tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: time.subsec_nanos().into(),
        };
        let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        let _ =
            timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &Itimerspec { it_interval, it_value });
    }

    /// The timer has fired, unless a command has set it anew since.
    pub(super) fn freeze(&mut self) {
        let mut count = [0; 8];
        if rustix::io::read(&self.timer, &mut count).is_err() {
            return;
        }
        if let Some(at) = self.ends_at.filter(|at| !at.time_left().is_zero()) {
            self.ring_in(at.time_left());
        }
        self.frozen = true;
        for _ in 0..ROUNDS {
            signal_all(Signal::STOP);
        }
    }

    pub(super) fn thaw(&mut self) {
        if std::mem::take(&mut self.frozen) {
            signal_all(Signal::CONT);
        }
    }
}

/// All that was started for the run is a descendant of ours.
fn signal_all(signal: Signal) {
    let me = HashSet::from([rustix::process::getpid().as_raw_nonzero().get()]);
    for entry in table::descendants(&table::all(), &me) {
        if let Some(pid) = Pid::from_raw(entry.id.pid) {
            let _ = rustix::process::kill_process(pid, signal);
        }
    }
}

//! A runner's own counts against the tests that were told by name.

use crate::{Event, Sink, TestStatus};

/// Counts by how tests ended.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) passed: u64,
    pub(super) failed: u64,
    pub(super) skipped: u64,
}

impl Tally {
    pub(super) fn sum(self) -> u64 {
        self.passed.saturating_add(self.failed).saturating_add(self.skipped)
    }

    pub(super) fn add(&mut self, status: TestStatus) {
        match status {
            TestStatus::Pass | TestStatus::Xfail | TestStatus::Flaky => self.passed += 1,
            TestStatus::Skip | TestStatus::NotRun => self.skipped += 1,
            TestStatus::Fail | TestStatus::Error | TestStatus::Crash | TestStatus::Timeout => {
                self.failed += 1
            }
        }
    }

    /// Counts what the runner counted and did not name. Too many names are told by `Ended`, whose count is then less
    /// than what was seen.
    pub(super) fn count_unnamed(self, named: Self, sink: &mut dyn Sink) {
        for (status, counted, named) in [
            (TestStatus::Pass, self.passed, named.passed),
            (TestStatus::Fail, self.failed, named.failed),
            (TestStatus::Skip, self.skipped, named.skipped),
        ] {
            if let Some(count @ 1..) = counted.checked_sub(named) {
                sink.event(Event::Counted { status, count });
            }
        }
    }
}

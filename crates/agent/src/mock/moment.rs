//! Time as real agents print it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use rehearsal_core::Timestamp;

use super::error::MockError;
use super::misbehave;
use super::stage_time::StageTime;

/// Time that goes on from a given start.
#[derive(Debug, Clone)]
pub(crate) struct RunClock {
    start: Timestamp,
    course: Course,
}

/// How time goes on.
#[derive(Debug, Clone)]
enum Course {
    /// By itself.
    Real(Instant),
    /// In a rehearsal, only while we sleep.
    Staged(StageTime, Arc<AtomicI64>),
}

impl RunClock {
    pub(super) fn starting_at(start: Timestamp) -> Self {
        Self { start, course: Course::Real(Instant::now()) }
    }

    pub(super) fn of_stage(stage: StageTime) -> Result<Self, MockError> {
        let start = stage.now()?;
        Ok(Self { start, course: Course::Staged(stage, Arc::new(AtomicI64::new(start.0))) })
    }

    pub(crate) fn now(&self) -> Timestamp {
        match &self.course {
            Course::Real(began) => self.start.plus(began.elapsed()),
            Course::Staged(_, now) => Timestamp(now.load(Ordering::Relaxed)),
        }
    }

    /// The date of a commit, where it is not the present of this machine.
    pub(super) fn commit_date(&self) -> Option<Timestamp> {
        matches!(self.course, Course::Staged(..)).then(|| self.now())
    }

    pub(super) fn sleep(&self, span: Duration) -> Result<(), MockError> {
        match &self.course {
            Course::Real(_) => std::thread::sleep(span),
            Course::Staged(stage, now) => now.store(stage.sleep(span)?.0, Ordering::Relaxed),
        }
        Ok(())
    }

    pub(super) fn hang(&self) -> Result<(), MockError> {
        match &self.course {
            Course::Real(_) => misbehave::hang(),
            Course::Staged(stage, _) => stage.hang().map(drop),
        }
    }

    pub(crate) fn elapsed_ms(&self) -> i64 {
        self.now().0 - self.start.0
    }

    pub(crate) fn iso(&self) -> String {
        iso(self.now())
    }
}

/// `2026-11-15T19:29:09.078Z`.
fn iso(at: Timestamp) -> String {
    let (days, millis) = (at.0.div_euclid(86_400_000), at.0.rem_euclid(86_400_000));
    let (year, month, day) = civil(days);
    let (seconds, millis) = (millis / 1000, millis % 1000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

/// Year, month and day of a day since 1970-01-01, by eras of 400 years that begin in March.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(iso(Timestamp(0)), "1970-01-01T00:00:00.000Z");
        assert_eq!(iso(Timestamp(1_709_208_000_001)), "2024-02-29T12:00:00.001Z");
        assert_eq!(iso(Timestamp(1_794_770_949_078)), "2026-11-15T19:29:09.078Z");
    }
}

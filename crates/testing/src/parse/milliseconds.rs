//! Times as runners write them, in whole milliseconds.

use std::time::Duration;

/// Of seconds; what is no time is none.
pub(super) fn of_seconds(seconds: f64) -> u64 {
    Duration::try_from_secs_f64(seconds).map_or(0, |time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

/// Of milliseconds with a fraction.
pub(super) fn of(milliseconds: f64) -> u64 {
    of_seconds(milliseconds / 1000.0)
}

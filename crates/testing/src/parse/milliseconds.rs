//! Times as runners write them, in whole milliseconds.

/// Of milliseconds with a fraction; what is no time is none.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates")]
pub(super) fn of(milliseconds: f64) -> u64 {
    milliseconds.max(0.0).round() as u64
}

/// Of seconds.
pub(super) fn of_seconds(seconds: f64) -> u64 {
    of(seconds * 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_time_is_none() {
        let read = [1.5, 0.4, -3.0, f64::NAN, f64::INFINITY].map(of);
        assert_eq!(read, [2, 0, 0, 0, u64::MAX]);
        assert_eq!(of_seconds(0.29), 290);
    }
}

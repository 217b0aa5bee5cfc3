//! The little statistics that few and noisy samples allow.

use serde::{Deserialize, Serialize};

/// A rate, and the bounds it lies within at 95 % confidence.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Interval {
    /// As measured, from 0 to 1.
    pub rate: f64,
    /// Not lower than this.
    pub low: f64,
    /// Not higher than this.
    pub high: f64,
}

impl Interval {
    /// Wilson's interval: unlike the plain one it is right for few samples, and for none or all of them.
    #[expect(clippy::cast_precision_loss, reason = "a test is not run 2^52 times")]
    pub(super) fn wilson(hits: u64, samples: u64) -> Self {
        const Z: f64 = 1.959_964;
        let n = samples.max(1) as f64;
        let rate = hits as f64 / n;
        let scale = 1.0 + Z * Z / n;
        let centre = (rate + Z * Z / (2.0 * n)) / scale;
        let half = Z / scale * (rate * (1.0 - rate) / n + Z * Z / (4.0 * n * n)).sqrt();
        Self { rate, low: (centre - half).max(0.0), high: (centre + half).min(1.0) }
    }
}

/// `20 % (8 to 42 %)`.
impl std::fmt::Display for Interval {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.0} % ({:.0} to {:.0} %)", self.rate * 100.0, self.low * 100.0, self.high * 100.0)
    }
}

/// The middle one; of an even number the lower of the two in the middle.
pub(super) fn median(samples: &[u64]) -> Option<u64> {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable();
    sorted.get(samples.len().checked_sub(1)? / 2).copied()
}

/// What lies above is unusual: Tukey's fence, one and a half times the middle half's width above that half.
pub(super) fn usual_until(samples: &[u64]) -> Option<u64> {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable();
    let last = samples.len().checked_sub(1)?;
    let (low, high) = (sorted.get(last / 4)?, sorted.get((last * 3).div_ceil(4))?);
    Some(high.saturating_add((high - low).saturating_mul(3) / 2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_slow_run_does_not_move_the_median() {
        assert_eq!(median(&[10, 12, 9000, 11, 10]), Some(11));
        assert_eq!(usual_until(&[10, 12, 9000, 11, 10]), Some(15));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn few_samples_leave_wide_bounds() {
        assert_eq!(Interval::wilson(2, 10).to_string(), "20 % (6 to 51 %)");
        assert_eq!(Interval::wilson(200, 1000).to_string(), "20 % (18 to 23 %)");
        assert_eq!(Interval::wilson(0, 5).to_string(), "0 % (0 to 43 %)");
    }

    proptest! {
        #[test]
        fn the_rate_lies_within_its_bounds(hits in 0u64..500, misses in 0u64..500) {
            let it = Interval::wilson(hits, hits + misses);
            prop_assert!(0.0 <= it.low && it.low <= it.rate + 1e-9 && it.rate <= it.high + 1e-9 && it.high <= 1.0);
        }
    }
}

//! How far a rate can be from what was seen.

use serde::{Deserialize, Serialize};

/// Where the true value is, with 95 % confidence.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Interval {
    /// At least.
    pub low: f64,
    /// At most.
    pub high: f64,
}

impl Interval {
    /// Whether a value is in it.
    pub fn contains(self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

/// The 97.5 % quantile of the normal distribution: two sides of 95 %.
const Z: f64 = 1.959_963_984_540_054;

/// Wilson's score interval of a rate; none without a trial.
pub fn wilson(trials: u64, passed: u64) -> Option<Interval> {
    if trials == 0 || passed > trials {
        return None;
    }
    #[expect(clippy::cast_precision_loss, reason = "trials are counted in thousands")]
    let (n, rate) = (trials as f64, passed as f64 / trials as f64);
    Some(score(n, rate))
}

/// The same of a rate that was seen in so many.
pub(super) fn score(n: f64, rate: f64) -> Interval {
    let weight = Z * Z / n;
    let centre = rate + weight / 2.0;
    let spread = Z * ((rate * (1.0 - rate) + weight / 4.0) / n).sqrt();
    let scale = 1.0 + weight;
    // At the ends the formula is exact in numbers and not in floating point.
    let low = if rate <= 0.0 { 0.0 } else { (centre - spread) / scale };
    let high = if rate >= 1.0 { 1.0 } else { (centre + spread) / scale };
    Interval { low, high }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn near(interval: Option<Interval>, low: f64, high: f64) {
        let interval = interval.unwrap();
        assert!((interval.low - low).abs() < 5e-4 && (interval.high - high).abs() < 5e-4, "{interval:?}");
    }

    #[test]
    fn it_is_what_newcombe_printed() {
        // Newcombe (1998), table I, method 3: 81/263, 15/148, 0/20, 1/29.
        near(wilson(263, 81), 0.2553, 0.3662);
        near(wilson(148, 15), 0.0624, 0.1605);
        near(wilson(20, 0), 0.0, 0.1611);
        near(wilson(29, 1), 0.0061, 0.1718);
    }

    /// How often the interval of `n` trials holds a true rate: the sum over all results that can be.
    fn coverage(n: u32, rate: f64) -> f64 {
        let mut chance = (1.0 - rate).powi(i32::try_from(n).unwrap());
        let mut covered = 0.0;
        for passed in 0..=n {
            if wilson(n.into(), passed.into()).unwrap().contains(rate) {
                covered += chance;
            }
            chance *= f64::from(n - passed) / f64::from(passed + 1) * rate / (1.0 - rate);
        }
        covered
    }

    #[test]
    fn over_all_rates_it_holds_the_true_one_in_95_of_100() {
        for (n, expected) in [(5, 0.955), (10, 0.954), (20, 0.953), (50, 0.952), (100, 0.951)] {
            // Above one half it is the same from the other end.
            let all: Vec<f64> = (0..500).map(|step| coverage(n, (f64::from(step) + 0.5) / 1000.0)).collect();
            let mean = all.iter().sum::<f64>() / 500.0;
            assert!((mean - expected).abs() < 6e-4, "{n}: {mean}");
            // Near 0 and 1 it is known to be less, and never very much.
            assert!(all.iter().all(|one| *one > 0.83), "{n}");
        }
    }

    #[test]
    fn without_a_trial_nothing_is_known() {
        assert_eq!(wilson(0, 0), None);
    }

    proptest! {
        #[test]
        fn it_holds_what_was_seen_and_stays_between_0_and_1(n in 1_u64..10_000, share in 0.0..=1.0_f64) {
            #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small")]
            let passed = (n as f64 * share) as u64;
            let interval = wilson(n, passed).unwrap();
            #[expect(clippy::cast_precision_loss, reason = "small")]
            let seen = passed as f64 / n as f64;
            prop_assert!(interval.low >= 0.0 && interval.high <= 1.0);
            prop_assert!(interval.contains(seen), "{interval:?} {seen}");
            prop_assert!(wilson(n * 4, passed * 4).unwrap().high - wilson(n * 4, passed * 4).unwrap().low
                < interval.high - interval.low);
        }
    }
}

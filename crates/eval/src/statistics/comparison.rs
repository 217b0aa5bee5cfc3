//! Whether one agent does better than another on the same cases.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::chance::Chance;

/// What came of comparing two agents case by case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Comparison {
    /// Cases that both have trials of.
    pub cases: u64,
    /// Cases in which the first has the higher pass rate.
    pub better: u64,
    /// Cases in which the second has.
    pub worse: u64,
    /// How much higher the first one's mean pass rate is.
    pub difference: f64,
    /// How often a difference as large or larger comes from nothing but chance.
    pub p_value: f64,
    /// How that was found out.
    pub method: Method,
}

/// How a p-value was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Over all ways in which the two could have been exchanged in each case. With one trial each, it is the exact test of `McNemar`.
    Exact,
    /// Over ten thousand of these ways, drawn from a seed.
    Sampled,
}

/// So many different sums are looked at one by one.
const MOST_SUMS: usize = 1 << 16;
const DRAWS: u32 = 10_000;

/// Passed and trials of a case.
type Tally = (u64, u64);

/// Compares the pass rates of two agents, case by case: if they were the same, in each case the two could be exchanged. Cases that
/// one of them has no trial of are left out; none if nothing is left.
pub fn compare_paired(pairs: &[(Tally, Tally)], seed: u64) -> Option<Comparison> {
    let differences: Vec<Difference> = pairs.iter().filter_map(|(a, b)| Difference::of(*a, *b)).collect();
    if differences.is_empty() {
        return None;
    }
    let observed: f64 = differences.iter().map(|difference| difference.value).sum();
    let count = |test: fn(f64) -> bool| differences.iter().filter(|d| test(d.value)).count() as u64;
    let exact = exact(&differences);
    Some(Comparison {
        cases: differences.len() as u64,
        better: count(|value| value > 0.0),
        worse: count(|value| value < 0.0),
        #[expect(clippy::cast_precision_loss, reason = "cases are counted in thousands")]
        difference: observed / differences.len() as f64,
        p_value: exact.unwrap_or_else(|| sampled(&differences, observed, seed)),
        method: if exact.is_some() { Method::Exact } else { Method::Sampled },
    })
}

/// A difference of two rates: as a number, and exactly.
struct Difference {
    value: f64,
    numerator: i128,
    denominator: i128,
}

impl Difference {
    fn of((passed, trials): Tally, (other_passed, other_trials): Tally) -> Option<Self> {
        if trials == 0 || other_trials == 0 {
            return None;
        }
        let (c, n, d, m) =
            (i128::from(passed), i128::from(trials), i128::from(other_passed), i128::from(other_trials));
        let (numerator, denominator) = (c * m - d * n, n * m);
        #[expect(clippy::cast_precision_loss, reason = "trials are counted in thousands")]
        let value = numerator as f64 / denominator as f64;
        Some(Self { value, numerator, denominator })
    }
}

/// The share of all sign changes whose sum is as far from zero as the one that was seen; none if there are too many sums.
fn exact(differences: &[Difference]) -> Option<f64> {
    let common = differences.iter().try_fold(1_i128, |common, difference| {
        let lcm = common / gcd(common, difference.denominator) * difference.denominator;
        (lcm < 1 << 40).then_some(lcm)
    })?;
    let scaled: Vec<i128> = differences
        .iter()
        .map(|one| one.numerator * (common / one.denominator))
        .filter(|one| *one != 0)
        .collect();
    let observed = scaled.iter().sum::<i128>().abs();
    let mut sums = BTreeMap::from([(0_i128, 1.0_f64)]);
    for difference in scaled {
        let mut next = BTreeMap::new();
        for (sum, share) in &sums {
            *next.entry(sum + difference).or_insert(0.0) += share / 2.0;
            *next.entry(sum - difference).or_insert(0.0) += share / 2.0;
        }
        sums = next;
        if sums.len() > MOST_SUMS {
            return None;
        }
    }
    Some(sums.iter().filter(|(sum, _)| sum.abs() >= observed).map(|(_, share)| share).sum::<f64>().min(1.0))
}

/// The one that was seen counts as drawn, so that the answer is never zero.
fn sampled(differences: &[Difference], observed: f64, seed: u64) -> f64 {
    let mut chance = Chance::new(seed);
    let as_far = (0..DRAWS).filter(|_| {
        let sum: f64 =
            differences.iter().map(|one| if chance.below(2) == 0 { one.value } else { -one.value }).sum();
        sum.abs() >= observed.abs() - 1e-9
    });
    let as_far = u32::try_from(as_far.count()).unwrap_or(DRAWS);
    f64::from(as_far + 1) / f64::from(DRAWS + 1)
}

fn gcd(a: i128, b: i128) -> i128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// One trial each: `(1, 0)` is a case that only the first one passes.
    fn once(results: &[(u64, u64)]) -> Vec<(Tally, Tally)> {
        results.iter().map(|(a, b)| ((*a, 1), (*b, 1))).collect()
    }

    #[test]
    fn with_one_trial_each_it_is_mcnemars_exact_test() {
        // 10 discordant pairs, 9 of them for the first: 2 · (1 + 10) / 2^10.
        let mut cases = vec![(1, 0); 9];
        cases.push((0, 1));
        cases.extend([(1, 1); 20]);
        let comparison = compare_paired(&once(&cases), 0).unwrap();
        assert!((comparison.p_value - 22.0 / 1024.0).abs() < 1e-12, "{comparison:?}");
        assert_eq!((comparison.cases, comparison.better, comparison.worse), (30, 9, 1));
        assert_eq!(comparison.method, Method::Exact);
    }

    #[test]
    fn it_is_what_fisher_found_for_darwins_plants() {
        // Fisher (1935), The Design of Experiments, § 21: of 32,768 ways 863 are as far to one side as the heights of 15 pairs of plants
        // that were seen, in eighths of an inch.
        let seen = [49_i64, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48];
        let pair = |difference: &i64| ((u64::try_from(500 + difference).unwrap(), 1000), (500, 1000));
        let comparison = compare_paired(&seen.iter().map(pair).collect::<Vec<_>>(), 0).unwrap();
        assert_eq!(comparison.method, Method::Exact);
        assert!((comparison.p_value - 2.0 * 863.0 / 32_768.0).abs() < 1e-12, "{comparison:?}");
    }

    #[test]
    fn it_is_the_binomial_test_for_agrestis_voters() {
        // Agresti, Categorical Data Analysis, table 10.1: of 1,600 people 150 changed their minds one way and 86 the other.
        let mut cases = vec![(1, 0); 150];
        cases.extend([(0, 1); 86]);
        cases.extend([(1, 1); 794]);
        cases.extend([(0, 0); 570]);
        let comparison = compare_paired(&once(&cases), 0).unwrap();
        assert!((comparison.p_value - 3.715_936_14e-5).abs() < 1e-12, "{comparison:?}");
    }

    #[test]
    fn no_difference_is_no_evidence() {
        let comparison = compare_paired(&once(&[(1, 1), (0, 0), (1, 0), (0, 1)]), 0).unwrap();
        assert!((comparison.p_value - 1.0).abs() < 1e-12, "{comparison:?}");
    }

    #[test]
    fn what_only_one_of_them_tried_is_left_out() {
        assert_eq!(compare_paired(&[((1, 1), (0, 0))], 0), None);
    }

    #[test]
    fn with_very_many_different_rates_it_is_sampled_and_says_so() {
        let pairs: Vec<(Tally, Tally)> =
            (0..60_u64).map(|case| ((case % 7, 101 + case), (case % 5, 211 + 3 * case))).collect();
        let comparison = compare_paired(&pairs, 5).unwrap();
        assert_eq!(comparison.method, Method::Sampled);
        assert!(comparison.p_value > 0.0 && comparison.p_value <= 1.0, "{comparison:?}");
        assert_eq!(Some(comparison), compare_paired(&pairs, 5));
    }

    proptest! {
        #[test]
        fn who_is_named_first_changes_the_sign_and_nothing_else(
            tallies in prop::collection::vec((0_u64..6, 0_u64..6), 1..12)
        ) {
            let pairs: Vec<(Tally, Tally)> = tallies.iter().map(|(a, b)| ((*a, 5), (*b, 5))).collect();
            let swapped: Vec<(Tally, Tally)> = pairs.iter().map(|(a, b)| (*b, *a)).collect();
            let (one, other) = (compare_paired(&pairs, 0).unwrap(), compare_paired(&swapped, 0).unwrap());
            prop_assert!(one.p_value > 0.0 && one.p_value <= 1.0);
            prop_assert!((one.p_value - other.p_value).abs() < 1e-12);
            prop_assert!((one.difference + other.difference).abs() < 1e-12);
            prop_assert_eq!((one.better, one.worse), (other.worse, other.better));
        }

        #[test]
        fn it_agrees_with_trying_all_signs(tallies in prop::collection::vec((0_u64..4, 0_u64..4), 1..9)) {
            let pairs: Vec<(Tally, Tally)> = tallies.iter().map(|(a, b)| ((*a, 3), (*b, 3))).collect();
            let rates: Vec<i64> = tallies.iter().map(|(a, b)| i64::try_from(*a).unwrap() - i64::try_from(*b).unwrap()).collect();
            let observed = rates.iter().sum::<i64>().abs();
            let all = 1_u32 << rates.len();
            let as_far = (0..all).filter(|signs| {
                let sum: i64 = rates.iter().enumerate().map(|(i, rate)| if signs >> i & 1 == 0 { *rate } else { -rate }).sum();
                sum.abs() >= observed
            });
            let expected = f64::from(u32::try_from(as_far.count()).unwrap()) / f64::from(all);
            prop_assert!((compare_paired(&pairs, 0).unwrap().p_value - expected).abs() < 1e-9);
        }
    }
}

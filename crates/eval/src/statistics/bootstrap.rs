//! The mean over a suite, with an interval that knows that trials of one case resemble each other.

use super::chance::Chance;
use super::interval::score;
use super::{Interval, percentile};

/// Values that resemble each other: the cases of one repository, or one case.
#[derive(Debug, Clone, PartialEq)]
pub struct Cluster {
    /// The pass rate of each of its cases.
    pub values: Vec<f64>,
}

/// So often the suite is drawn again.
const DRAWS: usize = 10_000;

/// The mean of all values and its interval, by drawing whole clusters with replacement. None with fewer than two clusters:
/// one says nothing of how much they differ.
pub fn bootstrap_mean(clusters: &[Cluster], seed: u64) -> Option<(f64, Interval)> {
    let sums: Vec<(f64, f64)> = clusters
        .iter()
        .filter(|cluster| !cluster.values.is_empty())
        .map(|cluster| (cluster.values.iter().sum(), count(&cluster.values)))
        .collect();
    if sums.len() < 2 {
        return None;
    }
    let mean = |drawn: &mut dyn Iterator<Item = (f64, f64)>| {
        let (sum, count) = drawn.fold((0.0, 0.0), |(sum, count), one| (sum + one.0, count + one.1));
        sum / count
    };
    let all = mean(&mut sums.iter().copied());
    // Whatever is drawn of what is all the same has the same mean, which would be said too surely: another one could differ.
    if sums.iter().all(|one| *one == sums[0]) {
        return Some((all, score(count(&sums), all)));
    }
    let mut chance = Chance::new(seed);
    let draws: Vec<f64> =
        (0..DRAWS).map(|_| mean(&mut (0..sums.len()).map(|_| sums[chance.below(sums.len())]))).collect();
    let interval = Interval { low: percentile(&draws, 0.025)?, high: percentile(&draws, 0.975)? };
    Some((all, interval))
}

#[expect(clippy::cast_precision_loss, reason = "cases are counted in thousands")]
fn count<T>(values: &[T]) -> f64 {
    values.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn each(values: &[f64]) -> Vec<Cluster> {
        values.iter().map(|value| Cluster { values: vec![*value] }).collect()
    }

    #[test]
    fn one_cluster_says_nothing_of_others() {
        assert_eq!(bootstrap_mean(&each(&[1.0]), 1), None);
        assert_eq!(bootstrap_mean(&[], 1), None);
    }

    #[test]
    fn what_is_all_the_same_is_no_surer_than_so_many_can_make_it() {
        let (mean, interval) = bootstrap_mean(&each(&[1.0; 50]), 1).unwrap();
        assert_eq!((mean, Some(interval)), (1.0, crate::statistics::wilson(50, 50)));
        assert!(interval.low < 0.93 && bootstrap_mean(&each(&[1.0; 4]), 1).unwrap().1.low < 0.52);
    }

    #[test]
    fn the_same_seed_gives_the_same_interval() {
        let suite = each(&(0..40).map(|case| f64::from(case * 7 % 41) / 41.0).collect::<Vec<_>>());
        assert_eq!(bootstrap_mean(&suite, 7), bootstrap_mean(&suite, 7));
        assert_ne!(bootstrap_mean(&suite, 7), bootstrap_mean(&suite, 8));
    }

    #[test]
    fn it_is_as_wide_as_theory_says() {
        // 100 cases, half of them pass: the standard error of the mean is 0.05, so 95 % is 0.098 to each side.
        let values: Vec<f64> = (0..100).map(|case| f64::from(case % 2)).collect();
        let (mean, interval) = bootstrap_mean(&each(&values), 42).unwrap();
        assert!((mean - 0.5).abs() < 1e-9);
        assert!(
            (interval.low - 0.402).abs() < 0.011 && (interval.high - 0.598).abs() < 0.011,
            "{interval:?}"
        );
    }

    #[test]
    fn cases_that_go_together_make_it_wider() {
        let values: Vec<f64> = (0..100).map(|case| f64::from(case % 2)).collect();
        let together: Vec<Cluster> =
            (0..10).map(|group| Cluster { values: vec![f64::from(group % 2); 10] }).collect();
        let width = |clusters: &[Cluster]| {
            let (_, interval) = bootstrap_mean(clusters, 3).unwrap();
            interval.high - interval.low
        };
        assert!(width(&together) > 2.0 * width(&each(&values)));
    }
}

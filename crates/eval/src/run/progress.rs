//! How far an eval is, and what it still takes.

use std::time::Duration;

use crate::case::Eval;
use crate::grade::Verdict;
use crate::summary::Record;
use crate::trial::Source;

/// How far an eval is.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Progress {
    /// Trials of the whole eval.
    pub all: usize,
    /// Of those, made in this run.
    pub made: usize,
    /// Of those, that this run has to make.
    pub to_make: usize,
    /// Of those that were made, passed.
    pub passed: usize,
    /// Of those that were made, failed.
    pub failed: usize,
    /// Of those that were made, errors.
    pub errors: usize,
    spent_usd: f64,
    told_their_cost: u32,
}

/// What it still takes, if the rest is like what was made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// How long.
    pub time: Duration,
    /// How much; none if nothing is known of it.
    pub usd: Option<f64>,
}

impl Progress {
    pub(super) fn new(eval: &Eval, to_make: usize) -> Self {
        let trials = |case: &crate::case::Case| case.variants.len() * case.repeat as usize;
        Self { all: eval.cases.iter().map(trials).sum(), to_make, ..Self::default() }
    }

    pub(super) fn add(&mut self, record: &Record) {
        self.made += 1;
        match record.verdict {
            Verdict::Pass => self.passed += 1,
            Verdict::Fail => self.failed += 1,
            Verdict::Error => self.errors += 1,
            Verdict::Skipped => {}
        }
        if let Some(trial) = record.trial.as_ref().filter(|trial| trial.source == Source::Live)
            && let Some(usd) = trial.cost_usd
        {
            self.spent_usd += usd;
            self.told_their_cost += 1;
        }
    }

    /// The dollars that are known to be spent.
    pub fn spent(&self) -> f64 {
        self.spent_usd
    }

    /// What it still takes, after so long. None before the first trial is over.
    pub fn estimate(&self, elapsed: Duration) -> Option<Estimate> {
        let made = u32::try_from(self.made).ok().filter(|made| *made > 0)?;
        let rest = u32::try_from(self.to_make.saturating_sub(self.made)).ok()?;
        let each = (self.told_their_cost > 0).then(|| self.spent_usd / f64::from(self.told_their_cost));
        Some(Estimate { time: elapsed / made * rest, usd: each.map(|each| each * f64::from(rest)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_takes_as_long_as_what_was_made() {
        let progress =
            Progress { made: 4, to_make: 10, spent_usd: 0.8, told_their_cost: 2, ..Progress::default() };
        let estimate = progress.estimate(Duration::from_secs(8)).unwrap();
        assert_eq!(estimate.time, Duration::from_secs(12));
        assert!((estimate.usd.unwrap() - 2.4).abs() < 1e-9);
    }

    #[test]
    fn before_the_first_is_over_nothing_is_known_and_a_cost_that_is_not_told_is_not_zero() {
        assert_eq!(Progress { to_make: 3, ..Progress::default() }.estimate(Duration::from_secs(1)), None);
        let silent = Progress { made: 1, to_make: 2, ..Progress::default() };
        assert_eq!(silent.estimate(Duration::from_secs(1)).unwrap().usd, None);
    }
}

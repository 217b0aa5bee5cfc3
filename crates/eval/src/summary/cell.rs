//! One case with one who was measured on it.

use std::collections::BTreeMap;

use rehearsal_core::Tokens;
use serde::{Deserialize, Serialize};

use super::Record;
use crate::grade::Verdict;
use crate::statistics::{Interval, pass_at_k, pass_hat_k, percentile, wilson};
use crate::trial::{Source, Trial, Variant};

/// For so many `k` the chances are listed: nobody tries more often. What is required of a larger one is computed for itself.
const MOST_K: u64 = 100;

/// What the trials of one case come to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cell {
    /// The case.
    pub case: String,
    /// Who was measured.
    pub variant: Variant,
    /// Trials that were made.
    pub trials: u64,
    /// Samples that passed. Trials on one tape are one sample.
    pub passed: u64,
    /// Samples that failed.
    pub failed: u64,
    /// Samples that say nothing: the world around the agent failed.
    pub errors: u64,
    /// Trials that were not made.
    pub skipped: u64,
    /// Tapes on which not every trial came to the same.
    pub unsteady_tapes: u64,
    /// How many passed of those that say something; none if none does.
    pub pass_rate: Option<f64>,
    /// Where the true rate is.
    pub interval: Option<Interval>,
    /// The chance that one of k passes, by k.
    pub pass_at: BTreeMap<u64, f64>,
    /// The chance that all of k pass, by k.
    pub pass_hat: BTreeMap<u64, f64>,
    /// Milliseconds.
    pub latency_ms: Option<Spread>,
    /// Tokens, of the trials that told them.
    pub tokens: Option<Spread>,
    /// Dollars.
    pub cost: Cost,
}

/// The average, the middle and the upper end of what was measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Spread {
    /// The average.
    pub mean: f64,
    /// Half of them are below.
    pub p50: f64,
    /// 95 of 100 are below.
    pub p95: f64,
}

/// Dollars: what is known of them, and of how many trials they are not known.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cost {
    /// Known.
    pub usd: f64,
    /// Trials that did not tell theirs.
    pub unknown: u64,
}

impl Cost {
    pub(super) fn and(self, other: Self) -> Self {
        Self { usd: self.usd + other.usd, unknown: self.unknown + other.unknown }
    }
}

impl Cell {
    /// How many samples say something.
    pub fn samples(&self) -> u64 {
        self.passed + self.failed
    }

    pub(super) fn of(case: &str, variant: &Variant, records: &[&Record]) -> Self {
        let (samples, unsteady_tapes) = samples(records);
        let count = |wanted: Verdict| samples.iter().filter(|verdict| **verdict == wanted).count() as u64;
        let (passed, failed) = (count(Verdict::Pass), count(Verdict::Fail));
        let n = passed + failed;
        let trials: Vec<&Trial> = records.iter().filter_map(|record| record.trial.as_ref()).collect();
        let by_k = |estimate: fn(u64, u64, u64) -> Option<f64>| {
            (1..=n.min(MOST_K)).filter_map(|k| Some((k, estimate(n, passed, k)?))).collect()
        };
        #[expect(clippy::cast_precision_loss, reason = "trials are counted in thousands")]
        let pass_rate = (n > 0).then(|| passed as f64 / n as f64);
        Self {
            case: case.to_owned(),
            variant: variant.clone(),
            trials: trials.len() as u64,
            passed,
            failed,
            errors: count(Verdict::Error),
            skipped: records.iter().filter(|record| record.verdict == Verdict::Skipped).count() as u64,
            unsteady_tapes,
            pass_rate,
            interval: wilson(n, passed),
            pass_at: by_k(pass_at_k),
            pass_hat: by_k(pass_hat_k),
            latency_ms: spread(trials.iter().map(|trial| trial.duration_ms)),
            tokens: spread(trials.iter().filter_map(|trial| trial.tokens).map(Tokens::total)),
            cost: trials.iter().fold(Cost::default(), |sum, trial| sum.and(cost_of(trial))),
        }
    }
}

/// The verdict of each sample, and on how many tapes the trials did not agree.
fn samples(records: &[&Record]) -> (Vec<Verdict>, u64) {
    let mut verdicts = Vec::new();
    let mut tapes: BTreeMap<&str, Vec<Verdict>> = BTreeMap::new();
    for record in records.iter().filter(|record| record.verdict != Verdict::Skipped) {
        match record.trial.as_ref().map(|trial| &trial.source) {
            Some(Source::Replayed { tape }) => tapes.entry(tape).or_default().push(record.verdict),
            _ => verdicts.push(record.verdict),
        }
    }
    let mut unsteady = 0;
    for of_tape in tapes.values() {
        unsteady += u64::from(of_tape.iter().any(|verdict| *verdict != of_tape[0]));
        let has = |wanted: Verdict| of_tape.contains(&wanted);
        verdicts.push(if has(Verdict::Fail) {
            Verdict::Fail
        } else if has(Verdict::Pass) {
            Verdict::Pass
        } else {
            Verdict::Error
        });
    }
    (verdicts, unsteady)
}

/// A stand-in and a recording cost nothing, and that is known.
fn cost_of(trial: &Trial) -> Cost {
    match (trial.cost_usd, &trial.source) {
        (_, Source::Scripted | Source::Replayed { .. }) => Cost::default(),
        (Some(usd), Source::Live) => Cost { usd, unknown: 0 },
        (None, Source::Live) => Cost { usd: 0.0, unknown: 1 },
    }
}

fn spread(values: impl Iterator<Item = u64>) -> Option<Spread> {
    #[expect(clippy::cast_precision_loss, reason = "milliseconds and tokens are far below")]
    let values: Vec<f64> = values.map(|value| value as f64).collect();
    #[expect(clippy::cast_precision_loss, reason = "trials are counted in thousands")]
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    Some(Spread { mean, p50: percentile(&values, 0.5)?, p95: percentile(&values, 0.95)? })
}

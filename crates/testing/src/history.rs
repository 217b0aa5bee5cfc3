//! What past results tell of a test: flaky, failing since when, fixed, slower.
//!
//! **Invariant:** pure. Whoever keeps the results hands them in as [`TestRecord`]s; nothing is read or written here.

mod statistics;

use std::collections::{BTreeMap, BTreeSet};

use rehearsal_core::{TestResult, TestRun};
use serde::{Deserialize, Serialize};

pub(crate) use statistics::Interval;
use statistics::{median, usual_until};

use crate::TestStatus;
use crate::analyse::failed;
use crate::words::duration;

/// A test, across runs.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TestKey {
    /// The directory of its project in the repository; empty for the repository's own.
    pub root: String,
    /// Its runner.
    pub framework: String,
    /// Its package, class or file.
    pub package: String,
    /// Its name in there.
    pub name: String,
}

/// How one test ended in one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TestRecord {
    /// Which run.
    pub run: String,
    /// When, in milliseconds since 1970.
    pub at: i64,
    /// What was tested: the hash of the whole tree, uncommitted changes included; none if it is not known.
    pub tree: Option<String>,
    /// Which test.
    pub test: TestKey,
    /// How it ended.
    pub status: TestStatus,
    /// How long it took.
    pub ms: u64,
}

impl TestRecord {
    /// The records of one run.
    pub fn of_run<'a>(run: &'a TestRun, results: &'a [TestResult]) -> impl Iterator<Item = Self> + 'a {
        results.iter().map(|result| Self {
            run: run.id.to_string(),
            at: run.at.0,
            tree: run.tree.clone(),
            test: TestKey {
                root: run.root.clone(),
                framework: run.framework.clone(),
                package: result.package.clone(),
                name: result.name.clone(),
            },
            status: result.status,
            ms: result.duration,
        })
    }
}

/// What to think of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// It passes.
    Healthy,
    /// The same tree gave different results, and not long enough ago.
    Flaky,
    /// It failed in the last runs, all of them.
    Failing,
    /// It failed in the last run, and not in the one before.
    NewlyFailing,
    /// It passed in the last run, and failed in the one before.
    Fixed,
}

/// A run, as a test's history names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunMark {
    /// Which.
    pub run: String,
    /// When, in milliseconds since 1970.
    pub at: i64,
    /// What was tested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
}

/// A test that takes longer than it used to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Slower {
    /// What it used to take: the median.
    pub before_ms: u64,
    /// What it took lately: the median.
    pub now_ms: u64,
}

/// What past results tell of a test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TestHistory {
    /// Which test.
    pub test: TestKey,
    /// What to think of it.
    pub standing: Standing,
    /// In how many runs it passed or failed.
    pub runs: u64,
    /// In how many of them it failed.
    pub failures: u64,
    /// How often the result changed from one run to the next on the same tree, with the bounds that so few runs allow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flips: Option<Interval>,
    /// The first of the failures that last until now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_bad: Option<RunMark>,
    /// The run before that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_good: Option<RunMark>,
    /// What it usually takes when it passes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median_ms: Option<u64>,
    /// Whether it takes longer than it used to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slower: Option<Slower>,
}

/// After so many good results in a row a flaky test is trusted again: at one failure in eight it would have failed by then
/// in more than nine cases of ten.
const TRUSTED_AFTER: usize = 20;
/// From so many failures in a row on it is no longer news.
const NO_NEWS: usize = 2;
/// Durations are compared if there are so many old ones,
const OLD_SAMPLES: usize = 5;
/// and so many new ones.
const NEW_SAMPLES: usize = 3;
/// Shorter differences are noise of the machine.
const LEAST_SLOWDOWN_MS: u64 = 50;

/// The history of every test that the records tell of, in the order of their keys. Records may come in any order, and
/// more than once.
pub fn histories(records: &[TestRecord]) -> Vec<TestHistory> {
    let mut tests: BTreeMap<&TestKey, Vec<&TestRecord>> = BTreeMap::new();
    for record in records {
        tests.entry(&record.test).or_default().push(record);
    }
    tests.into_iter().filter_map(|(test, records)| history(test, records)).collect()
}

fn history(test: &TestKey, mut records: Vec<&TestRecord>) -> Option<TestHistory> {
    // What was skipped or never ran says nothing about the test.
    records.retain(|record| {
        matches!(record.status, TestStatus::Pass | TestStatus::Flaky) || failed(record.status)
    });
    records.sort_by(|a, b| (a.at, &a.run).cmp(&(b.at, &b.run)));
    records.dedup_by(|a, b| a.run == b.run && a.status == b.status);
    let last = records.last()?;
    let bad_streak = records.iter().rev().take_while(|record| failed(record.status)).count();
    let first_bad = records.len() - bad_streak;
    let standing = standing(&records, bad_streak, failed(last.status));
    let mark =
        |record: &&TestRecord| RunMark { run: record.run.clone(), at: record.at, tree: record.tree.clone() };
    let good: Vec<u64> =
        records.iter().filter(|record| record.status == TestStatus::Pass).map(|record| record.ms).collect();
    Some(TestHistory {
        test: test.clone(),
        standing,
        runs: records.len() as u64,
        failures: records.iter().filter(|record| failed(record.status)).count() as u64,
        flips: flips(&records),
        first_bad: records.get(first_bad).map(mark),
        last_good: (bad_streak > 0).then(|| records[..first_bad].last().map(mark)).flatten(),
        median_ms: median(&good),
        slower: slower(&good),
    })
}

fn standing(records: &[&TestRecord], bad_streak: usize, bad: bool) -> Standing {
    if is_flaky(records) {
        return Standing::Flaky;
    }
    let before = records.len().checked_sub(2).map(|at| failed(records[at].status));
    match (bad, before) {
        (true, _) if bad_streak >= NO_NEWS => Standing::Failing,
        (true, _) => Standing::NewlyFailing,
        (false, Some(true)) => Standing::Fixed,
        (false, _) => Standing::Healthy,
    }
}

/// Whether one tree had both results, and a long row of good ones has not followed.
fn is_flaky(records: &[&TestRecord]) -> bool {
    let (mut good, mut bad) = (BTreeSet::new(), BTreeSet::new());
    let mut last_flake = None;
    for (at, record) in records.iter().enumerate() {
        let tree = record.tree.as_deref();
        let (same, other) = if failed(record.status) { (&mut bad, &good) } else { (&mut good, &bad) };
        if record.status == TestStatus::Flaky || tree.is_some_and(|tree| other.contains(tree)) {
            last_flake = Some(at);
        }
        same.extend(tree);
    }
    last_flake.is_some_and(|flake| {
        let good_since =
            records[flake + 1..].iter().rev().take_while(|it| it.status == TestStatus::Pass).count();
        good_since < TRUSTED_AFTER
    })
}

fn flips(records: &[&TestRecord]) -> Option<Interval> {
    let same_tree = |pair: &&[&TestRecord]| pair[0].tree.is_some() && pair[0].tree == pair[1].tree;
    let pairs: Vec<_> = records.windows(2).filter(same_tree).collect();
    let flipped = pairs.iter().filter(|pair| failed(pair[0].status) != failed(pair[1].status)).count();
    (!pairs.is_empty()).then(|| Interval::wilson(flipped as u64, pairs.len() as u64))
}

/// Compares medians, which one slow run does not move, and asks for more than the usual spread.
fn slower(good: &[u64]) -> Option<Slower> {
    let (old, new) = good.split_at(good.len().checked_sub(NEW_SAMPLES)?);
    if old.len() < OLD_SAMPLES {
        return None;
    }
    let (before_ms, now_ms) = (median(old)?, median(new)?);
    let by = now_ms.saturating_sub(before_ms);
    let unusual = now_ms > usual_until(old)?;
    let by_half = now_ms.saturating_mul(2) >= before_ms.saturating_mul(3);
    (by >= LEAST_SLOWDOWN_MS && by_half && unusual).then_some(Slower { before_ms, now_ms })
}

impl TestHistory {
    /// For people: what to think of the test, with the numbers that say so.
    pub fn words(&self) -> String {
        let (failures, runs) = (self.failures, self.runs);
        match self.standing {
            Standing::Healthy => format!("passed in {} of {runs} runs", runs - failures),
            Standing::Flaky => match &self.flips {
                Some(flips) => format!(
                    "flaky: failed in {failures} of {runs} runs, flips {flips} of the time on the same tree"
                ),
                None => format!("flaky: failed in {failures} of {runs} runs, and passed when run again"),
            },
            Standing::Failing | Standing::NewlyFailing => match (&self.first_bad, &self.last_good) {
                (Some(bad), Some(good)) => {
                    format!("failing since run {}; run {} was good", bad.run, good.run)
                }
                (Some(bad), None) => format!("failing since run {}, the first that is known", bad.run),
                (None, _) => format!("failed in {failures} of {runs} runs"),
            },
            Standing::Fixed => format!("passes again; failed in {failures} of {runs} runs"),
        }
    }
}

impl Slower {
    /// For people.
    pub fn words(&self) -> String {
        format!("takes {}, used to take {}", duration(self.now_ms), duration(self.before_ms))
    }
}

#[cfg(test)]
mod tests;

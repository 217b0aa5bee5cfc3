//! What many trials come to: case by case, and for each who was measured.

mod cell;
mod requirement;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use cell::{Cell, Cost, Spread};
pub use requirement::Requirement;

use crate::case::Eval;
use crate::grade::{Graded, Verdict, grade};
use crate::run::Obstacle;
use crate::statistics::{Cluster, Comparison, Interval, bootstrap_mean, compare_paired};
use crate::trial::{Trial, TrialId, Variant};

/// One trial and what came of it: a line of `trials.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Record {
    /// Which trial.
    pub id: TrialId,
    /// What came of it.
    pub verdict: Verdict,
    /// Why it was skipped, or what went wrong around it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What was in the way, if the user can remove it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub obstacle: Option<Obstacle>,
    /// Each assertion.
    #[serde(default)]
    pub graded: Vec<Graded>,
    /// What is known of it; none if it never began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial: Option<Trial>,
}

impl Record {
    /// Grades the trial again with the assertions of `eval`.
    pub fn grade_again(&mut self, eval: &Eval) {
        let case = eval.cases.iter().find(|case| case.name == self.id.case);
        if let (Some(case), Some(trial)) = (case, &self.trial) {
            (self.graded, self.verdict) = grade(trial, &case.assertions, case.file.threshold);
        }
    }
}

/// Why a summary has no single variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum VariantError {
    /// None has this agent.
    #[error("no such agent was measured")]
    Unknown,
    /// More than one has this agent.
    #[error("several agents were measured")]
    Several,
}

/// What an eval came to: `results.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Summary {
    /// The eval.
    pub eval: String,
    /// Each case with each who was measured on it.
    pub cells: Vec<Cell>,
    /// Each who was measured, over all cases.
    pub variants: Vec<VariantSummary>,
    /// What was required, and whether it holds.
    pub requirements: Vec<Requirement>,
}

/// One who was measured, over all cases.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VariantSummary {
    /// Who.
    pub variant: Variant,
    /// Over how many cases.
    pub cases: u64,
    /// The mean of the cases' pass rates; none if no case has a sample.
    pub pass_rate: Option<f64>,
    /// Where it is, cases of one group drawn together; none with fewer than two groups.
    pub interval: Option<Interval>,
    /// Dollars.
    pub cost: Cost,
}

impl Summary {
    /// Sums up. Records may come in any order; of two with the same id the later counts.
    pub fn of(eval: &Eval, records: &[Record]) -> Self {
        let mut last: BTreeMap<&TrialId, &Record> = BTreeMap::new();
        for record in records {
            last.insert(&record.id, record);
        }
        let mut own: BTreeMap<(&str, &Variant), Vec<&Record>> = BTreeMap::new();
        for record in last.into_values() {
            own.entry((&record.id.case, &record.id.variant)).or_default().push(record);
        }
        let mut cells = Vec::new();
        for case in &eval.cases {
            for variant in &case.variants {
                let records = own.get(&(case.name.as_str(), variant)).map_or(&[][..], Vec::as_slice);
                cells.push(Cell::of(&case.name, variant, records));
            }
        }
        let variants = variants(eval, &cells);
        let requirements = requirement::all(eval, &cells);
        Self { eval: eval.name.clone(), cells, variants, requirements }
    }

    /// Whether all that was required holds.
    pub fn holds(&self) -> bool {
        self.requirements.iter().all(|requirement| requirement.holds)
    }

    /// The only variant, or the only one of this agent.
    pub fn variant(&self, agent: Option<&str>) -> Result<&Variant, VariantError> {
        let fits = |variant: &&Variant| {
            agent.is_none_or(|agent| variant.to_string() == agent || variant.agent == agent)
        };
        let mut variants = self.variants.iter().map(|one| &one.variant).filter(fits);
        match (variants.next(), variants.next()) {
            (Some(variant), None) => Ok(variant),
            (Some(_), Some(_)) => Err(VariantError::Several),
            (None, _) => Err(VariantError::Unknown),
        }
    }

    /// Compares two who were measured on the same cases.
    pub fn compare(&self, a: &Variant, other: &Self, b: &Variant, seed: u64) -> Option<Comparison> {
        let theirs = other.cells.iter().filter(|cell| cell.variant == *b);
        let theirs: BTreeMap<&str, &Cell> = theirs.map(|cell| (cell.case.as_str(), cell)).collect();
        let ours = self.cells.iter().filter(|cell| cell.variant == *a);
        let pairs: Vec<_> = ours
            .filter_map(|cell| {
                let same = theirs.get(cell.case.as_str())?;
                Some(((cell.passed, cell.samples()), (same.passed, same.samples())))
            })
            .collect();
        compare_paired(&pairs, seed)
    }
}

fn variants(eval: &Eval, cells: &[Cell]) -> Vec<VariantSummary> {
    let mut known: Vec<&Variant> = Vec::new();
    for cell in cells {
        if !known.contains(&&cell.variant) {
            known.push(&cell.variant);
        }
    }
    let groups: Groups<'_> = eval
        .cases
        .iter()
        .filter_map(|case| Some((case.name.as_str(), case.file.group.as_deref()?)))
        .collect();
    known.into_iter().map(|variant| variant_summary(eval.seed, &groups, cells, variant)).collect()
}

/// The groups of those cases that have one.
type Groups<'a> = BTreeMap<&'a str, &'a str>;

fn variant_summary(seed: u64, groups: &Groups<'_>, cells: &[Cell], variant: &Variant) -> VariantSummary {
    let own: Vec<&Cell> = cells.iter().filter(|cell| cell.variant == *variant).collect();
    // A group and a case may have the same name.
    let mut clusters: BTreeMap<(bool, &str), Cluster> = BTreeMap::new();
    for cell in &own {
        let Some(rate) = cell.pass_rate else { continue };
        let group = groups.get(cell.case.as_str());
        let key = (group.is_some(), group.copied().unwrap_or(&cell.case));
        clusters.entry(key).or_insert_with(|| Cluster { values: Vec::new() }).values.push(rate);
    }
    let rates: Vec<f64> = own.iter().filter_map(|cell| cell.pass_rate).collect();
    let clusters: Vec<Cluster> = clusters.into_values().collect();
    #[expect(clippy::cast_precision_loss, reason = "cases are counted in thousands")]
    let mean = (!rates.is_empty()).then(|| rates.iter().sum::<f64>() / rates.len() as f64);
    VariantSummary {
        variant: variant.clone(),
        cases: own.len() as u64,
        pass_rate: mean,
        interval: bootstrap_mean(&clusters, seed).map(|(_, interval)| interval),
        cost: own.iter().fold(Cost::default(), |sum, cell| sum.and(cell.cost)),
    }
}

#[cfg(test)]
mod tests;

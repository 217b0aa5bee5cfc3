//! Mutation-tests the assertions of cases: can each of them fail?

use std::collections::BTreeMap;

use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::attempt::{AgentTrials, Control};
use crate::case::{Case, Eval};
use crate::grade::{Verdict, grade};
use crate::mutation::{Teeth, bite};
use crate::summary::Record;
use crate::trial::{Trial, Variant};

/// `eval mutate --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MutateDocument {
    /// Whether every assertion that was tried can fail.
    holds: bool,
    cases: Vec<MutatedCase>,
}

impl MutateDocument {
    /// The results of all cases; none if nothing could be tried.
    pub fn new(cases: Vec<MutatedCase>) -> Option<Self> {
        let mut tried = cases.iter().filter_map(|one| one.teeth.as_ref()).peekable();
        tried.peek()?;
        Some(Self { holds: tried.all(Teeth::all_can_fail), cases })
    }

    /// Whether every assertion that was tried can fail.
    pub fn holds(&self) -> bool {
        self.holds
    }
}

/// One case.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MutatedCase {
    /// The eval.
    pub eval: String,
    /// The case.
    pub case: String,
    /// What was mutated.
    pub of: Basis,
    /// Why nothing was mutated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The results; none if nothing was mutated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub teeth: Option<Teeth>,
}

/// What was mutated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// Trials that passed in the last run.
    Trials,
    /// The known patch: only assertions about the repository were tried.
    KnownPatch,
    /// Nothing.
    Nothing,
}

/// Mutates the passed trials among `records`, or else the known patches, and passes each case's result to `mutated`.
/// Stops early when cancelled.
pub async fn check(
    trials: &AgentTrials,
    records: &[Record],
    cancel: &CancellationToken,
    mut mutated: impl FnMut(MutatedCase),
) {
    let eval = trials.eval();
    let passed = passed(eval, records);
    for case in &eval.cases {
        let (basis, teeth) = match mutate_trials(case, &passed) {
            Some(teeth) => (Basis::Trials, Ok(teeth)),
            None => match mutate_known_patch(case, trials, cancel).await {
                Ok(teeth) => (Basis::KnownPatch, Ok(teeth)),
                Err(reason) => (Basis::Nothing, Err(reason)),
            },
        };
        if cancel.is_cancelled() {
            return;
        }
        let (teeth, reason) = teeth.map_or_else(|reason| (None, Some(reason)), |teeth| (Some(teeth), None));
        mutated(MutatedCase { eval: eval.name.clone(), case: case.name.clone(), of: basis, reason, teeth });
    }
}

/// The trials that pass the current assertions, by case: one of each variant.
fn passed<'a>(eval: &Eval, records: &'a [Record]) -> BTreeMap<&'a str, BTreeMap<&'a Variant, &'a Trial>> {
    let mut all: BTreeMap<&str, BTreeMap<&Variant, &Trial>> = BTreeMap::new();
    for trial in records.iter().filter_map(|record| record.trial.as_ref()) {
        let Some(case) = eval.cases.iter().find(|case| case.name == trial.id.case) else { continue };
        if grade(trial, &case.assertions, case.file.threshold).1 == Verdict::Pass {
            all.entry(trial.id.case.as_str()).or_default().entry(&trial.id.variant).or_insert(trial);
        }
    }
    all
}

fn mutate_trials(case: &Case, passed: &BTreeMap<&str, BTreeMap<&Variant, &Trial>>) -> Option<Teeth> {
    let other = passed
        .iter()
        .filter(|(name, _)| **name != case.name)
        .flat_map(|(_, trials)| trials.values())
        .map(|trial| trial.output.as_str())
        .find(|output| !output.is_empty());
    let trials = passed.get(case.name.as_str())?.values();
    let bitten = trials.map(|trial| bite(trial, &case.assertions, case.file.threshold, other));
    bitten.reduce(Teeth::and)
}

/// The results, or why nothing could be mutated.
async fn mutate_known_patch(
    case: &Case,
    trials: &AgentTrials,
    cancel: &CancellationToken,
) -> Result<Teeth, String> {
    let assertions = case.assertions_of_repository();
    if case.file.known_patch.is_none() || assertions.is_empty() {
        return Err("no trial passed, and there is no known patch".to_owned());
    }
    match trials.control(case, Control::Oracle, cancel).await {
        Ok(trial) if grade(&trial, &assertions, None).1 == Verdict::Pass => {
            Ok(bite(&trial, &assertions, None, None))
        }
        Ok(_) => Err("no trial passed, and the known patch does not pass".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

//! `eval mutate`: whether the assertions of cases are able to fail.

use std::collections::BTreeMap;

use rehearsal_eval::assertion::Assertion;
use rehearsal_eval::case::Case;
use rehearsal_eval::grade::{Verdict, grade};
use rehearsal_eval::mutation::{Teeth, Tooth, bite};
use rehearsal_eval::run::Unmade;
use rehearsal_eval::summary::Record;
use rehearsal_eval::trial::{Trial, Variant};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::attempt::{Control, RealAttempts};
use super::runs::Runs;
use super::tape::Mode;
use super::{Found, attempts, open, stop_on_signal};
use crate::commands::Done;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::project::Project;
use crate::ui::{BAD, GOOD, ODD, harmless, one_line, styled};
use crate::words;

/// `eval mutate --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct MutateDocument {
    /// Whether every assertion that was tried can fail.
    holds: bool,
    cases: Vec<Bitten>,
}

/// One case.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Bitten {
    eval: String,
    case: String,
    /// What was made worse.
    of: Basis,
    /// Why nothing was, if nothing was.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// What came of it; none if nothing was tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    teeth: Option<Teeth>,
}

/// What was made worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
enum Basis {
    /// Trials that passed in the last run.
    Trials,
    /// The known patch: only what is asserted of the repository was tried.
    KnownPatch,
    /// Nothing.
    Nothing,
}

pub(super) async fn run(found: &[Found], runs: &Runs, project: &Project, context: &Context) -> Done {
    let stop = stop_on_signal()?;
    let mut cases = Vec::new();
    for found in found {
        let records = match runs.last_of(&found.eval.name)? {
            Some(run) => open(&run)?.records().to_vec(),
            None => Vec::new(),
        };
        let passed = passed(found, &records);
        let attempts = attempts(found, Mode::StandIns, project, context).await?;
        for case in &found.eval.cases {
            let bitten = match bite_trials(case, &passed) {
                Some(teeth) => Bitten::of(found, case, Basis::Trials, teeth),
                None => bite_known_patch(found, case, &attempts, &stop).await,
            };
            if stop.is_cancelled() {
                return Ok(Exit::Interrupted);
            }
            say(&bitten, context);
            cases.push(bitten);
        }
    }
    if cases.iter().all(|one| one.teeth.is_none()) {
        return Err(CliError::usage("nothing can be tried: no trial passed, and no case has a known patch")
            .hint("`rehearsal eval run` makes trials"));
    }
    let holds = cases.iter().filter_map(|one| one.teeth.as_ref()).all(Teeth::all_can_fail);
    context.ui.document(MutateDocument { holds, cases });
    Ok(if holds { Exit::Ok } else { Exit::Red })
}

/// The trials that pass by what is asserted now, by case: one of each who was measured.
fn passed<'a>(found: &Found, records: &'a [Record]) -> BTreeMap<&'a str, BTreeMap<&'a Variant, &'a Trial>> {
    let mut all: BTreeMap<&str, BTreeMap<&Variant, &Trial>> = BTreeMap::new();
    for trial in records.iter().filter_map(|record| record.trial.as_ref()) {
        let Some(case) = found.eval.cases.iter().find(|case| case.name == trial.id.case) else { continue };
        if grade(trial, &case.assertions, case.file.threshold).1 == Verdict::Pass {
            all.entry(trial.id.case.as_str()).or_default().entry(&trial.id.variant).or_insert(trial);
        }
    }
    all
}

fn bite_trials(case: &Case, passed: &BTreeMap<&str, BTreeMap<&Variant, &Trial>>) -> Option<Teeth> {
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

async fn bite_known_patch(
    found: &Found,
    case: &Case,
    attempts: &RealAttempts,
    stop: &CancellationToken,
) -> Bitten {
    let assertions: Vec<Assertion> =
        case.assertions.iter().filter(|one| one.is_of_repository()).cloned().collect();
    if case.file.known_patch.is_none() || assertions.is_empty() {
        return Bitten::not(found, case, "no trial passed, and there is no known patch");
    }
    match attempts.control(case, Control::Oracle, stop).await {
        Ok(trial) if grade(&trial, &assertions, None).1 == Verdict::Pass => {
            Bitten::of(found, case, Basis::KnownPatch, bite(&trial, &assertions, None, None))
        }
        Ok(_) => Bitten::not(found, case, "no trial passed, and the known patch does not pass"),
        Err(Unmade::Skipped(reason) | Unmade::Failed(reason)) => Bitten::not(found, case, &reason),
        Err(Unmade::Cancelled) => Bitten::not(found, case, "it was stopped"),
    }
}

impl Bitten {
    fn of(found: &Found, case: &Case, of: Basis, teeth: Teeth) -> Self {
        let (eval, case) = (found.eval.name.clone(), case.name.clone());
        Self { eval, case, of, reason: None, teeth: Some(teeth) }
    }

    fn not(found: &Found, case: &Case, reason: &str) -> Self {
        let (eval, case) = (found.eval.name.clone(), case.name.clone());
        Self { eval, case, of: Basis::Nothing, reason: Some(reason.to_owned()), teeth: None }
    }
}

fn say(bitten: &Bitten, context: &Context) {
    let ui = context.ui;
    let name = format!("{}, {}", bitten.eval, bitten.case);
    let Some(teeth) = &bitten.teeth else {
        let reason = bitten.reason.as_deref().unwrap_or_default();
        ui.say(format!("{} {name}: {}", styled(ODD, "?"), one_line(reason, 200)));
        return;
    };
    let all = words::count(teeth.assertions.len() as u64, "assertion");
    let mutants = words::count(teeth.mutants as u64, "mutant");
    let of = if bitten.of == Basis::KnownPatch { " of the known patch" } else { "" };
    let toothless: Vec<&Tooth> = teeth.assertions.iter().filter(|one| !one.can_fail()).collect();
    if toothless.is_empty() {
        ui.say(format!("{} {name}: {all} can fail ({mutants}{of})", styled(GOOD, "✓")));
    } else {
        let count = toothless.len();
        ui.say(format!("{} {name}: {count} of {all} cannot fail ({mutants}{of})", styled(BAD, "✗")));
    }
    for tooth in toothless {
        ui.say(format!("    cannot fail: {}", one_line(&harmless(&tooth.name), 160)));
    }
    for survivor in &teeth.survivors {
        ui.say(format!("    survives: {}", one_line(&harmless(survivor), 160)));
    }
}

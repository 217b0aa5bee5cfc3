//! Checks the cases themselves: the known patch must pass, and doing nothing must fail.

use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::assertion::Assertion;
use crate::attempt::{AgentTrials, Control};
use crate::case::Case;
use crate::grade::{Verdict, grade};
use crate::run::TrialError;
use crate::trial::Trial;

/// `eval oracle --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OracleDocument {
    /// Whether every case that can be tried tells good from bad.
    holds: bool,
    cases: Vec<CheckedCase>,
}

impl OracleDocument {
    /// The results of all cases.
    pub fn new(cases: Vec<CheckedCase>) -> Self {
        Self { holds: cases.iter().all(CheckedCase::holds), cases }
    }

    /// Whether every case that can be tried tells good from bad.
    pub fn holds(&self) -> bool {
        self.holds
    }
}

/// One case.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CheckedCase {
    /// The eval.
    pub eval: String,
    /// The case.
    pub case: String,
    /// The result of the known patch; none without one.
    pub known_patch: Option<ControlResult>,
    /// The result of doing nothing; none if no assertion is about the repository.
    pub nothing: Option<ControlResult>,
}

/// The result of the known patch or of doing nothing.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ControlResult {
    /// The verdict.
    pub verdict: Verdict,
    /// Why it did not pass.
    pub because: Vec<String>,
}

impl CheckedCase {
    /// Whether the known patch passes and doing nothing fails.
    pub fn holds(&self) -> bool {
        let is = |result: &Option<ControlResult>, verdict: Verdict| {
            result.as_ref().is_none_or(|result| result.verdict == verdict)
        };
        is(&self.known_patch, Verdict::Pass) && is(&self.nothing, Verdict::Fail)
    }
}

/// Checks the cases of an eval one after the other, and passes each result to `checked`. Stops early when cancelled.
pub async fn check(trials: &AgentTrials, cancel: &CancellationToken, mut checked: impl FnMut(CheckedCase)) {
    for case in &trials.eval().cases {
        let result = check_case(case, trials, cancel).await;
        if cancel.is_cancelled() {
            return;
        }
        checked(result);
    }
}

async fn check_case(case: &Case, trials: &AgentTrials, cancel: &CancellationToken) -> CheckedCase {
    let assertions = case.assertions_of_repository();
    let (eval, name) = (trials.eval().name.clone(), case.name.clone());
    let mut checked = CheckedCase { eval, case: name, known_patch: None, nothing: None };
    if assertions.is_empty() {
        return checked;
    }
    if case.file.known_patch.is_some() {
        checked.known_patch = result(trials.control(case, Control::Oracle, cancel).await, &assertions);
    }
    checked.nothing = result(trials.control(case, Control::NoOp, cancel).await, &assertions);
    checked
}

fn result(made: Result<Trial, TrialError>, assertions: &[Assertion]) -> Option<ControlResult> {
    match made {
        Ok(trial) => {
            let (graded, verdict) = grade(&trial, assertions, None);
            let because =
                graded.iter().filter_map(|one| Some(format!("{}: {}", one.name, one.grade.objection()?)));
            Some(ControlResult { verdict, because: because.collect() })
        }
        Err(TrialError::Cancelled) => None,
        Err(error) => Some(ControlResult { verdict: Verdict::Error, because: vec![error.to_string()] }),
    }
}

//! `eval oracle`: whether cases can tell good from bad.

use rehearsal_eval::assertion::Assertion;
use rehearsal_eval::case::Case;
use rehearsal_eval::grade::{Grade, Verdict, grade};
use rehearsal_eval::run::Unmade;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::attempt::{Control, RealAttempts};
use super::tape::Mode;
use super::{Found, attempts, stop_on_signal};
use crate::commands::Done;
use crate::context::Context;
use crate::exit::Exit;
use crate::project::Project;
use crate::ui::{BAD, GOOD, ODD, harmless, one_line, styled};

/// `eval oracle --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct OracleDocument {
    /// Whether every case that can be tried tells good from bad.
    holds: bool,
    cases: Vec<Tried>,
}

/// One case.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Tried {
    eval: String,
    case: String,
    /// What the known patch came to; none without one.
    known_patch: Option<Told>,
    /// What doing nothing came to; none if nothing is asserted of the repository.
    nothing: Option<Told>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Told {
    verdict: Verdict,
    because: Vec<String>,
}

impl Tried {
    /// The known patch must pass, and nothing must not.
    fn holds(&self) -> bool {
        let is =
            |told: &Option<Told>, wanted: Verdict| told.as_ref().is_none_or(|told| told.verdict == wanted);
        is(&self.known_patch, Verdict::Pass) && is(&self.nothing, Verdict::Fail)
    }
}

pub(super) async fn run(found: &[Found], project: &Project, context: &Context) -> Done {
    let stop = stop_on_signal()?;
    let mut cases = Vec::new();
    for found in found {
        let attempts = attempts(found, Mode::StandIns, project, context).await?;
        for case in &found.eval.cases {
            let tried = try_out(&found.eval.name, case, &attempts, &stop).await;
            if stop.is_cancelled() {
                return Ok(Exit::Interrupted);
            }
            say(&tried, context);
            cases.push(tried);
        }
    }
    let holds = cases.iter().all(Tried::holds);
    context.ui.document(OracleDocument { holds, cases });
    Ok(if holds { Exit::Ok } else { Exit::Red })
}

async fn try_out(eval: &str, case: &Case, attempts: &RealAttempts, stop: &CancellationToken) -> Tried {
    let assertions: Vec<Assertion> =
        case.assertions.iter().filter(|one| one.is_of_repository()).cloned().collect();
    let mut tried =
        Tried { eval: eval.to_owned(), case: case.name.clone(), known_patch: None, nothing: None };
    if assertions.is_empty() {
        return tried;
    }
    if case.file.known_patch.is_some() {
        tried.known_patch = told(attempts.control(case, Control::Oracle, stop).await, &assertions);
    }
    tried.nothing = told(attempts.control(case, Control::NoOp, stop).await, &assertions);
    tried
}

/// What a control came to, by what is asserted of the repository.
fn told(made: Result<rehearsal_eval::trial::Trial, Unmade>, assertions: &[Assertion]) -> Option<Told> {
    match made {
        Ok(trial) => {
            let (graded, verdict) = grade(&trial, assertions, None);
            let because = graded.into_iter().filter_map(|one| match one.grade {
                Grade::Broken { because } | Grade::Unknown { because } => {
                    Some(format!("{}: {because}", one.name))
                }
                Grade::Holds { .. } => None,
            });
            Some(Told { verdict, because: because.collect() })
        }
        Err(Unmade::Skipped(reason) | Unmade::Failed(reason)) => {
            Some(Told { verdict: Verdict::Error, because: vec![reason] })
        }
        Err(Unmade::Cancelled) => None,
    }
}

fn say(tried: &Tried, context: &Context) {
    let ui = context.ui;
    let name = format!("{}, {}", tried.eval, tried.case);
    let Some(nothing) = &tried.nothing else {
        ui.say(format!(
            "{} {name}: nothing is asserted of the repository, so nothing can be tried",
            styled(ODD, "?")
        ));
        return;
    };
    let mark = if tried.holds() { styled(GOOD, "✓") } else { styled(BAD, "✗") };
    let patch = tried.known_patch.as_ref().map_or("there is no known patch", |told| match told.verdict {
        Verdict::Pass => "the known patch passes",
        _ => "the known patch does not pass",
    });
    let idle = match nothing.verdict {
        Verdict::Fail => "doing nothing fails",
        Verdict::Pass => "doing nothing passes, so it cannot fail",
        _ => "doing nothing cannot be graded",
    };
    ui.say(format!("{mark} {name}: {patch}; {idle}"));
    let patched = tried.known_patch.iter().filter(|told| told.verdict != Verdict::Pass);
    let idle = tried.nothing.iter().filter(|told| told.verdict == Verdict::Error);
    for because in patched.chain(idle).flat_map(|told| &told.because) {
        ui.say(format!("    {}", one_line(&harmless(because), 200)));
    }
}

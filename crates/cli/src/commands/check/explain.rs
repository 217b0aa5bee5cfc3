//! `check --explain`: what was found, from which file, and what would run.

use camino::Utf8Path;
use rehearsal_testing::{Check, Stage};
use serde::Serialize;

use super::CheckArgs;
use super::live::{checker, wanted};
use crate::commands::Done;
use crate::context::Context;
use crate::exit::Exit;
use crate::ui::{BOLD, harmless, styled};

/// `check --explain --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct CheckExplanation {
    /// What would be built and linted, in its order.
    checks: Vec<Check>,
    /// Whether the tests would run; `test --explain` says how.
    tests: bool,
    /// What else there is to know.
    notes: Vec<String>,
}

pub(super) async fn run(args: &CheckArgs, context: &Context) -> Done {
    let wanted = wanted(args);
    let request = checker(args, context).await?.request(&wanted);
    // Files of the run would be there; nothing is written now.
    let (checks, notes) = request.checks(Utf8Path::new("SCRATCH"));
    for stage in [Stage::Build, Stage::Lint] {
        for check in checks.iter().filter(|check| check.stage == stage) {
            show(check, context);
        }
    }
    if checks.is_empty() {
        context.ui.say("nothing to build or lint was found here");
    }
    let tests = wanted.stages.contains(&Stage::Test);
    if tests {
        context.ui.say(format!("{}: `rehearsal test --explain` says how", styled(BOLD, "test")));
    }
    for note in &notes {
        context.ui.say(format!("note: {}", harmless(note)));
    }
    context.ui.document(CheckExplanation { checks, tests, notes });
    Ok(Exit::Ok)
}

fn show(check: &Check, context: &Context) {
    let place = if check.root.as_str().is_empty() { "." } else { check.root.as_str() };
    let head = format!("{}: {} in {}", check.stage.name(), check.tool, place);
    context.ui.say(styled(BOLD, harmless(&head)));
    for evidence in &check.evidence {
        context.ui.say(format!("  found by {}", harmless(&evidence.to_string())));
    }
    let plan = &check.plan;
    let would = if plan.missing.is_some() { "cannot run" } else { "would run" };
    for command in plan.prepare.iter().chain([&plan.command]) {
        context.ui.say(format!("  {would}: {}", harmless(&command.to_string())));
    }
    if let Some(missing) = &plan.missing {
        context.ui.say(format!("  because {}", harmless(missing)));
    }
    for note in &plan.notes {
        context.ui.say(format!("  note: {}", harmless(note)));
    }
}

//! `test --explain`: what was found, from which file, and what would run.

use camino::Utf8Path;
use rehearsal_testing::{Candidate, RunPlan, plan};
use schemars::JsonSchema;
use serde::Serialize;

use super::TestArgs;
use super::live::wanted;
use super::setup::tester;
use crate::commands::Done;
use crate::context::Context;
use crate::exit::Exit;
use crate::ui::{BOLD, DIM, harmless, styled};

/// `test --explain --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ExplainDocument {
    /// What was found, chosen or not.
    found: Vec<Candidate>,
    /// What would run.
    plans: Vec<RunPlan>,
    /// What else there is to know.
    notes: Vec<String>,
}

pub(super) async fn run(args: &TestArgs, context: &Context) -> Done {
    let tester = tester(args.choices(), context).await?;
    let request = tester.request(&wanted(args))?;
    let (chosen, notes) = request.candidates();
    // Files of the run would be there; nothing is written now.
    let scratch = Utf8Path::new("SCRATCH");
    let wish = request.wish();
    let plans: Vec<RunPlan> = chosen
        .iter()
        .flat_map(|candidate| plan(candidate, &wish, &request.machine, &request.root, scratch))
        .collect();
    let found = if request.command.is_some() { chosen } else { request.found() };
    for candidate in &found {
        show_candidate(candidate, context);
    }
    if found.is_empty() {
        context.ui.say("no tests were found here");
    }
    for plan in &plans {
        show_plan(plan, context);
    }
    notes.iter().for_each(|note| context.ui.say(format!("note: {}", harmless(note))));
    context.ui.document(ExplainDocument { found, plans, notes });
    Ok(Exit::Ok)
}

fn show_candidate(candidate: &Candidate, context: &Context) {
    let place = if candidate.root.as_str().is_empty() { "." } else { candidate.root.as_str() };
    let head = format!("{} in {}", candidate.framework, harmless(place));
    match &candidate.passed_over {
        None => context.ui.say(styled(BOLD, head)),
        Some(why) => context.ui.say(styled(DIM, format!("{head} (not run: {})", harmless(why)))),
    }
    for evidence in &candidate.evidence {
        context.ui.say(format!("  found by {}", harmless(&evidence.to_string())));
    }
}

fn show_plan(plan: &RunPlan, context: &Context) {
    let would = if plan.missing.is_some() { "cannot run" } else { "would run" };
    context.ui.say(format!("{would}: {}", harmless(&plan.command.to_string())));
    if let Some(missing) = &plan.missing {
        context.ui.say(format!("  because {}", harmless(missing)));
    }
    for note in &plan.notes {
        context.ui.say(format!("  note: {}", harmless(note)));
    }
}

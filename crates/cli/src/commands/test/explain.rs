//! `test --explain`: what was found, from which file, and what would run.

use camino::Utf8Path;
use rehearsal_app::testing::tester;
use rehearsal_engine::Choice;
use rehearsal_testing::{Affected, Candidate, RunPlan, TestReport, WorkingTree};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::TestArgs;
use super::answer::nothing_changed;
use super::live::wanted;
use crate::commands::Done;
use crate::context::Context;
use crate::exit::Exit;
use crate::ui::{BOLD, DIM, harmless, styled};

/// `test --explain --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ExplainDocument {
    /// What was found, chosen or not.
    found: Vec<Candidate>,
    /// What would run.
    plans: Vec<RunPlan>,
    /// Which tests were chosen of each project, and why, if only those were wanted that a change reaches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    affected: Vec<Affected>,
    /// What else there is to know.
    notes: Vec<String>,
}

pub(super) async fn run(args: &TestArgs, context: &Context) -> Done {
    let tester = tester(&context.project()?, args.choices()).await?;
    let request = tester.request(&wanted(args))?;
    let wanted = wanted(args);
    let tree = WorkingTree::read(&tester.root).await.ok();
    let cancel = CancellationToken::new();
    let Choice { projects, not_run, notes } =
        tester.choose(&request, wanted.affected.as_ref(), tree.as_ref(), &cancel).await?;
    // Files of the run would be there; nothing is written now.
    let scratch = Utf8Path::new("SCRATCH");
    let found = if request.command.is_some() { request.candidates().0 } else { request.found() };
    for candidate in &found {
        show_candidate(candidate, context);
    }
    if found.is_empty() {
        context.ui.say("no tests were found here");
    }
    let mut plans: Vec<RunPlan> = Vec::new();
    for project in &projects {
        if let Some(affected) = &project.affected {
            show_affected(affected, context);
        }
        let of_project = request.plans(project, scratch);
        for plan in &of_project {
            show_plan(plan, context);
        }
        plans.extend(of_project);
    }
    for report in &not_run {
        context.ui.say(format!("would not run: {}", why_not(report, context)));
    }
    let affected = projects
        .into_iter()
        .filter_map(|project| project.affected)
        .chain(not_run.into_iter().filter_map(|report| report.affected))
        .collect();
    for note in &notes {
        context.ui.say(format!("note: {}", harmless(note)));
    }
    context.ui.document(ExplainDocument { found, plans, affected, notes });
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

fn show_affected(affected: &Affected, context: &Context) {
    context.ui.say(format!("{} affected: {}", affected.framework, harmless(&affected.words())));
    if let Some(skipped) = affected.skipped_words() {
        context.ui.say(format!("  left out: {}", harmless(&skipped)));
    }
}

/// Why a project need not be run.
fn why_not(report: &TestReport, context: &Context) -> String {
    let reasons = report.reasons.iter().cloned().chain(nothing_changed(report, context));
    format!("{}: {}", report.framework, harmless(&reasons.collect::<Vec<_>>().join(", ")))
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

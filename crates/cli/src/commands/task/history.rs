//! `task history TASK`: the log of a task.

use clap::Args;
use rehearsal_app::tasks;
use rehearsal_core::transition::TaskInput;
use rehearsal_core::{Actor, Event, EventKind};

use super::Done;
use crate::context::Context;
use crate::exit::Exit;
use crate::ui::{BOLD, DIM, harmless, one_line, styled, table};
use crate::words;

#[derive(Debug, Args)]
#[command(after_help = "Example: rehearsal task history k3f

Every change of a task is an event: when it happened, who made it happen (a person, a worker or an agent's run), and what changed.")]
pub(crate) struct HistoryArgs {
    /// The task's id, or a unique prefix of it
    task: String,
    /// Maximum number of events; the newest are shown
    #[arg(long, default_value_t = 100)]
    limit: u32,
}

pub(super) async fn run(args: HistoryArgs, context: &Context) -> Done {
    let history = tasks::history(&context.project()?, &args.task, args.limit).await?;
    let ui = context.ui;
    ui.say(format!("{}  {}", styled(BOLD, &history.task), harmless(&history.title)));
    if history.left_out > 0 {
        let older = words::count(history.left_out, "older event");
        ui.say(styled(DIM, format!("… {older}; `--limit` shows more")));
    }
    let row =
        |event: &Event| vec![words::moment(event.at), who(&event.actor), one_line(&what(&event.kind), 160)];
    let rows: Vec<Vec<String>> = history.events.iter().map(row).collect();
    ui.say(table(&["TIME", "WHO", "WHAT"], &rows));
    ui.document(history);
    Ok(Exit::Ok)
}

fn who(actor: &Actor) -> String {
    match actor {
        Actor::User => "user".to_owned(),
        Actor::Person(person) => one_line(&person.to_string(), 60),
        Actor::Worker(worker) => format!("worker {worker}"),
        Actor::Run(run) => format!("run {run}"),
    }
}

fn what(kind: &EventKind) -> String {
    match kind {
        EventKind::TaskAdded { task } => format!("added to flow {}", task.flow),
        EventKind::TaskChanged { input, from, to, .. } if from == to => changed(input),
        EventKind::TaskChanged { input, from, to, .. } => format!("{from} -> {to}: {}", changed(input)),
        EventKind::RunStarted { run } => format!("run {} started with {}", run.id, run.agent),
        EventKind::RunEnded { run, end } => format!("run {run} ended: {}", end.verdict.outcome),
        other => other.name().replace('_', " "),
    }
}

fn changed(input: &TaskInput) -> String {
    match input {
        TaskInput::Edit { .. } => "edited".to_owned(),
        TaskInput::Claim { run, .. } => format!("claimed for run {run}"),
        TaskInput::TakeOver { run, .. } => format!("taken over by run {run}"),
        TaskInput::Lose { of, .. } => format!("lost its worker {of}"),
        TaskInput::Redo { .. } => "the agent has to work again".to_owned(),
        TaskInput::Adopt { from, .. } => format!("continued after worker {from} died"),
        TaskInput::Offer { commit, .. } => format!("about to push {commit:.10}"),
        TaskInput::StepDone { step, .. } => format!("step {} done", step + 1),
        TaskInput::StepFailed { step, failure, .. } => {
            format!("step {} failed: {}", step + 1, failure.reason())
        }
        TaskInput::Decide { approve, comment } => {
            with(if *approve { "approved" } else { "rejected" }, comment)
        }
        TaskInput::EndRun { outcome, .. } => format!("run ended: {outcome}"),
        TaskInput::FallBack { to } => format!("agent {to} takes over"),
        TaskInput::Release { .. } => "released".to_owned(),
        TaskInput::Block { reason } => with("blocked", reason),
        TaskInput::Unblock => "unblocked".to_owned(),
        TaskInput::Answer { text } => with("answered", text),
        TaskInput::Finish => "marked as done".to_owned(),
        TaskInput::Cancel => "cancelled".to_owned(),
        TaskInput::Retry => "started over".to_owned(),
    }
}

fn with(what: &str, text: &str) -> String {
    if text.trim().is_empty() { what.to_owned() } else { format!("{what}: {}", text.trim()) }
}

//! What a worker came to, in words: each task, what is left, and what to type next.

use std::time::Duration;

use rehearsal_app::command_line;
use rehearsal_app::work::{EndName, WorkDocument, WorkedTask};
use rehearsal_core::flow::End;
use rehearsal_core::{HoldCause, NextAction, OutcomeName, PullRequestRef, WaitFor};

use crate::commands::run;
use crate::context::Context;
use crate::exit::Exit;
use crate::ui::{BAD, BOLD, GOOD, ODD, harmless, one_line, styled, table};
use crate::words;

pub(super) fn show(document: &WorkDocument, context: &Context) {
    let ui = context.ui;
    if !document.tasks.is_empty() {
        let rows: Vec<Vec<String>> = document.tasks.iter().map(row).collect();
        let headings = ["TASK", "STATUS", "BRANCH", "PULL REQUEST", "MERGED", "RUNS", "COST", "TITLE"];
        ui.say(format!("\n{}", table(&headings, &rows)));
    }
    let left = document.tasks.iter().filter(|task| task.end != Some(End::Success));
    for task in left.chain(&document.stuck) {
        if let Some(because) = &task.because {
            let until = task
                .until
                .map_or_else(String::new, |until| format!(", {}", words::relative(until, context.now())));
            ui.say(format!("{}: {}{until}", styled(BOLD, &task.id), one_line(because, 160)));
        }
    }
    for task in &document.tasks {
        if let Some(commit) = &task.kept {
            let where_it_is =
                format!("commit {commit:.10} has its work, and no branch does: its flow does not push");
            ui.say(format!("{}: {where_it_is}", styled(BOLD, &task.id)));
        }
    }
    ui.say("");
    if document.runs > 0 {
        ui.say(cost_line(document));
    }
    for line in words::confined_agents(&document.confined_by) {
        ui.say(harmless(&line));
    }
    for notice in &document.notices {
        ui.say(format!("note: {}", harmless(&words::notice(notice))));
    }
    ui.say(what_happened(document));
    for lane in &document.held {
        ui.say(format!("{} is held: {}", lane.lane, harmless(&lane.hold.reason)));
    }
    for command in what_to_do(document) {
        ui.say(format!("next: {command}"));
    }
}

fn cost_line(document: &WorkDocument) -> String {
    format!(
        "{} in {}, cost {}{}",
        words::count(u64::from(document.runs), "run"),
        words::duration(Duration::from_millis(document.duration_ms)),
        words::cost(document.cost_usd),
        match (document.cost_usd, document.runs_without_cost) {
            (None, _) | (_, 0) => String::new(),
            (Some(_), runs) => format!(" ({} did not tell)", words::count(u64::from(runs), "run")),
        }
    )
}

fn row(task: &WorkedTask) -> Vec<String> {
    let dash = || "-".to_owned();
    vec![
        task.id.to_string(),
        task.status.clone(),
        task.branch.as_ref().map_or_else(dash, |branch| one_line(branch, 40)),
        task.pull_request.as_ref().map_or_else(dash, shown),
        task.merged.as_ref().map_or_else(dash, |commit| format!("{commit:.10}")),
        task.runs.to_string(),
        words::cost(task.cost_usd),
        one_line(&task.title, 60),
    ]
}

/// Where to look at it, if that is a page.
pub(crate) fn shown(pull_request: &PullRequestRef) -> String {
    let url = &pull_request.url;
    if url.starts_with("http") { one_line(url, 80) } else { format!("#{}", pull_request.number) }
}

fn what_happened(document: &WorkDocument) -> String {
    let failed = document.tasks.iter().filter(|task| task.end == Some(End::Failure)).count() as u64;
    let done = document.tasks.iter().filter(|task| task.end == Some(End::Success)).count() as u64;
    let (style, text) = match document.end {
        EndName::Interrupted => (ODD, "stopped on request; nothing is lost".to_owned()),
        EndName::BudgetReached => {
            (ODD, format!("{done} done; nothing more is begun: that was all that it may cost"))
        }
        EndName::Idle if document.open == 0 && document.tasks.is_empty() => {
            (ODD, "there is nothing to do".to_owned())
        }
        EndName::Idle if failed > 0 => (BAD, format!("{} failed, {done} done", words::count(failed, "task"))),
        EndName::Idle if document.open == 0 => (GOOD, format!("{} done", words::count(done, "task"))),
        EndName::Idle => {
            let human = match document.blocked {
                0 => String::new(),
                1 => ", 1 of them needs a human".to_owned(),
                more => format!(", {more} of them need a human"),
            };
            (ODD, format!("{done} done; nothing more can be done now: {} open{human}", document.open))
        }
        EndName::Once => (GOOD, "one task was worked on, as asked".to_owned()),
    };
    styled(style, text)
}

fn what_to_do(document: &WorkDocument) -> Vec<String> {
    let mut commands: Vec<String> = Vec::new();
    let mut put = |command: String| {
        if !commands.contains(&command) {
            commands.push(command);
        }
    };
    for lane in document.held.iter().filter(|held| held.hold.until.is_none()) {
        put(command_line::line(&NextAction::Resume { lane: lane.lane.clone() }));
    }
    let told = document.tasks.iter().chain(&document.stuck);
    for command in told.filter_map(|task| task.next.clone()).take(COMMANDS_NAMED) {
        put(command);
    }
    if let Some(command) = &document.get_it {
        put(command.clone());
    }
    if document.tasks.is_empty() && document.open == 0 {
        put("rehearsal task add TITLE --flow pull-request".into());
    } else if document.tasks.is_empty() && document.blocked > 0 {
        put("rehearsal task list --status blocked".into());
    } else if let (true, Some(task)) = (commands.is_empty(), document.stuck.first()) {
        commands.push(command_line::line(&NextAction::Why { task: task.id.clone() }));
    }
    commands
}

/// More are in the listings.
const COMMANDS_NAMED: usize = 5;

/// What the end of a worker means for a script.
pub(crate) fn exit_of(document: &WorkDocument, interrupted: Exit) -> Exit {
    if document.end == EndName::Interrupted {
        return interrupted;
    }
    if document.end == EndName::BudgetReached {
        return Exit::Budget;
    }
    let failed = document.tasks.iter().filter(|task| task.end == Some(End::Failure));
    if failed.clone().next().is_some() {
        return run::exit_of_failures(failed.map(|task| task.last_outcome.as_ref()));
    }
    if let Some(held) = document.held.iter().find(|_| document.open > 0) {
        return match held.hold.cause {
            HoldCause::Person => Exit::NeedsHuman,
            HoldCause::System(OutcomeName::SandboxUnavailable) => Exit::Sandbox,
            HoldCause::System(name) if name.passes_with_time() => Exit::TryLater,
            HoldCause::System(_) => Exit::Agent,
        };
    }
    let needs_human = match document.end {
        EndName::Once => document.tasks.iter().any(|task| task.waits_for == Some(WaitFor::Human)),
        EndName::Idle | EndName::BudgetReached | EndName::Interrupted => {
            document.blocked > 0 || !document.stuck.is_empty()
        }
    };
    let mut open = document.tasks.iter().filter(|task| task.end.is_none()).chain(&document.stuck).peekable();
    let spent = document.tasks.iter().filter(|task| task.is_spent && task.waits_for.is_some()).count() as u64;
    if document.blocked <= spent && open.peek().is_some() && open.all(|task| task.is_spent) {
        return Exit::Budget;
    }
    if needs_human { Exit::NeedsHuman } else { Exit::Ok }
}

//! What a loop came to, in words.

use std::time::Duration;

use rehearsal_app::command_line::quote;
use rehearsal_core::{Outcome, OutcomeName, SessionName};
use rehearsal_engine::{WorkEnd, WorkSummary};

use crate::context::Context;
use crate::ui::{BAD, GOOD, ODD, harmless, one_line, styled, table};
use crate::words;

/// Prints the summary.
pub(crate) fn show(summary: &WorkSummary, context: &Context) {
    let ui = context.ui;
    if !summary.tasks.is_empty() {
        let rows: Vec<Vec<String>> = summary
            .tasks
            .iter()
            .map(|task| {
                vec![
                    task.id.to_string(),
                    task.status().to_owned(),
                    task.attempts.to_string(),
                    one_line(&task.title, 70),
                ]
            })
            .collect();
        ui.say(format!("\n{}", table(&["TASK", "STATUS", "ATTEMPTS", "TITLE"], &rows)));
    }
    ui.say(format!(
        "\n{} in {}: {} done, {} open, cost {}{}, tokens {}",
        words::count(u64::from(summary.iterations), "iteration"),
        words::duration(Duration::from_millis(summary.duration_ms)),
        summary.done_tasks,
        summary.open_tasks,
        words::cost(summary.cost_usd),
        if summary.cost_usd.is_some() && summary.runs_without_cost > 0 {
            format!(" ({} did not tell)", words::count(u64::from(summary.runs_without_cost), "run"))
        } else {
            String::new()
        },
        words::tokens(summary.tokens),
    ));
    for line in words::confined_agents(&summary.confined_by) {
        ui.say(harmless(&line));
    }
    for notice in &summary.notices {
        ui.say(format!("note: {}", harmless(&words::notice(notice))));
    }
    ui.say(what_happened(&summary.end, summary, context));
    for line in what_to_do(&summary.end, summary) {
        ui.say(line);
    }
}

fn what_happened(end: &WorkEnd, summary: &WorkSummary, context: &Context) -> String {
    let (style, text) = match end {
        WorkEnd::NothingToDo | WorkEnd::Idle | WorkEnd::Once => {
            (ODD, format!("session `{}` has no open tasks", session_of(summary)))
        }
        WorkEnd::AllDone => (GOOD, "all tasks are done".into()),
        WorkEnd::Complete { open_tasks } => {
            let open = words::count(*open_tasks, "task");
            (GOOD, format!("the agent says that all is complete; {open} not marked as done"))
        }
        WorkEnd::Blocked { why } => (ODD, format!("the agent is blocked: {why}")),
        WorkEnd::NeedsHuman { .. } => (ODD, "what is left needs a human:".into()),
        WorkEnd::SomeFailed { failed } => (BAD, format!("{} failed", words::count(*failed, "task"))),
        WorkEnd::MaxIterations => {
            let used = match summary.iterations {
                1 => "the one iteration is used".to_owned(),
                used => format!("all {used} iterations are used"),
            };
            (ODD, used)
        }
        WorkEnd::BudgetReached { spent_usd } => {
            (ODD, format!("the budget is reached: {} spent", words::cost(Some(*spent_usd))))
        }
        WorkEnd::TooManyFailures { last } => {
            (BAD, format!("too many failed runs in a row; the last one: {last}"))
        }
        WorkEnd::LineStopped { cause } => (BAD, format!("stopped, because going on helps no task: {cause}")),
        WorkEnd::WaitTooLong { wait, until } => {
            let when = words::relative(*until, context.now());
            (ODD, format!("{wait}: it may go on {when}, which is longer than --max-wait"))
        }
        WorkEnd::Interrupted => (ODD, "stopped on request; nothing is lost".into()),
    };
    styled(style, harmless(&text))
}

fn what_to_do(end: &WorkEnd, summary: &WorkSummary) -> Vec<String> {
    let session = quote(session_of(summary));
    let next = |command: String| vec![format!("next: {command}")];
    match end {
        WorkEnd::NothingToDo | WorkEnd::Idle | WorkEnd::Once => {
            next(format!("rehearsal task add TITLE --session {session}"))
        }
        WorkEnd::AllDone | WorkEnd::BudgetReached { .. } => Vec::new(),
        WorkEnd::Complete { .. } => next(format!("rehearsal task list --session {session}")),
        WorkEnd::Blocked { .. } => next(format!("rehearsal task list --session {session} --status blocked")),
        WorkEnd::NeedsHuman { waiting } => {
            let mut lines: Vec<String> =
                waiting.iter().take(TASKS_NAMED).map(|task| format!("- {}", harmless(task))).collect();
            lines.extend(next("rehearsal why TASK".into()));
            lines
        }
        WorkEnd::SomeFailed { .. } => {
            next(format!("rehearsal task list --session {session} --status failed"))
        }
        WorkEnd::TooManyFailures { .. } => {
            summary.runs.last().map(|run| next(format!("rehearsal runs show {run}"))).unwrap_or_default()
        }
        WorkEnd::LineStopped { cause } => {
            vec!["no task lost an attempt".into(), format!("hint: {}", cure(cause))]
        }
        WorkEnd::MaxIterations | WorkEnd::WaitTooLong { .. } | WorkEnd::Interrupted => {
            next(format!("rehearsal run {session}"))
        }
    }
}

fn session_of(summary: &WorkSummary) -> &str {
    summary.session.as_ref().map_or("", SessionName::as_str)
}

/// More are in the listings.
const TASKS_NAMED: usize = 20;

/// What to do about a failure of the system.
pub(crate) fn cure(cause: &Outcome) -> &'static str {
    match cause.name() {
        OutcomeName::AuthFailed => {
            "set the agent's key in your environment, or log its CLI in; `rehearsal doctor` shows which one is missing"
        }
        OutcomeName::AgentMissing => {
            "install the agent's CLI, or set `program:` in .rehearsal/config.yaml; `rehearsal agent list` shows what is found"
        }
        OutcomeName::PermissionDenied => {
            "allow the tool in the agent's settings, or run with `--trust` where that is safe"
        }
        OutcomeName::SandboxUnavailable => "`rehearsal doctor` shows what the sandbox needs",
        OutcomeName::DiskFull => "free some space, then run it again",
        _ => "`rehearsal runs list` and `rehearsal logs RUN` show what happened",
    }
}

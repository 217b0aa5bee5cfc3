//! What a loop came to, in words.

use std::time::Duration;

use rehearsal_core::{Outcome, OutcomeName};
use rehearsal_engine::{LoopEnd, LoopSummary};

use crate::context::Context;
use crate::ui::{BAD, GOOD, ODD, harmless, one_line, styled, table};
use crate::words;

/// Prints the summary.
pub(crate) fn show(summary: &LoopSummary, context: &Context) {
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
    ui.say(what_happened(&summary.end, summary, context));
    for line in what_to_do(&summary.end, summary) {
        ui.say(line);
    }
}

fn what_happened(end: &LoopEnd, summary: &LoopSummary, context: &Context) -> String {
    let (style, text) = match end {
        LoopEnd::NothingToDo => (ODD, format!("session `{}` has no open tasks", summary.session)),
        LoopEnd::AllDone => (GOOD, "all tasks are done".into()),
        LoopEnd::Complete { open_tasks } => {
            let open = words::count(*open_tasks, "task");
            (GOOD, format!("the agent says that all is complete; {open} not marked as done"))
        }
        LoopEnd::Blocked { why } => (ODD, format!("the agent is blocked: {why}")),
        LoopEnd::NeedsHuman { .. } => (ODD, "what is left needs a human:".into()),
        LoopEnd::SomeFailed { failed } => (BAD, format!("{} failed", words::count(*failed, "task"))),
        LoopEnd::MaxIterations => {
            let used = match summary.iterations {
                1 => "the one iteration is used".to_owned(),
                used => format!("all {used} iterations are used"),
            };
            (ODD, used)
        }
        LoopEnd::BudgetReached { spent_usd } => {
            (ODD, format!("the budget is reached: {} spent", words::cost(Some(*spent_usd))))
        }
        LoopEnd::TooManyFailures { last } => {
            (BAD, format!("too many failed runs in a row; the last one: {last}"))
        }
        LoopEnd::LineStopped { cause } => (BAD, format!("stopped, because going on helps no task: {cause}")),
        LoopEnd::WaitTooLong { wait, until } => {
            let when = words::relative(*until, context.now());
            (ODD, format!("{wait}: it may go on {when}, which is longer than --max-wait"))
        }
        LoopEnd::Interrupted => (ODD, "stopped on request; nothing is lost".into()),
    };
    styled(style, harmless(&text))
}

fn what_to_do(end: &LoopEnd, summary: &LoopSummary) -> Vec<String> {
    let session = &summary.session;
    let next = |command: String| vec![format!("next: {command}")];
    match end {
        LoopEnd::NothingToDo => next(format!("rehearsal task add TITLE --session {session}")),
        LoopEnd::AllDone | LoopEnd::BudgetReached { .. } => Vec::new(),
        LoopEnd::Complete { .. } => next(format!("rehearsal task list --session {session}")),
        LoopEnd::Blocked { .. } => next(format!("rehearsal task list --session {session} --status blocked")),
        LoopEnd::NeedsHuman { waiting } => {
            let mut lines: Vec<String> =
                waiting.iter().take(TASKS_NAMED).map(|task| format!("- {}", harmless(task))).collect();
            lines.extend(next("rehearsal why TASK".into()));
            lines
        }
        LoopEnd::SomeFailed { .. } => {
            next(format!("rehearsal task list --session {session} --status failed"))
        }
        LoopEnd::TooManyFailures { .. } => {
            summary.runs.last().map(|run| next(format!("rehearsal runs show {run}"))).unwrap_or_default()
        }
        LoopEnd::LineStopped { cause } => {
            vec!["no task lost an attempt".into(), format!("hint: {}", cure(cause))]
        }
        LoopEnd::MaxIterations | LoopEnd::WaitTooLong { .. } | LoopEnd::Interrupted => {
            next(format!("rehearsal run {session}"))
        }
    }
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

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
    for line in end_in_words(summary, context) {
        ui.say(line);
    }
}

fn end_in_words(summary: &LoopSummary, context: &Context) -> Vec<String> {
    let session = &summary.session;
    let next = |command: String| format!("next: {command}");
    match &summary.end {
        LoopEnd::NothingToDo => vec![
            format!("session `{session}` has no open tasks"),
            next(format!("rehearsal task add TITLE --session {session}")),
        ],
        LoopEnd::AllDone => vec![styled(GOOD, "all tasks are done")],
        LoopEnd::Complete { open_tasks } => vec![
            styled(GOOD, "the agent says that all is complete"),
            format!("{} not marked as done; see `rehearsal task list --session {session}`", words::count(*open_tasks, "task")),
        ],
        LoopEnd::Blocked { why } => vec![
            styled(ODD, format!("the agent is blocked: {}", harmless(why))),
            next(format!("rehearsal task list --session {session} --status blocked")),
        ],
        LoopEnd::NeedsHuman { waiting } => {
            let mut lines = vec![styled(ODD, "what is left needs a human:")];
            lines.extend(waiting.iter().take(20).map(|task| format!("- {}", harmless(task))));
            lines.push(next("rehearsal task unblock TASK".into()));
            lines
        }
        LoopEnd::SomeFailed { failed } => vec![
            styled(BAD, format!("{} failed", words::count(*failed, "task"))),
            next(format!("rehearsal task list --session {session} --status failed")),
        ],
        LoopEnd::MaxIterations => vec![
            format!("all {} are used", words::count(u64::from(summary.iterations), "iteration")),
            next(format!("rehearsal run {session}")),
        ],
        LoopEnd::BudgetReached { spent_usd } => {
            vec![styled(ODD, format!("the budget is reached: {} spent", words::cost(Some(*spent_usd))))]
        }
        LoopEnd::TooManyFailures { last } => {
            let mut lines = vec![styled(BAD, format!("too many failed runs in a row; the last one: {}", harmless(&last.to_string())))];
            lines.extend(summary.runs.last().map(|run| next(format!("rehearsal runs show {run}"))));
            lines
        }
        LoopEnd::LineStopped { cause } => {
            let mut lines = vec![styled(BAD, format!("stopped, because going on helps no task: {}", harmless(&cause.to_string())))];
            lines.push(format!("hint: {}", cure(cause)));
            lines.push("no task lost an attempt".into());
            lines
        }
        LoopEnd::WaitTooLong { wait, until } => vec![
            styled(ODD, format!("{}: it may go on {}, which is longer than --max-wait", harmless(wait), words::relative(*until, context.now()))),
            next(format!("rehearsal run {session}")),
        ],
        LoopEnd::Interrupted => vec![
            "stopped on request; nothing is lost".into(),
            next(format!("rehearsal run {session}")),
        ],
    }
}

/// What to do about a failure of the system.
pub(crate) fn cure(cause: &Outcome) -> &'static str {
    match cause.name() {
        OutcomeName::AuthFailed => "set the agent's key in your environment, or log its CLI in; `rehearsal doctor` shows which one is missing",
        OutcomeName::AgentMissing => "install the agent's CLI, or set `program:` in .rehearsal/config.yaml; `rehearsal agent list` shows what is found",
        OutcomeName::PermissionDenied => "allow the tool in the agent's settings, or run with `--trust` where that is safe",
        OutcomeName::SandboxUnavailable => "`rehearsal doctor` shows what the sandbox needs",
        OutcomeName::DiskFull => "free some space, then run it again",
        _ => "`rehearsal runs list` and `rehearsal logs RUN` show what happened",
    }
}

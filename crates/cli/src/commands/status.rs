//! `status [--watch]`.

use std::io::IsTerminal;
use std::time::Duration;

use clap::Args;
use rehearsal_app::command_line;
use rehearsal_app::lanes::HeldLane;
use rehearsal_app::project::Project;
use rehearsal_app::status::{InWork, LeftWorkView, RunningView, SessionStatus, Status, status};
use rehearsal_core::{FileList, NextAction, Timestamp};

use super::Done;
use crate::context::Context;
use crate::exit::Exit;
use crate::ui::{BOLD, fit_styled, harmless, one_line, raw_out, styled, table, terminal_size};
use crate::words;

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rehearsal status\n  rehearsal status --watch\n  rehearsal status --watch --json    # a document a line, when something changed"
)]
pub(crate) struct StatusArgs {
    /// Show it again whenever something changes, until Ctrl-C
    #[arg(long, short)]
    watch: bool,
}

/// How often `--watch` looks.
const LOOK_EVERY: Duration = Duration::from_millis(500);

pub(crate) async fn run(args: StatusArgs, context: &Context) -> Done {
    let project = context.project()?;
    if args.watch {
        return watch(&project, context).await;
    }
    let status = status(&project).await?;
    context.ui.say(in_words(&status, context.now()));
    context.ui.document(&status);
    Ok(Exit::Ok)
}

/// A terminal always shows the present moment. A log or a program gets what has changed.
async fn watch(project: &Project, context: &Context) -> Done {
    let is_screen = !context.ui.json && std::io::stdout().is_terminal();
    let mut shown = None;
    loop {
        let now = status(project).await?;
        if is_screen {
            raw_out(screen(&in_words(&now, context.now()), context.now()).as_bytes());
        } else if shown.as_ref() != Some(&now) {
            context.ui.say(in_words(&now, context.now()));
            context.ui.document(&now);
        }
        shown = Some(now);
        tokio::select! {
            result = tokio::signal::ctrl_c() => {
                result?;
                return Ok(Exit::Ok);
            }
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
    }
}

/// A whole screen: each line is written over the one that was there, which does not flicker.
fn screen(text: &str, now: Timestamp) -> String {
    let (width, height) = terminal_size();
    let time = words::moment(now);
    let lines = [time.as_str(), ""].into_iter().chain(text.lines()).take(height.saturating_sub(1));
    let lines: String = lines.map(|line| format!("{}\u{1b}[K\r\n", fit_styled(line, width))).collect();
    // Home; and below the last line everything is cleared.
    format!("\u{1b}[H{lines}\u{1b}[J")
}

fn in_words(status: &Status, now: Timestamp) -> String {
    let mut lines = Vec::new();
    match &status.loop_process {
        Some(process) => lines.push(format!("a loop is running (process {process})")),
        None if status.in_work.is_empty() && status.running.is_empty() => {
            lines.push("nothing is in work".to_owned());
        }
        None => {}
    }
    lines.extend(status.in_work.iter().map(|task| task_in_work(task, now)));
    lines.extend(status.held.iter().map(|lane| held(lane, now)));
    lines.extend(status.running.iter().map(|run| running(run, now)));
    lines.extend(status.left.iter().map(left));
    if status.sessions.is_empty() && status.without_session.is_none() {
        lines.push("no sessions yet; make one with `rehearsal session new NAME`".to_owned());
    } else {
        let rows: Vec<Vec<String>> = status.sessions.iter().chain(&status.without_session).map(row).collect();
        lines.push(format!("\n{}", table(&["SESSION", "OPEN", "DONE", "TASKS"], &rows)));
    }
    if status.cost_usd.is_some() {
        lines.push(format!("\n{} {}", styled(BOLD, "cost so far"), words::cost(status.cost_usd)));
    }
    lines.join("\n")
}

fn task_in_work(task: &InWork, now: Timestamp) -> String {
    let who = task.agent.as_deref().unwrap_or("steps");
    let (id, title, state, run) = (&task.task, one_line(&task.title, 60), &task.state, &task.run);
    if task.worker_died {
        let next = command_line::line(&NextAction::Work);
        return format!(
            "{id} {title}: {who} in {state} (run {run}), but its worker died; `{next}` continues"
        );
    }
    let time = words::duration(now.since(task.since));
    let lease = words::ends(task.lease_until, now);
    format!("{id} {title}: {who} in {state} (run {run}, for {time}, lease {lease})")
}

fn held(lane: &HeldLane, now: Timestamp) -> String {
    let until = lane.hold.until.map_or_else(
        || format!("until `{}`", command_line::line(&NextAction::Resume { lane: lane.lane.clone() })),
        |until| format!("until {} ({})", words::moment(until), words::relative(until, now)),
    );
    format!("{} is held {until}: {}", lane.lane, harmless(&lane.hold.reason))
}

fn running(run: &RunningView, now: Timestamp) -> String {
    let since = words::relative(run.started_at, now);
    let (id, task, title, agent) = (&run.run, &run.task, one_line(&run.title, 60), &run.agent);
    if run.worker_died {
        let next = command_line::line(&NextAction::Run { session: run.session.clone() });
        return format!(
            "run {id} on {task} {title} ({agent}) was started {since} and killed; `{next}` continues"
        );
    }
    format!("run {id} on {task} {title} ({agent}, started {since})")
}

fn left(work: &LeftWorkView) -> String {
    let (task, run, files) = (&work.task, &work.run, FileList::of(&work.files).to_string());
    format!("uncommitted work on task {task}, left by run {run}: {}", harmless(&files))
}

fn row(session: &SessionStatus) -> Vec<String> {
    let words: Vec<String> =
        session.by_status.iter().map(|(status, count)| format!("{count} {status}")).collect();
    vec![session.name.clone(), session.open.to_string(), session.done.to_string(), words.join(", ")]
}

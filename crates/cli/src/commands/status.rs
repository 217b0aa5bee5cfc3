//! `status [--watch]`.

use std::time::Duration;

use clap::Args;
use rehearsal_app::command_line;
use rehearsal_app::status::{SessionStatus, Status, status};
use rehearsal_core::{FileList, NextAction};

use super::Done;
use crate::context::Context;
use crate::exit::Exit;
use crate::ui::{BOLD, DIM, harmless, one_line, styled, table};
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
    let mut shown = status(&project).await?;
    show(&shown, context);
    context.ui.document(&shown);
    if !args.watch {
        return Ok(Exit::Ok);
    }
    loop {
        tokio::select! {
            result = tokio::signal::ctrl_c() => {
                result?;
                return Ok(Exit::Ok);
            }
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
        let now = status(&project).await?;
        if now != shown {
            if context.ui.is_live() {
                // Home, and clear to the end of the screen.
                context.ui.say("\u{1b}[H\u{1b}[J");
            }
            show(&now, context);
            context.ui.document(&now);
            shown = now;
        }
    }
}

fn show(status: &Status, context: &Context) {
    let ui = context.ui;
    match &status.loop_process {
        Some(process) => ui.say(format!("a loop is running (process {process})")),
        None if status.in_work.is_empty() => ui.say("nothing is in work"),
        None => {}
    }
    for task in &status.in_work {
        let who = task.agent.as_deref().unwrap_or("steps");
        let time = words::duration(context.now().since(task.since));
        let lease = words::ends(task.lease_until, context.now());
        ui.say(format!(
            "{} {}: {who} in {} (run {}, for {time}, lease {lease})",
            task.task,
            one_line(&task.title, 60),
            task.state,
            task.run
        ));
    }
    for lane in &status.held {
        let until = lane.hold.until.map_or_else(
            || format!("until `{}`", command_line::line(&NextAction::Resume { lane: lane.lane.clone() })),
            |until| format!("until {} ({})", words::moment(until), words::relative(until, context.now())),
        );
        ui.say(format!("{} is held {until}: {}", lane.lane, harmless(&lane.hold.reason)));
    }
    for run in &status.running {
        let since = words::relative(run.started_at, context.now());
        ui.say(format!(
            "run {} on {} {} ({}, started {since})",
            run.run,
            run.task,
            one_line(&run.title, 60),
            run.agent
        ));
    }
    for left in &status.left {
        ui.say(format!(
            "uncommitted work on task {}, left by run {}: {}",
            left.task,
            left.run,
            harmless(&FileList::of(&left.files).to_string())
        ));
    }
    if status.sessions.is_empty() && status.without_session.is_none() {
        ui.say("no sessions yet; make one with `rehearsal session new NAME`");
    } else {
        let row = |session: &SessionStatus| {
            let words: Vec<String> =
                session.by_status.iter().map(|(status, count)| format!("{count} {status}")).collect();
            vec![session.name.clone(), session.open.to_string(), session.done.to_string(), words.join(", ")]
        };
        let rows: Vec<Vec<String>> = status.sessions.iter().chain(&status.without_session).map(row).collect();
        ui.say(format!("\n{}", table(&["SESSION", "OPEN", "DONE", "TASKS"], &rows)));
    }
    if status.cost_usd.is_some() {
        ui.say(format!("\n{} {}", styled(BOLD, "cost so far"), words::cost(status.cost_usd)));
    }
    if ui.is_live() {
        ui.say(styled(DIM, words::moment(context.now())));
    }
}

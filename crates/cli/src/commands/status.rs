//! `status [--watch]`.

use std::time::Duration;

use clap::Args;
use rehearsal_core::{Run, Timestamp};
use rehearsal_engine::LoopLock;
use rehearsal_store::{Scope, Store};
use schemars::JsonSchema;
use serde::Serialize;

use super::Done;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::project::Project;
use crate::ui::{BOLD, DIM, one_line, styled, table};
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

/// `status --json`.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Status {
    /// The process of the loop that runs here now.
    loop_process: Option<String>,
    sessions: Vec<SessionStatus>,
    /// Runs without an end.
    running: Vec<RunningView>,
    /// What all runs cost, where they told it.
    cost_usd: Option<f64>,
}

#[derive(Debug, PartialEq, Serialize, JsonSchema)]
struct SessionStatus {
    name: String,
    open: u64,
    done: u64,
    total: u64,
    by_status: std::collections::BTreeMap<String, u64>,
}

#[derive(Debug, PartialEq, Serialize, JsonSchema)]
struct RunningView {
    run: String,
    task: String,
    title: String,
    agent: String,
    started_at: Timestamp,
}

/// How often `--watch` looks.
const LOOK_EVERY: Duration = Duration::from_millis(500);

pub(crate) async fn run(args: StatusArgs, context: &Context) -> Done {
    let project = context.project()?;
    let store = project.store().await?;
    let mut shown = status(&project, &*store).await?;
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
        let now = status(&project, &*store).await?;
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

async fn status(project: &Project, store: &dyn Store) -> Result<Status, CliError> {
    let sessions = store
        .sessions()
        .await?
        .into_iter()
        .map(|summary| SessionStatus {
            name: summary.session.name.to_string(),
            open: summary.counts.open,
            done: summary.counts.done,
            total: summary.counts.total,
            by_status: summary.counts.by_status,
        })
        .collect();
    let mut running = Vec::new();
    for run in store.unfinished_runs().await? {
        let title = store.task(&run.start.task).await?.map_or_else(String::new, |task| task.title);
        running.push(view(&run, title));
    }
    let cost = store.cost_of(&Scope::All).await?;
    Ok(Status {
        loop_process: LoopLock::holder(&project.state_dir()),
        sessions,
        running,
        cost_usd: (cost.runs > cost.without_usd).then_some(cost.usd),
    })
}

fn view(run: &Run, title: String) -> RunningView {
    RunningView {
        run: run.start.id.to_string(),
        task: run.start.task.to_string(),
        title,
        agent: run.start.agent.to_string(),
        started_at: run.start.started_at,
    }
}

fn show(status: &Status, context: &Context) {
    let ui = context.ui;
    match &status.loop_process {
        Some(process) => ui.say(format!("a loop is running (process {process})")),
        None => ui.say("no loop is running"),
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
    if status.sessions.is_empty() {
        ui.say("no sessions yet; make one with `rehearsal session new NAME`");
    } else {
        let row = |session: &SessionStatus| {
            let words: Vec<String> =
                session.by_status.iter().map(|(status, count)| format!("{count} {status}")).collect();
            vec![session.name.clone(), session.open.to_string(), session.done.to_string(), words.join(", ")]
        };
        let rows: Vec<Vec<String>> = status.sessions.iter().map(row).collect();
        ui.say(format!("\n{}", table(&["SESSION", "OPEN", "DONE", "TASKS"], &rows)));
    }
    if status.cost_usd.is_some() {
        ui.say(format!("\n{} {}", styled(BOLD, "cost so far"), words::cost(status.cost_usd)));
    }
    if ui.is_live() {
        ui.say(styled(DIM, words::moment(context.now())));
    }
}

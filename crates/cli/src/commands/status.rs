//! `status [--watch]`.

use std::time::Duration;

use camino::Utf8Path;
use clap::Args;
use rehearsal_core::config::{Overrides, Settings};
use rehearsal_core::{Run, Standing, Task, Timestamp};
use rehearsal_engine::{LoopLock, is_in_checkout};
use rehearsal_store::{Counts, Scope, Store};
use serde::Serialize;

use super::Done;
use super::lane::held;
use super::work::HeldLane;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::project::Project;
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

/// `status --json`.
#[derive(Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Status {
    /// The process of the loop that runs here now.
    loop_process: Option<String>,
    sessions: Vec<SessionStatus>,
    /// Tasks of no session.
    without_session: Option<SessionStatus>,
    /// Tasks in work under a lease, in this process or in others.
    in_work: Vec<InWork>,
    /// Runs without an end that are under no lease: a loop's.
    running: Vec<RunningView>,
    /// Lanes that stand still.
    held: Vec<HeldLane>,
    /// What all runs cost, where they told it.
    cost_usd: Option<f64>,
}

#[derive(Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct SessionStatus {
    name: String,
    open: u64,
    done: u64,
    total: u64,
    by_status: std::collections::BTreeMap<String, u64>,
}

#[derive(Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct InWork {
    task: String,
    title: String,
    state: String,
    /// Who works on it; none: its steps are done.
    agent: Option<String>,
    run: String,
    worker: String,
    since: Timestamp,
    /// Until when it is the worker's, unless that says again that it is alive.
    lease_until: Timestamp,
}

#[derive(Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    let settings = project.settings(Overrides::default())?;
    let mut shown = status(&project, &settings, &*store, context.now()).await?;
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
        let now = status(&project, &settings, &*store, context.now()).await?;
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

async fn status(
    project: &Project,
    settings: &Settings,
    store: &dyn Store,
    now: Timestamp,
) -> Result<Status, CliError> {
    let sessions = store.sessions().await?;
    let sessions: Vec<SessionStatus> = sessions
        .into_iter()
        .map(|summary| SessionStatus::of(summary.session.name.to_string(), summary.counts))
        .collect();
    let rest = rest(store.count_tasks(None).await?, &sessions);
    let state_dir = project.state_dir();
    let in_work: Vec<InWork> =
        store.leases().await?.iter().filter_map(|leased| in_work(leased, &state_dir)).collect();
    let mut running = Vec::new();
    let is_leased = |run: &Run| in_work.iter().any(|task| task.run == run.start.id.as_str());
    for run in store.unfinished_runs().await?.into_iter().filter(|run| !is_leased(run)) {
        let title = store.task(&run.start.task).await?.map_or_else(String::new, |task| task.title);
        running.push(view(&run, title));
    }
    let cost = store.cost_of(&Scope::All).await?;
    Ok(Status {
        loop_process: LoopLock::holder(&project.state_dir()),
        sessions,
        without_session: (rest.total > 0).then(|| SessionStatus::of("-".to_owned(), rest)),
        in_work,
        running,
        held: held(settings, store, now).await?,
        cost_usd: (cost.runs > cost.without_usd).then_some(cost.usd),
    })
}

impl SessionStatus {
    fn of(name: String, counts: Counts) -> Self {
        let Counts { by_status, open, done, total } = counts;
        Self { name, open, done, total, by_status }
    }
}

/// What is left of all tasks without those of the sessions.
fn rest(mut all: Counts, sessions: &[SessionStatus]) -> Counts {
    for session in sessions {
        all.open = all.open.saturating_sub(session.open);
        all.done = all.done.saturating_sub(session.done);
        all.total = all.total.saturating_sub(session.total);
        for (status, count) in &session.by_status {
            if let Some(left) = all.by_status.get_mut(status) {
                *left = left.saturating_sub(*count);
            }
        }
    }
    all.by_status.retain(|_, count| *count > 0);
    all
}

/// A task of a worker. That of a loop in this checkout is told with its run.
fn in_work((task, lease_until): &(Task, Timestamp), state_dir: &Utf8Path) -> Option<InWork> {
    let Standing::Claimed(claim) = &task.standing else { return None };
    if is_in_checkout(claim, state_dir) {
        return None;
    }
    Some(InWork {
        task: task.id.to_string(),
        title: task.title.clone(),
        state: task.state.to_string(),
        agent: task.next_agent().map(ToString::to_string),
        run: claim.run.to_string(),
        worker: claim.worker.to_string(),
        since: claim.since,
        lease_until: *lease_until,
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
            || format!("until `rehearsal resume {}`", lane.lane),
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

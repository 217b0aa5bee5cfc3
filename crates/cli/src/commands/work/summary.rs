//! What a worker came to: each task, what is left, and what to type next.

use std::time::Duration;

use rehearsal_app::lanes::HeldLane;
use rehearsal_app::project::Project;
use rehearsal_core::flow::End;
use rehearsal_core::guard::Hindrance;
use rehearsal_core::{
    FlowName, HoldCause, NextAction, Oid, OutcomeName, PullRequestRef, SessionName, Standing, StateName,
    Task, TaskId, Timestamp, WaitFor,
};
use rehearsal_engine::why::{Surroundings, why};
use rehearsal_engine::{LoopLock, WorkEnd};
use rehearsal_store::{Scope, StatusFilter, TaskQuery};
use serde::Serialize;

use super::Worked;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::{BAD, BOLD, GOOD, ODD, harmless, one_line, styled, table};
use crate::words::{self, command};

/// `work --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct WorkDocument {
    /// Why it ended.
    end: EndName,
    /// The tasks that it worked on, as they are now.
    tasks: Vec<WorkedTask>,
    /// Runs that it made.
    runs: u32,
    /// What they cost, where they told it.
    cost_usd: Option<f64>,
    /// Runs that did not tell.
    runs_without_cost: u32,
    /// Lanes that stand still.
    held: Vec<HeldLane>,
    /// How many tasks are not over, in the session or in all.
    open: u64,
    /// How many tasks wait for a person.
    blocked: u64,
    /// Tasks that were not worked on and do not go on by themselves, if that is why it ended: the first few.
    stuck: Vec<WorkedTask>,
    /// Where the work went.
    forge: String,
    /// The command that brings what was merged into the checkout, if something was.
    get_it: Option<String>,
    /// How long it took.
    duration_ms: u64,
}

/// Why a worker for tasks of any flow ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
enum EndName {
    /// There was nothing more to do, or only what waits for a person.
    Idle,
    /// It was told to do one task.
    Once,
    /// Its runs have cost what they may cost.
    BudgetReached,
    /// It was told to stop.
    Interrupted,
}

impl EndName {
    /// The other ends are those of a session.
    fn of(end: &WorkEnd) -> Self {
        match end {
            WorkEnd::Once => Self::Once,
            WorkEnd::BudgetReached { .. } => Self::BudgetReached,
            WorkEnd::Interrupted => Self::Interrupted,
            _ => Self::Idle,
        }
    }
}

/// A task, and what came of it.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct WorkedTask {
    id: TaskId,
    title: String,
    flow: FlowName,
    state: StateName,
    /// The word that listings show.
    status: String,
    /// The branch on the remote.
    branch: Option<String>,
    pull_request: Option<PullRequestRef>,
    /// The commit of the base that has the work.
    merged: Option<Oid>,
    /// How many runs it had in all.
    runs: u64,
    /// What they cost, where they told it.
    cost_usd: Option<f64>,
    /// What it waits for, or why it failed.
    because: Option<String>,
    /// When it goes on by itself.
    until: Option<Timestamp>,
    /// The command that helps.
    next: Option<String>,
    /// Whether it has cost what it may.
    #[serde(skip)]
    is_spent: bool,
    #[serde(skip)]
    end: Option<End>,
    #[serde(skip)]
    waits_for: Option<WaitFor>,
}

pub(crate) async fn document(
    worked: &Worked,
    session: Option<&SessionName>,
    project: &Project,
    context: &Context,
) -> Result<WorkDocument, CliError> {
    let summary = &worked.summary;
    let mut tasks = Vec::new();
    for task in &summary.tasks {
        tasks.push(worked_task(task, worked, project, context).await?);
    }
    let stuck = stuck(worked, session, project, context).await?;
    let counts = worked.store.count_tasks(session).await?;
    let is_merged = tasks.iter().any(|task| task.merged.is_some());
    let held = summary.held.iter();
    Ok(WorkDocument {
        end: EndName::of(&summary.end),
        tasks,
        runs: u32::try_from(summary.runs.len()).unwrap_or(u32::MAX),
        cost_usd: summary.cost_usd,
        runs_without_cost: summary.runs_without_cost,
        held: held.map(|(lane, hold)| HeldLane { lane: lane.clone(), hold: hold.clone() }).collect(),
        open: counts.open,
        blocked: counts.by_status.get("blocked").copied().unwrap_or(0),
        stuck,
        forge: worked.destination.to_string(),
        get_it: is_merged.then(|| command::line(&worked.destination.pull())),
        duration_ms: summary.duration_ms,
    })
}

/// What could be begun and is not, when nothing goes on by itself. Who works for some agents only leaves the rest to others, and
/// of what is held it is told anyway.
async fn stuck(
    worked: &Worked,
    session: Option<&SessionName>,
    project: &Project,
    context: &Context,
) -> Result<Vec<WorkedTask>, CliError> {
    let summary = &worked.summary;
    if summary.end != WorkEnd::Idle || !worked.agents.is_empty() || !summary.held.is_empty() {
        return Ok(Vec::new());
    }
    let query = TaskQuery {
        session: session.cloned(),
        status: StatusFilter::Open,
        limit: u32::try_from(COMMANDS_NAMED).ok(),
        ..TaskQuery::default()
    };
    let mut stuck = Vec::new();
    for task in worked.store.tasks(&query).await? {
        let is_told = summary.tasks.iter().any(|told| told.id == task.id);
        if !is_told && task.standing == Standing::Ready && is_stuck(&task, worked, context).await? {
            stuck.push(worked_task(&task, worked, project, context).await?);
        }
    }
    Ok(stuck)
}

/// Whether it would stay as it is whatever others do: what is in other hands at this moment comes back.
async fn is_stuck(task: &Task, worked: &Worked, context: &Context) -> Result<bool, CliError> {
    let store = &worked.store;
    for id in &task.depends_on {
        if store.task(id).await?.is_some_and(|other| other.is_ended() && !other.is_done()) {
            return Ok(true);
        }
    }
    let hindrance = store.hindrance(task, &worked.settings.limits(), context.now()).await?;
    Ok(matches!(hindrance, Some(Hindrance::Disabled { .. } | Hindrance::Spent { .. })))
}

async fn worked_task(
    task: &Task,
    worked: &Worked,
    project: &Project,
    context: &Context,
) -> Result<WorkedTask, CliError> {
    let (limits, state_dir) = (worked.settings.limits(), project.state_dir());
    let holder = LoopLock::holder(&state_dir);
    let around = Surroundings {
        now: context.now(),
        limits: &limits,
        loop_holder: holder.as_deref(),
        state_dir: &state_dir,
    };
    let why = why(&*worked.store, task, &around).await?;
    let hindrance = worked.store.hindrance(task, &limits, context.now()).await?;
    let cost = worked.store.cost_of(&Scope::Task(task.id.clone())).await?;
    let end = match &task.standing {
        Standing::Ended { end } => Some(*end),
        _ => None,
    };
    let waits_for = match &task.standing {
        Standing::Waiting(wait) => Some(wait.wait_for),
        _ => None,
    };
    let delivery = &task.delivery;
    Ok(WorkedTask {
        id: task.id.clone(),
        title: task.title.clone(),
        flow: task.flow.clone(),
        state: task.state.clone(),
        status: task.status().to_owned(),
        branch: delivery.branch.clone(),
        pull_request: delivery.pull_request.clone(),
        merged: delivery.merged.clone(),
        runs: cost.runs,
        cost_usd: (cost.runs > cost.without_usd).then_some(cost.usd),
        because: why.reasons.into_iter().next().filter(|_| !task.is_done()),
        until: why.until,
        next: why.next.first().map(command::line),
        is_spent: !task.is_ended() && matches!(hindrance, Some(Hindrance::Spent { .. })),
        end,
        waits_for,
    })
}

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
    ui.say("");
    if document.runs > 0 {
        ui.say(cost_line(document));
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
        put(command::line(&NextAction::Resume { lane: lane.lane.clone() }));
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
        commands.push(command::line(&NextAction::Why { task: task.id.clone() }));
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
    if document.tasks.iter().any(|task| task.end == Some(End::Failure)) {
        return Exit::Agent;
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
    if document.blocked == 0 && open.peek().is_some() && open.all(|task| task.is_spent) {
        return Exit::Budget;
    }
    if needs_human { Exit::NeedsHuman } else { Exit::Ok }
}

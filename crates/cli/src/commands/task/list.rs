//! `task list` and `task show`.

use std::collections::BTreeSet;

use clap::Args;
use rehearsal_core::flow::Flow;
use rehearsal_core::{Run, SessionName, Standing, StateName, Task, TaskId, Timestamp, Wait};
use rehearsal_engine::is_in_checkout;
use rehearsal_engine::why::next_step;
use rehearsal_store::{RunQuery, Scope, StatusFilter, Store, TaskQuery};
use serde::Serialize;

use super::Done;
use crate::commands::work::shown_pull_request;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::project::Project;
use crate::ui::{BOLD, DIM, harmless, one_line, styled, table};
use crate::words;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  rehearsal task list --session hello
  rehearsal task list --status blocked --json
  rehearsal task list --all --limit 1000")]
pub(crate) struct ListArgs {
    /// Only of this session
    #[arg(long, short)]
    session: Option<SessionName>,
    /// Only with this status: working, blocked, waiting, `needs_continuation`, cancelled, or a state of a flow like todo,
    /// incoming, provisional, done, failed; may be given again
    #[arg(long = "status", value_name = "WORD")]
    statuses: Vec<String>,
    /// Only in this state of their flow, whether they are worked on, wait or could be begun
    #[arg(long, value_name = "STATE")]
    state: Option<StateName>,
    /// Only with this label
    #[arg(long, short)]
    label: Option<String>,
    /// Only with this text in title or description
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,
    /// Also those that are over
    #[arg(long, short)]
    all: bool,
    /// At most so many
    #[arg(long, default_value_t = 100)]
    limit: u32,
    /// Those that follow this task
    #[arg(long = "from", value_name = "TASK")]
    after: Option<TaskId>,
}

#[derive(Debug, Args)]
#[command(after_help = "Example: rehearsal task show k3f")]
pub(crate) struct ShowArgs {
    /// The task's id, or a unique prefix of it
    task: String,
}

/// `task list --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct TaskList {
    /// Most urgent first.
    tasks: Vec<Task>,
    /// Whether there are more; ask for those after the last id with `--from`.
    more: bool,
}

/// `task show --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct TaskDetails {
    /// The task.
    task: Task,
    /// The word that listings show.
    status: String,
    /// Until when its worker holds it, unless that says again that it is alive.
    lease_until: Option<Timestamp>,
    /// Its runs, newest first.
    runs: Vec<Run>,
}

pub(super) async fn list(args: ListArgs, context: &Context) -> Done {
    let store = context.store().await?;
    if let Some(session) = &args.session {
        store.session(session).await?;
    }
    let status = match (args.statuses.is_empty(), args.all) {
        (false, _) => StatusFilter::Words(args.statuses.clone()),
        (true, true) => StatusFilter::All,
        (true, false) => StatusFilter::Open,
    };
    let query = TaskQuery {
        session: args.session.clone(),
        status,
        state: args.state.clone(),
        label: args.label.clone(),
        text: args.text.clone(),
        after: args.after.clone(),
        limit: Some(args.limit.saturating_add(1)),
    };
    let mut tasks = store.tasks(&query).await?;
    let more = tasks.len() > args.limit as usize;
    tasks.truncate(args.limit as usize);
    if tasks.is_empty() {
        check_words(&args, &context.project()?)?;
        context
            .ui
            .say("no tasks; add one with `rehearsal task add TITLE`, or see `--all` for those that are over");
    } else {
        context.ui.say(table_of(&tasks));
    }
    if more {
        context.ui.say(styled(DIM, format!("… more than {}; `--limit` shows more of them", args.limit)));
    }
    context.ui.document(TaskList { tasks, more });
    Ok(Exit::Ok)
}

/// Nothing was found: was it asked for by a word that there is? Flows that tasks began with may have had other states, so what
/// finds something is never refused.
fn check_words(args: &ListArgs, project: &Project) -> Result<(), CliError> {
    let shipped = rehearsal_core::flow::SHIPPED.iter().map(|(name, _)| (*name).to_owned());
    let flows: Vec<Flow> =
        shipped.chain(project.own_flows()?).filter_map(|name| project.flow(&name).ok()).collect();
    let states = flows.iter().flat_map(|flow| flow.states.keys()).map(StateName::as_str);
    let states: BTreeSet<&str> = states.collect();
    let words: Vec<&str> = Task::STATUSES.into_iter().chain(["ready", "claimed"]).collect();
    let known = |word: &str| states.contains(word);
    let status = args.statuses.iter().find(|word| !known(word) && !words.contains(&word.as_str()));
    let (what, word) = match (status, &args.state) {
        (Some(word), _) => ("status", word.as_str()),
        (None, Some(state)) if !known(state.as_str()) => ("state", state.as_str()),
        (None, _) => return Ok(()),
    };
    let names: BTreeSet<&str> = match what {
        "status" => words.into_iter().chain(states).collect(),
        _ => states,
    };
    let hint = match rehearsal_core::nearest(word, names.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there are {}", names.into_iter().collect::<Vec<_>>().join(", ")),
    };
    Err(CliError::usage(format!("unknown {what} `{word}`")).hint(hint))
}

/// Where tasks are on their way is shown where there is a way: the states of a loop are what the status says.
fn table_of(tasks: &[Task]) -> String {
    let dash = || "-".to_owned();
    let on_a_way = tasks.iter().any(|task| task.flow.as_str() != "loop");
    let row = |task: &Task| {
        let mut cells = vec![task.id.to_string(), task.status().to_owned()];
        if on_a_way {
            cells.push(format!("{}/{}", task.flow, task.state));
            cells.push(task.agent.as_ref().map_or_else(dash, ToString::to_string));
            cells.push(task.delivery.pull_request.as_ref().map_or_else(dash, shown_pull_request));
        }
        cells.push(task.priority.to_string());
        cells.push(task.session.as_ref().map_or_else(dash, ToString::to_string));
        cells.push(one_line(&task.title, 70));
        cells
    };
    let mut headings = vec!["ID", "STATUS"];
    if on_a_way {
        headings.extend(["FLOW/STATE", "AGENT", "PULL REQUEST"]);
    }
    headings.extend(["PRIORITY", "SESSION", "TITLE"]);
    let rows: Vec<Vec<String>> = tasks.iter().map(row).collect();
    table(&headings, &rows)
}

pub(super) async fn show(args: ShowArgs, context: &Context) -> Done {
    let store = context.store().await?;
    let task = store.find_task(&args.task).await?;
    let query = RunQuery { scope: Scope::Task(task.id.clone()), limit: Some(20) };
    let runs = store.runs(&query).await?;
    let ui = context.ui;
    ui.say(format!("{}  {}", styled(BOLD, &task.id), harmless(&task.title)));
    ui.say(format!("{}, {} priority, {} attempts", describe_standing(&task), task.priority, task.attempts));
    let added = words::relative(task.created_at, context.now());
    match &task.session {
        Some(session) => ui.say(format!("session {session}, flow {}, added {added}", task.flow)),
        None => ui.say(format!("flow {}, added {added}", task.flow)),
    }
    if let Some(line) = flow_since(&task, &context.project()?) {
        ui.say(line);
    }
    let lease_until = lease_of(&task, &*store, &context.project()?).await?;
    for line in whereabouts(&task, &*store.flow(&task.flow_version).await?, lease_until, context.now()) {
        ui.say(harmless(&line));
    }
    if !task.labels.is_empty() {
        ui.say(format!("labels: {}", harmless(&task.labels.join(", "))));
    }
    if let Some(usd) = task.budget.usd {
        ui.say(format!("a run may cost ${usd:.2}"));
    }
    if !task.depends_on.is_empty() {
        let ids: Vec<&str> = task.depends_on.iter().map(TaskId::as_str).collect();
        ui.say(format!("after: {}", ids.join(", ")));
    }
    if !task.touches.is_empty() {
        ui.say(format!("touches: {}", harmless(&task.touches.join(", "))));
    }
    for criterion in &task.criteria {
        ui.say(format!("- {}", harmless(criterion)));
    }
    if !task.body.is_empty() {
        ui.say(format!("\n{}", harmless(task.body.trim_end())));
    }
    if !runs.is_empty() {
        ui.say("");
        ui.say(crate::commands::runs::table_of(&runs, context.now()));
    }
    ui.document(TaskDetails { status: task.status().to_owned(), task, lease_until, runs });
    Ok(Exit::Ok)
}

async fn lease_of(task: &Task, store: &dyn Store, project: &Project) -> Result<Option<Timestamp>, CliError> {
    let Standing::Claimed(claim) = &task.standing else { return Ok(None) };
    if is_in_checkout(claim, &project.state_dir()) {
        return Ok(None);
    }
    let leases = store.leases().await?;
    Ok(leases.into_iter().find(|(leased, _)| leased.id == task.id).map(|(_, until)| until))
}

/// What became of the flow that the task began with, if it is another one now.
fn flow_since(task: &Task, project: &Project) -> Option<String> {
    if task.is_ended() {
        return None;
    }
    let stays = format!("the task stays with version {}", task.flow_version);
    match project.flow(task.flow.as_str()) {
        Ok(now) if now.version == task.flow_version => None,
        Ok(now) => Some(format!("the flow has changed since (now version {}): {stays}", now.version)),
        Err(_) => Some(format!("the flow cannot be read any more: {stays}")),
    }
}

/// Where it is on its way, who has it, what waits for what, and what is out already.
fn whereabouts(task: &Task, flow: &Flow, lease_until: Option<Timestamp>, now: Timestamp) -> Vec<String> {
    let mut lines = Vec::new();
    if flow.fits_a_loop().is_err() {
        let agent = task.agent.as_ref().map_or_else(String::new, |agent| format!(", agent {agent}"));
        let rejected = match task.rejections {
            0 => String::new(),
            count => format!(", rejected {}", words::count(u64::from(count), "time")),
        };
        lines.push(format!("state {}{agent}{rejected}", task.state));
    }
    if let (Standing::Claimed(claim), Some(until)) = (&task.standing, lease_until) {
        lines.push(format!("worker {} has it, lease {}", claim.worker, words::ends(until, now)));
    }
    if let Standing::Waiting(Wait { until: Some(until), .. }) = &task.standing {
        lines.push(format!("waits until {} ({})", words::moment(*until), words::relative(*until, now)));
    }
    lines.extend(next_step(task, flow));
    let delivery = &task.delivery;
    lines.extend(delivery.branch.as_ref().map(|branch| format!("branch {branch}")));
    lines.extend(delivery.pull_request.as_ref().map(|it| format!("pull request #{} {}", it.number, it.url)));
    lines.extend(delivery.merged.as_ref().map(|commit| format!("merged as {commit}")));
    let told = task.feedback.as_ref().filter(|_| !task.is_ended());
    lines.extend(told.map(|told| format!("{} says: {}", told.from, one_line(&told.text, 160))));
    lines
}

fn describe_standing(task: &Task) -> String {
    match &task.standing {
        Standing::Waiting(wait) => format!("{}: {}", task.status(), harmless(&wait.reason)),
        Standing::Claimed(claim) => format!("working (run {})", claim.run),
        Standing::Ready | Standing::Ended { .. } => task.status().to_owned(),
    }
}

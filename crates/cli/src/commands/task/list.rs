//! `task list` and `task show`.

use clap::Args;
use rehearsal_app::tasks::{self, FlowNow, TaskDetails, TaskFilter};
use rehearsal_core::flow::Flow;
use rehearsal_core::{SessionName, Standing, StateName, Task, TaskId, Timestamp, Wait};
use rehearsal_engine::why::next_step;

use super::Done;
use crate::commands::work::shown_pull_request;
use crate::context::Context;
use crate::exit::Exit;
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

pub(super) async fn list(args: ListArgs, context: &Context) -> Done {
    let ListArgs { session, statuses, state, label, text, all, limit, after } = args;
    let filter = TaskFilter { session, statuses, state, label, text, all, limit, after };
    let list = tasks::list(&context.project()?, filter).await?;
    if list.tasks.is_empty() {
        context
            .ui
            .say("no tasks; add one with `rehearsal task add TITLE`, or see `--all` for those that are over");
    } else {
        context.ui.say(table_of(&list.tasks));
    }
    if list.more {
        context.ui.say(styled(DIM, format!("… more than {limit}; `--limit` shows more of them")));
    }
    context.ui.document(list);
    Ok(Exit::Ok)
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
    let details = tasks::show(&context.project()?, &args.task).await?;
    let task = &details.task;
    let ui = context.ui;
    ui.say(format!("{}  {}", styled(BOLD, &task.id), harmless(&task.title)));
    ui.say(format!("{}, {} priority, {} attempts", describe_standing(task), task.priority, task.attempts));
    let added = words::relative(task.created_at, context.now());
    match &task.session {
        Some(session) => ui.say(format!("session {session}, flow {}, added {added}", task.flow)),
        None => ui.say(format!("flow {}, added {added}", task.flow)),
    }
    if let Some(line) = flow_since(&details) {
        ui.say(line);
    }
    for line in whereabouts(task, &details.flow, details.lease_until, context.now()) {
        ui.say(harmless(&line));
    }
    if let Some(decision) = &details.decision {
        ui.say(words::decision(decision, context.now()));
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
    if !details.runs.is_empty() {
        ui.say("");
        ui.say(crate::commands::runs::table_of(&details.runs, context.now()));
    }
    ui.document(details);
    Ok(Exit::Ok)
}

/// What became of the flow that the task began with, if it is another one now.
fn flow_since(details: &TaskDetails) -> Option<String> {
    let stays = format!("the task stays with version {}", details.task.flow_version);
    match &details.flow_now {
        FlowNow::Same => None,
        FlowNow::Changed { version } => {
            Some(format!("the flow has changed since (now version {version}): {stays}"))
        }
        FlowNow::Unreadable => Some(format!("the flow cannot be read any more: {stays}")),
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

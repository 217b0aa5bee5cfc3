//! `task list` and `task show`.

use clap::Args;
use rehearsal_core::{Run, SessionName, Standing, Task, TaskId};
use rehearsal_store::{RunQuery, Scope, StatusFilter, TaskQuery};
use schemars::JsonSchema;
use serde::Serialize;

use super::Done;
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
    /// Only with this status (todo, working, blocked, waiting, done, failed, cancelled); may be given again
    #[arg(long = "status", value_name = "WORD")]
    statuses: Vec<String>,
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
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TaskList {
    /// Most urgent first.
    tasks: Vec<Task>,
    /// Whether there are more; ask for those after the last id with `--from`.
    more: bool,
}

/// `task show --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TaskDetails {
    /// The task.
    task: Task,
    /// The word that listings show.
    status: String,
    /// Its runs, newest first.
    runs: Vec<Run>,
}

pub(super) async fn list(args: ListArgs, context: &Context) -> Done {
    let store = context.store().await?;
    if let Some(session) = &args.session {
        store.session(session).await?;
    }
    let status = match (args.statuses.is_empty(), args.all) {
        (false, _) => StatusFilter::Words(args.statuses),
        (true, true) => StatusFilter::All,
        (true, false) => StatusFilter::Open,
    };
    let query = TaskQuery {
        session: args.session,
        status,
        label: args.label,
        text: args.text,
        after: args.after,
        limit: Some(args.limit.saturating_add(1)),
        ..TaskQuery::default()
    };
    let mut tasks = store.tasks(&query).await?;
    let more = tasks.len() > args.limit as usize;
    tasks.truncate(args.limit as usize);
    if tasks.is_empty() {
        context
            .ui
            .say("no tasks; add one with `rehearsal task add TITLE`, or see `--all` for those that are over");
    } else {
        let rows: Vec<Vec<String>> = tasks.iter().map(row).collect();
        context.ui.say(table(&["ID", "STATUS", "PRIORITY", "SESSION", "TITLE"], &rows));
    }
    if more {
        context.ui.say(styled(DIM, format!("… more than {}; `--limit` shows more of them", args.limit)));
    }
    context.ui.document(TaskList { tasks, more });
    Ok(Exit::Ok)
}

fn row(task: &Task) -> Vec<String> {
    vec![
        task.id.to_string(),
        task.status().to_owned(),
        task.priority.to_string(),
        task.session.as_ref().map_or_else(|| "-".into(), ToString::to_string),
        one_line(&task.title, 70),
    ]
}

pub(super) async fn show(args: ShowArgs, context: &Context) -> Done {
    let store = context.store().await?;
    let task = store.find_task(&args.task).await?;
    let query = RunQuery { scope: Scope::Task(task.id.clone()), limit: Some(20) };
    let runs = store.runs(&query).await?;
    let ui = context.ui;
    ui.say(format!("{}  {}", styled(BOLD, &task.id), harmless(&task.title)));
    ui.say(format!("{}, {} priority, {} attempts", describe_standing(&task), task.priority, task.attempts));
    if let Some(session) = &task.session {
        ui.say(format!(
            "session {session}, flow {}, added {}",
            task.flow,
            words::relative(task.created_at, context.now())
        ));
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
    ui.document(TaskDetails { status: task.status().to_owned(), task, runs });
    Ok(Exit::Ok)
}

fn describe_standing(task: &Task) -> String {
    match &task.standing {
        Standing::Waiting(wait) => format!("{}: {}", task.status(), harmless(&wait.reason)),
        Standing::Claimed(claim) => format!("working (run {})", claim.run),
        Standing::Ready | Standing::Ended { .. } => task.status().to_owned(),
    }
}

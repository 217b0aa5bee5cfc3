//! The commands that change one task.

use clap::Args;
use rehearsal_agent::result_file::ReportLine;
use rehearsal_core::transition::TaskInput;
use rehearsal_core::{Budget, Lane, Standing, Task, TaskEdit, Wait, WaitFor};
use rehearsal_store::{Change, Committed, RunQuery, Scope, Store};

use super::add::{PriorityArg, whole_ids};
use super::{Done, TaskDocument, TaskReport};
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::inside::InsideRun;
use crate::project::read_stdin;

#[derive(Debug, Args)]
pub(crate) struct OneTask {
    /// The task's id, or a unique prefix of it
    task: String,
}

#[derive(Debug, Args)]
#[command(after_help = "Example: rehearsal task block k3f --reason 'needs the staging password'")]
pub(crate) struct BlockArgs {
    /// The task's id, or a unique prefix of it
    task: String,
    /// What it needs
    #[arg(long, short)]
    reason: String,
}

#[derive(Debug, Args)]
#[command(after_help = "Example: rehearsal task edit k3f --priority urgent --criterion 'no warnings'")]
#[group(skip)]
#[command(group(clap::ArgGroup::new("what").required(true).multiple(true)))]
pub(crate) struct EditArgs {
    /// The task's id, or a unique prefix of it
    task: String,
    /// A new title
    #[arg(long, group = "what")]
    title: Option<String>,
    /// A new description; `-` reads it from standard input
    #[arg(long, short, group = "what", allow_hyphen_values = true)]
    body: Option<String>,
    /// New criteria, in place of all that were there; may be given again
    #[arg(long = "criterion", short = 'c', value_name = "TEXT", group = "what")]
    criteria: Option<Vec<String>>,
    /// A new priority
    #[arg(long, short, value_enum, group = "what")]
    priority: Option<PriorityArg>,
    /// New labels, in place of all that were there; may be given again
    #[arg(long = "label", short, value_name = "LABEL", group = "what")]
    labels: Option<Vec<String>>,
    /// New dependencies, in place of all that were there; may be given again
    #[arg(long = "after", value_name = "TASK", group = "what")]
    depends_on: Option<Vec<String>>,
    /// What all its runs together may cost, in dollars
    #[arg(long, value_name = "USD", group = "what")]
    max_cost: Option<f64>,
    /// New patterns of files that it will change, in place of all that were there; may be given again
    #[arg(long, value_name = "GLOB", group = "what")]
    touches: Option<Vec<String>>,
}

pub(super) async fn done(args: OneTask, context: &Context) -> Done {
    let line = ReportLine::TaskDone { id: args.task.clone() };
    report_or_change(&args.task, line, TaskInput::Finish, "is done", context).await
}

pub(super) async fn block(args: BlockArgs, context: &Context) -> Done {
    let line = ReportLine::TaskBlocked { id: args.task.clone(), reason: args.reason.clone() };
    report_or_change(&args.task, line, TaskInput::Block { reason: args.reason }, "waits for a human", context)
        .await
}

pub(super) async fn unblock(args: OneTask, context: &Context) -> Done {
    let store = context.store().await?;
    let task = store.find_task(&args.task).await?;
    let resume = vendor_limit(&*store, &task).await?;
    let done = change(&args.task, TaskInput::Unblock, "goes on", context).await?;
    if let Some(lane) = resume {
        context.commit(&*store, vec![Change::FreeLane { lane }]).await?;
    }
    Ok(done)
}

pub(crate) async fn cancel(args: OneTask, context: &Context) -> Done {
    change(&args.task, TaskInput::Cancel, "is cancelled", context).await
}

pub(crate) async fn retry(args: OneTask, context: &Context) -> Done {
    change(&args.task, TaskInput::Retry, "begins anew", context).await
}

pub(super) async fn edit(args: EditArgs, context: &Context) -> Done {
    InsideRun::refuse_changes()?;
    let store = context.store().await?;
    let task = store.find_task(&args.task).await?;
    let body = match args.body.as_deref() {
        Some("-") => Some(read_stdin()?),
        _ => args.body,
    };
    let depends_on = match &args.depends_on {
        Some(prefixes) => Some(whole_ids(&*store, prefixes).await?),
        None => None,
    };
    let edit = TaskEdit {
        title: args.title,
        body,
        criteria: args.criteria,
        priority: args.priority.map(Into::into),
        labels: args.labels,
        depends_on,
        budget: args.max_cost.map(|usd| Budget { usd: Some(usd), ..task.budget }),
        touches: args.touches,
    };
    change(&args.task, TaskInput::Edit { edit }, "is changed", context).await
}

/// The agent that stands still because this task met a limit of its vendor: who lets the task go on wants it to be tried.
async fn vendor_limit(store: &dyn Store, task: &Task) -> Result<Option<Lane>, CliError> {
    let Standing::Waiting(Wait { wait_for: WaitFor::System(limit), .. }) = &task.standing else {
        return Ok(None);
    };
    let last = RunQuery { scope: Scope::Task(task.id.clone()), limit: Some(1) };
    let agent = store.runs(&last).await?.into_iter().next().map(|run| run.start.agent);
    Ok(agent.filter(|_| limit.passes_with_time()).map(Lane::Agent))
}

/// From inside a run the command reports; from outside it acts.
async fn report_or_change(
    prefix: &str,
    line: ReportLine,
    input: TaskInput,
    what: &str,
    context: &Context,
) -> Done {
    let Some(inside) = InsideRun::detect() else {
        return change(prefix, input, what, context).await;
    };
    // The agent learns at once of a wrong id; the store is only read. One that cannot be read from here, for want of its
    // address or of a network, does not stand in the way: the engine checks the report anyway.
    let Ok(store) = context.store().await else {
        inside.report(&line)?;
        context.ui.say(format!("noted: {prefix} {what}; it is checked and counts when the run is over"));
        context.ui.document(TaskReport { id: prefix.to_owned(), reported: true });
        return Ok(Exit::Ok);
    };
    let task = store.find_task(prefix).await?;
    inside.report(&line)?;
    context.ui.say(format!("noted: {} {what}; it counts when the run is over", task.id));
    context.ui.document(TaskDocument { reported: true, ..TaskDocument::new(task) });
    Ok(Exit::Ok)
}

pub(crate) async fn change(prefix: &str, input: TaskInput, what: &str, context: &Context) -> Done {
    InsideRun::refuse_changes()?;
    let store = context.store().await?;
    let before = store.find_task(prefix).await?;
    let committed =
        context.commit(&*store, vec![Change::ChangeTask { id: before.id.clone(), input }]).await?;
    let task = committed.into_iter().find_map(Committed::task);
    let task = task.ok_or_else(|| CliError::new(Exit::Internal, "the store gave no task back"))?;
    context.ui.say(format!("{} {what}: {}", task.id, crate::ui::harmless(&task.title)));
    if let Standing::Claimed(claim) = &before.standing
        && task.fence != before.fence
    {
        context.ui.say(format!(
            "its run {} counts no more: `rehearsal work` stops it, a loop lets it end",
            claim.run
        ));
    }
    context.ui.document(TaskDocument::new(task));
    Ok(Exit::Ok)
}

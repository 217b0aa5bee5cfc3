//! The commands that change one task.

use clap::Args;
use rehearsal_app::tasks::{self, Changed, EditRequest, Noted, TaskDocuments};

use super::Done;
use super::add::PriorityArg;
use crate::context::{Context, text_of};
use crate::exit::Exit;
use crate::ui::harmless;

#[derive(Debug, Args)]
pub(crate) struct OneTask {
    /// The task's id, or a unique prefix of it
    task: String,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  rehearsal task unblock k3f
  rehearsal unblock k3f m81 --answer 'use the staging database'")]
pub(crate) struct UnblockArgs {
    /// The tasks' ids, or unique prefixes of them
    #[arg(required = true, value_name = "TASK")]
    tasks: Vec<String>,
    /// Answer what the agent asked: goes into the next prompt; `-` reads it from standard input
    #[arg(long, short, value_name = "TEXT", allow_hyphen_values = true)]
    answer: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Example: rehearsal task done k3f --reason 'the bug was fixed in an earlier commit'")]
pub(crate) struct DoneArgs {
    /// The task's id, or a unique prefix of it
    task: String,
    /// Why nothing had to change for it; an agent that changed nothing has to say it
    #[arg(long, short)]
    reason: Option<String>,
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

pub(super) async fn done(args: DoneArgs, context: &Context) -> Done {
    Ok(note(tasks::finish(context, &args.task, args.reason).await?, "is done", context))
}

pub(super) async fn block(args: BlockArgs, context: &Context) -> Done {
    Ok(note(tasks::block(context, &args.task, args.reason).await?, "waits for a human", context))
}

pub(crate) async fn unblock(args: UnblockArgs, context: &Context) -> Done {
    let answer = args.answer.map(text_of).transpose()?;
    let what = if answer.is_some() { "is answered and continues" } else { "continues" };
    let unblocked = tasks::unblock(&context.project()?, &args.tasks, answer).await?;
    for task in &unblocked {
        say_changed(task, what, context);
    }
    let tasks = unblocked.into_iter().map(|task| task.document).collect();
    context.ui.document(TaskDocuments { tasks });
    Ok(Exit::Ok)
}

pub(crate) async fn cancel(args: OneTask, context: &Context) -> Done {
    Ok(changed(tasks::cancel(&context.project()?, &args.task).await?, "is cancelled", context))
}

pub(crate) async fn retry(args: OneTask, context: &Context) -> Done {
    Ok(changed(tasks::retry(&context.project()?, &args.task).await?, "begins anew", context))
}

pub(super) async fn edit(args: EditArgs, context: &Context) -> Done {
    let project = context.project()?;
    let request = EditRequest {
        title: args.title,
        body: args.body.map(text_of).transpose()?,
        criteria: args.criteria,
        priority: args.priority.map(Into::into),
        labels: args.labels,
        depends_on: args.depends_on,
        max_cost: args.max_cost,
        touches: args.touches,
    };
    Ok(changed(tasks::edit(&project, &args.task, request).await?, "is changed", context))
}

/// From inside a run the command reports; from outside it acts.
fn note(noted: Noted, what: &str, context: &Context) -> Exit {
    match noted {
        Noted::Changed(task) => return changed(task, what, context),
        Noted::Reported(document) => {
            context.ui.say(format!("noted: {} {what}; it counts when the run is over", document.task.id));
            context.ui.document(document);
        }
        Noted::Unchecked(report) => {
            let id = &report.id;
            context.ui.say(format!("noted: {id} {what}; it is checked and counts when the run is over"));
            context.ui.document(report);
        }
    }
    Exit::Ok
}

/// Says what became of a task.
pub(crate) fn changed(changed: Changed, what: &str, context: &Context) -> Exit {
    say_changed(&changed, what, context);
    context.ui.document(changed.document);
    Exit::Ok
}

fn say_changed(changed: &Changed, what: &str, context: &Context) {
    let task = &changed.document.task;
    context.ui.say(format!("{} {what}: {}", task.id, harmless(&task.title)));
    if let Some(run) = &changed.superseded {
        context
            .ui
            .say(format!("its run {run} counts no more: `rehearsal work` stops it, a loop lets it end"));
    }
}

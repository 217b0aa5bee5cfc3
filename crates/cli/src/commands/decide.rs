//! `approve` and `reject`: a person's decision on a task that waits for one.

use clap::Args;
use rehearsal_app::tasks;

use super::Done;
use super::task::change::changed;
use crate::context::Context;

#[derive(Debug, Args)]
#[command(after_help = "Example: rehearsal approve k3f --comment 'well done'

For tasks in a state that waits for a person's decision, like `review` of the flow `approve`.")]
pub(crate) struct ApproveArgs {
    /// The task's id, or a unique prefix of it
    task: String,
    /// A word with it
    #[arg(long, short, value_name = "TEXT", default_value = "")]
    comment: String,
}

#[derive(Debug, Args)]
#[command(after_help = "Example: rehearsal reject k3f --comment 'the error needs a test'

The comment goes into the next prompt; the work is kept, and the next run goes on from it.")]
pub(crate) struct RejectArgs {
    /// The task's id, or a unique prefix of it
    task: String,
    /// What has to change
    #[arg(long, short, value_name = "TEXT")]
    comment: String,
}

pub(crate) async fn approve(args: ApproveArgs, context: &Context) -> Done {
    let task = tasks::approve(&context.project()?, &args.task, args.comment).await?;
    Ok(changed(task, "is approved", context))
}

pub(crate) async fn reject(args: RejectArgs, context: &Context) -> Done {
    let task = tasks::reject(&context.project()?, &args.task, args.comment).await?;
    Ok(changed(task, "is rejected", context))
}

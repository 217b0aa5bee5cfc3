//! `approve` and `reject`: a person's decision on a task that waits for one.

use clap::Args;
use rehearsal_core::transition::TaskInput;

use super::Done;
use super::task::change::change;
use crate::context::Context;
use crate::error::CliError;

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
    let input = TaskInput::Decide { approve: true, comment: args.comment };
    change(&args.task, input, "is approved", context).await
}

pub(crate) async fn reject(args: RejectArgs, context: &Context) -> Done {
    if args.comment.trim().is_empty() {
        return Err(CliError::usage("a rejection needs a comment: it is all that the next run is told"));
    }
    let input = TaskInput::Decide { approve: false, comment: args.comment };
    change(&args.task, input, "is rejected", context).await
}

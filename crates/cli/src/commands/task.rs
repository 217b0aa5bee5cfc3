//! `task add|list|show|edit|done|block|unblock|cancel|retry|import`.

mod add;
pub(crate) mod change;
mod history;
mod import;
mod list;

use clap::Subcommand;

use super::Done;
use crate::context::Context;

#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  rehearsal task add 'Speed up the parser' --flow pull-request
  rehearsal task import PLAN.md
  rehearsal task list --status blocked
  rehearsal task retry k3f")]
pub(crate) enum TaskCommand {
    /// Add a task
    Add(add::AddArgs),
    /// List tasks, most urgent first
    List(list::ListArgs),
    /// Show a task and its runs
    Show(list::ShowArgs),
    /// Show what happened to a task, and who decided it
    History(history::HistoryArgs),
    /// Change a task; also while a loop runs
    Edit(change::EditArgs),
    /// Mark a task as done
    Done(change::DoneArgs),
    /// Mark a task as needing a human
    Block(change::BlockArgs),
    /// Let blocked tasks continue, and answer what they asked
    Unblock(change::UnblockArgs),
    /// Give a task up
    #[command(after_help = "Example: rehearsal task cancel k3f")]
    Cancel(change::OneTask),
    /// Begin a task anew
    #[command(after_help = "Example: rehearsal task retry k3f")]
    Retry(change::OneTask),
    /// Add tasks from a Markdown checklist or JSON lines
    Import(import::ImportArgs),
}

pub(crate) async fn run(command: TaskCommand, context: &Context) -> Done {
    match command {
        TaskCommand::Add(args) => add::run(args, context).await,
        TaskCommand::List(args) => list::list(args, context).await,
        TaskCommand::Show(args) => list::show(args, context).await,
        TaskCommand::History(args) => history::run(args, context).await,
        TaskCommand::Edit(args) => change::edit(args, context).await,
        TaskCommand::Done(args) => change::done(args, context).await,
        TaskCommand::Block(args) => change::block(args, context).await,
        TaskCommand::Unblock(args) => change::unblock(args, context).await,
        TaskCommand::Cancel(args) => change::cancel(args, context).await,
        TaskCommand::Retry(args) => change::retry(args, context).await,
        TaskCommand::Import(args) => import::run(args, context).await,
    }
}

//! `crew run|list|show`.

mod run;
mod show;

use clap::Subcommand;

use super::Done;
use crate::context::Context;

#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  rehearsal crew list
  rehearsal crew show review
  echo 'Where is the retry policy?' | rehearsal crew run --role search")]
pub(crate) enum CrewCommand {
    /// Let a member of the crew work in this directory; its task is read from standard input
    Run(run::RunArgs),
    /// List the roles: those that are built in, and your own
    #[command(after_help = "Examples:\n  rehearsal crew list\n  rehearsal crew list --json")]
    List,
    /// Show a role: its tools, its permissions, its limits, and what it is told
    Show(show::ShowArgs),
}

pub(crate) async fn run(command: CrewCommand, context: &Context) -> Done {
    match command {
        CrewCommand::Run(args) => run::run(args, context).await,
        CrewCommand::List => show::list(context),
        CrewCommand::Show(args) => show::show(&args, context),
    }
}

//! `promote RUN`: a run that was real becomes a scenario: its task, its commits, its outcome.

use clap::Args;
use rehearsal_app::command_line::quote;
use rehearsal_app::scenarios;

use super::Done;
use crate::context::Context;
use crate::exit::Exit;

#[derive(Debug, Args)]
#[command(after_help = "Example: rehearsal promote 7x3k --name greets-by-name")]
pub(crate) struct PromoteArgs {
    /// The run, by the beginning of its id
    run: String,
    /// The scenario's name; made of the run's id otherwise
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
}

pub(crate) async fn run(args: PromoteArgs, context: &Context) -> Done {
    let document = scenarios::promote(&context.project()?, &args.run, args.name).await?;
    context.ui.say(format!("{} is written", document.scenario));
    context.ui.say(format!("next: rehearsal rehearse --filter {} --trace", quote(&document.name)));
    context.ui.document(document);
    Ok(Exit::Ok)
}

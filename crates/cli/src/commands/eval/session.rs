//! `eval record` and `eval replay`: one run of an agent by the name of its recording.

use camino::Utf8PathBuf;
use clap::Args;
use rehearsal_app::evals::{Evals, Recorded};
use rehearsal_eval::grade::no_evidence;
use rehearsal_eval::recorded_run::SessionDocument;
use rehearsal_eval::trial::Trial;
use rehearsal_llm::cassette::{Matching, Rung};

use super::stop_on_signal;
use crate::commands::Done;
use crate::commands::replay::rung;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::{harmless, one_line};

#[derive(Debug, Args)]
#[command(after_help = "Example: rehearsal eval record --name search-flow --task 'Find the test files'

The agent works in a scratch copy of what is committed, and asks its vendor, for money. What it was answered is kept as \
.rehearsal/cassettes/NAME.jsonl, and what it was asked beside it.")]
pub(crate) struct RecordArgs {
    /// How the recording is called
    #[arg(long, value_name = "NAME")]
    name: Utf8PathBuf,
    /// What the agent is asked
    #[arg(long, value_name = "TEXT")]
    task: String,
    /// Which agent; without it the one that `run` uses
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// Let an agent whose profile says `permission: trust` do everything without being asked
    #[arg(long)]
    trust: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  rehearsal eval replay search-flow
  rehearsal eval replay search-flow --strict

Without --strict every answer is given in its turn, whatever the agent asks, and what differs is told. \
Ends with 3 if the agent asked for more than was recorded, and with --strict if anything differs.")]
pub(crate) struct ReplayArgs {
    /// A name that `eval record` gave, or a file that ends in .jsonl
    name: Utf8PathBuf,
    /// Nothing may differ
    #[arg(long, conflicts_with = "relaxed")]
    strict: bool,
    /// What may differ from the recording
    #[arg(long, value_name = "WHAT", default_value = "everything", value_parser = rung())]
    relaxed: Rung,
    /// Let an agent whose profile says `permission: trust` do everything without being asked
    #[arg(long)]
    trust: bool,
}

pub(super) async fn record(args: RecordArgs, evals: &Evals, context: &Context) -> Done {
    let RecordArgs { name, task, agent, trust } = args;
    let recorded = evals.record(&name, agent, task, trust, &stop_on_signal()?).await?;
    let Recorded { cassette, task, trial } = recorded;
    if no_evidence(&trial).is_some() {
        return Err(CliError::new(Exit::Agent, format!("nothing was recorded: {}", ended(&trial))));
    }
    context.ui.say(harmless(trial.output.trim_end()));
    context.ui.aside(format!("recorded in {cassette}; {}", ended(&trial)));
    context.ui.document(SessionDocument::new(cassette, task, trial));
    Ok(Exit::Ok)
}

pub(super) async fn replay(args: &ReplayArgs, evals: &Evals, context: &Context) -> Done {
    let matching = if args.strict { Matching::Strict } else { Matching::Relaxed(args.relaxed) };
    let played = evals.replay(&args.name, matching, args.trust, &stop_on_signal()?).await?;
    let Recorded { cassette, task, trial } = played;
    let replay = trial.replay.as_ref();
    context.ui.say(harmless(trial.output.trim_end()));
    for difference in replay.iter().flat_map(|replay| &replay.differences) {
        context.ui.aside(format!("differs: {}", one_line(difference, 300)));
    }
    let is_exact = replay.is_some_and(|replay| replay.exact);
    let exactly = if is_exact { "exactly as it was recorded" } else { "not as it was recorded" };
    context.ui.aside(format!("played {exactly}; {}", ended(&trial)));
    let exit = if replay.is_some_and(|replay| replay.missed > 0) || (args.strict && !is_exact) {
        Exit::Red
    } else if no_evidence(&trial).is_none() {
        Exit::Ok
    } else {
        Exit::Agent
    };
    context.ui.document(SessionDocument::new(cassette, task, trial));
    Ok(exit)
}

fn ended(trial: &Trial) -> String {
    let detail = trial.outcome.detail().map(|detail| format!(": {}", one_line(&detail, 200)));
    format!("the run ended with {}{}", trial.outcome.name(), detail.unwrap_or_default())
}

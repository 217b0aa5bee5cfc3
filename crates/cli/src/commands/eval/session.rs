//! `eval record` and `eval replay`: one run of an agent by the name of its recording.

use std::collections::BTreeMap;
use std::sync::Arc;

use camino::Utf8PathBuf;
use clap::Args;
use rehearsal_app::cassettes::path_of;
use rehearsal_app::project::Project;
use rehearsal_eval::grade::no_evidence;
use rehearsal_eval::recorded_run::{self, RecordedTask, ReplayError, SessionDocument};
use rehearsal_eval::run::{Obstacle, TrialError};
use rehearsal_eval::trial::Trial;
use rehearsal_git::Git;
use rehearsal_llm::cassette::Matching;

use super::{stop_on_signal, trial_context};
use crate::commands::Done;
use crate::commands::replay::RungName;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::{harmless, one_line};
use crate::words;

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
    #[arg(long, value_name = "WHAT", default_value = "everything")]
    relaxed: RungName,
    /// Let an agent whose profile says `permission: trust` do everything without being asked
    #[arg(long)]
    trust: bool,
}

pub(super) async fn record(args: &RecordArgs, project: &Project, context: &Context) -> Done {
    let cassette = path_of(context, &args.name)?;
    let agent = match &args.agent {
        Some(agent) => agent.clone(),
        None => project.settings()?.agent.to_string(),
    };
    let head = Git::at(project.root.clone()).line(&["rev-parse", "HEAD"]).await;
    let at = head.map_err(|error| CliError::of(Exit::Git, &error).hint("commit something first"))?;
    let task = RecordedTask { agent, task: args.task.clone(), at };
    let surroundings = Arc::new(trial_context(BTreeMap::new(), args.trust, project, context).await?);
    let stop = stop_on_signal()?;
    let trial = recorded_run::record(&task, &project.root, &cassette, surroundings, &stop).await;
    let trial = trial.map_err(not_made)?;
    if no_evidence(&trial).is_some() {
        return Err(CliError::new(Exit::Agent, format!("nothing was recorded: {}", ended(&trial))));
    }
    context.ui.say(harmless(trial.output.trim_end()));
    let shown = project.shown(&cassette);
    context.ui.aside(format!("recorded in {shown}; {}", ended(&trial)));
    context.ui.document(SessionDocument::new(shown, task, trial));
    Ok(Exit::Ok)
}

pub(super) async fn replay(args: &ReplayArgs, project: &Project, context: &Context) -> Done {
    let cassette = path_of(context, &args.name)?;
    let matching = if args.strict { Matching::Strict } else { Matching::Relaxed(args.relaxed.rung()) };
    let surroundings = Arc::new(trial_context(BTreeMap::new(), args.trust, project, context).await?);
    let stop = stop_on_signal()?;
    let shown = project.shown(&cassette);
    let played = recorded_run::replay(&project.root, &cassette, matching, surroundings, &stop).await;
    let (task, trial) = played.map_err(|error| match error {
        ReplayError::Missing => {
            CliError::usage(format!("there is no recording `{shown}` with its task beside it")).hint(format!(
                "record it with `rehearsal eval record --name {} --task TEXT`; `rehearsal replay NAME -- COMMAND` plays a recording of any command",
                args.name
            ))
        }
        ReplayError::BrokenTask { path, error } => CliError::of(Exit::Usage, &error).at(&project.shown(&path)),
        ReplayError::Io(error) => error.into(),
        ReplayError::Trial(error) => not_made(error),
    })?;
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
    context.ui.document(SessionDocument::new(shown, task, trial));
    Ok(exit)
}

fn ended(trial: &Trial) -> String {
    let detail = trial.outcome.detail().map(|detail| format!(": {}", one_line(&detail, 200)));
    format!("the run ended with {}{}", trial.outcome.name(), detail.unwrap_or_default())
}

fn not_made(error: TrialError) -> CliError {
    match error {
        TrialError::Skipped(reason) => CliError::usage(reason),
        TrialError::Obstacle(obstacle @ Obstacle::HoldsSecrets { .. }) => {
            CliError::new(Exit::Agent, obstacle.to_string()).hint(words::remedy(&obstacle))
        }
        TrialError::Obstacle(obstacle) => {
            CliError::usage(obstacle.to_string()).hint(words::remedy(&obstacle))
        }
        TrialError::Failed(reason) => CliError::new(Exit::Agent, reason),
        TrialError::Cancelled => CliError::new(Exit::Interrupted, "interrupted"),
    }
}

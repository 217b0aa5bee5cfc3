//! `eval record` and `eval replay`: one run of an agent by the name of its recording.

use camino::{Utf8Path, Utf8PathBuf};
use clap::Args;
use rehearsal_core::config::Overrides;
use rehearsal_eval::case::parse;
use rehearsal_eval::run::{Attempts as _, Unmade};
use rehearsal_eval::trial::{Replay, Trial, TrialId};
use rehearsal_forge::Git;
use rehearsal_llm::cassette::Matching;
use serde::{Deserialize, Serialize};

use super::attempt::RealAttempts;
use super::tape::{Mode, says_something};
use super::{Found, attempts, stop_on_signal};
use crate::commands::Done;
use crate::commands::cassette::path_of;
use crate::commands::replay::RungName;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::project::{Project, read_text};
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
    #[arg(long, value_name = "WHAT", default_value = "everything")]
    relaxed: RungName,
    /// Let an agent whose profile says `permission: trust` do everything without being asked
    #[arg(long)]
    trust: bool,
}

/// `eval record --json`, `eval replay --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct SessionDocument {
    /// The recording.
    cassette: String,
    /// Who was asked.
    agent: String,
    /// What it was asked.
    task: String,
    /// How its run ended.
    outcome: String,
    /// What it said at the end.
    output: String,
    /// How the replay went, if it was one.
    replay: Option<Replay>,
}

/// What a recording was made of: it stands beside it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    agent: String,
    task: String,
    /// The commit that the agent was given.
    at: String,
}

pub(super) async fn record(args: &RecordArgs, project: &Project, context: &Context) -> Done {
    let cassette = path_of(context, &args.name)?;
    let agent = match &args.agent {
        Some(agent) => agent.clone(),
        None => project.settings(Overrides::default())?.agent.to_string(),
    };
    let head = Git::at(project.root.clone()).line(&["rev-parse", "HEAD"]).await;
    let at = head.map_err(|error| CliError::of(Exit::Git, &error).hint("commit something first"))?;
    let asked = Asked { agent, task: args.task.clone(), at };
    let trial = play(&asked, &cassette, Mode::Record, args.trust, project, context).await?;
    if !says_something(&trial) {
        return Err(CliError::new(Exit::Agent, format!("nothing was recorded: {}", ended(&trial))));
    }
    let text = serde_json::to_string_pretty(&asked).unwrap_or_default();
    fs_err::write(beside(&cassette), text + "\n")?;
    context.ui.say(harmless(trial.output.trim_end()));
    context.ui.aside(format!("recorded in {}; {}", project.shown(&cassette), ended(&trial)));
    document(asked, &cassette, trial, project, context);
    Ok(Exit::Ok)
}

pub(super) async fn replay(args: &ReplayArgs, project: &Project, context: &Context) -> Done {
    let cassette = path_of(context, &args.name)?;
    let file = beside(&cassette);
    let Some(text) = read_text(&file)?.filter(|_| cassette.exists()) else {
        let error = CliError::usage(format!(
            "there is no recording `{}` with its task beside it",
            project.shown(&cassette)
        ));
        return Err(error.hint(format!(
            "record it with `rehearsal eval record --name {} --task TEXT`; `rehearsal replay NAME -- COMMAND` plays a recording of any command",
            args.name
        )));
    };
    let asked: Asked = serde_json::from_str(&text)
        .map_err(|error| CliError::usage(format!("{error}")).at(&project.shown(&file)))?;
    let matching = if args.strict { Matching::Strict } else { Matching::Relaxed(args.relaxed.rung()) };
    let trial = play(&asked, &cassette, Mode::Replay(matching), args.trust, project, context).await?;
    let replay = trial.replay.clone();
    let differences = replay.iter().flat_map(|replay| &replay.differences);
    context.ui.say(harmless(trial.output.trim_end()));
    for difference in differences {
        context.ui.aside(format!("differs: {}", one_line(difference, 300)));
    }
    let is_exact = replay.as_ref().is_some_and(|replay| replay.exact);
    let exactly = if is_exact { "exactly as it was recorded" } else { "not as it was recorded" };
    context.ui.aside(format!("played {exactly}; {}", ended(&trial)));
    let missed = replay.as_ref().is_some_and(|replay| replay.missed > 0);
    let is_good = says_something(&trial);
    document(asked, &cassette, trial, project, context);
    Ok(if missed || (args.strict && !is_exact) {
        Exit::Red
    } else if is_good {
        Exit::Ok
    } else {
        Exit::Agent
    })
}

fn document(asked: Asked, cassette: &Utf8Path, trial: Trial, project: &Project, context: &Context) {
    context.ui.document(SessionDocument {
        cassette: project.shown(cassette),
        agent: asked.agent,
        task: asked.task,
        outcome: trial.outcome.name().to_string(),
        output: trial.output,
        replay: trial.replay,
    });
}

fn ended(trial: &Trial) -> String {
    let detail = trial.outcome.detail().map(|detail| format!(": {}", one_line(&detail, 200)));
    format!("the run ended with {}{}", trial.outcome.name(), detail.unwrap_or_default())
}

/// Where it stands what a recording was made of.
fn beside(cassette: &Utf8Path) -> Utf8PathBuf {
    cassette.with_extension("task.json")
}

/// A run is the one trial of an eval of one case.
async fn play(
    asked: &Asked,
    cassette: &Utf8Path,
    mode: Mode,
    trust: bool,
    project: &Project,
    context: &Context,
) -> Result<Trial, CliError> {
    // JSON is YAML.
    let text = serde_json::json!({
        "name": "session",
        "cases": [{
            "name": "session",
            "prompt": asked.task,
            "agents": [asked.agent],
            "cassette": cassette,
            "repository": { "path": project.root, "at": asked.at },
            "assert": [{ "type": "no-errors" }],
        }],
    })
    .to_string();
    let eval = parse(&text, &asked.agent).map_err(|error| CliError::usage(error.message))?;
    let found = Found { eval, text, path: project.directory().join("session.yaml") };
    let attempts = RealAttempts { trust, ..attempts(&found, mode, project, context).await? };
    let stop = stop_on_signal()?;
    let [case] = &found.eval.cases[..] else { return Err(CliError::usage("there is nothing to do")) };
    let variant = case.variants.first().cloned();
    let variant = variant.ok_or_else(|| CliError::usage("there is no agent"))?;
    let id = TrialId { case: case.name.clone(), variant, trial: 1 };
    attempts.attempt(case, &id, &stop).await.map_err(|unmade| match unmade {
        Unmade::Skipped(why) => CliError::usage(why),
        Unmade::Failed(why) => CliError::new(Exit::Agent, why),
        Unmade::Cancelled => CliError::new(Exit::Interrupted, "interrupted"),
    })
}

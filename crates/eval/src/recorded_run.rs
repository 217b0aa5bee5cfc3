//! One run of an agent, recorded under a name and replayed: `eval record` and `eval replay`.

use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_core::BoxFuture;
use rehearsal_llm::cassette::Matching;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::attempt::{AgentTrials, Mode, TrialContext};
use crate::case::parse;
use crate::grade::no_evidence;
use crate::run::{Attempts as _, TrialError};
use crate::trial::{Replay, Trial, TrialId};

/// `eval record --json`, `eval replay --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionDocument {
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

impl SessionDocument {
    /// The result of a run; `cassette` is the recording as messages show it.
    pub fn new(cassette: String, task: RecordedTask, trial: Trial) -> Self {
        let outcome = trial.outcome.name().to_string();
        let RecordedTask { agent, task, .. } = task;
        Self { cassette, agent, task, outcome, output: trial.output, replay: trial.replay }
    }
}

/// What an agent was asked. Stored beside the recording.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedTask {
    /// The agent.
    pub agent: String,
    /// The prompt.
    pub task: String,
    /// The commit the agent started from.
    pub at: String,
}

/// Why a recording cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The recording or its task does not exist.
    #[error("there is no recording with its task beside it")]
    Missing,
    /// The task beside the recording cannot be read.
    #[error("{error}")]
    BrokenTask {
        /// The file.
        path: Utf8PathBuf,
        /// What is wrong with it.
        error: serde_json::Error,
    },
    /// A file cannot be read.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The trial failed.
    #[error("the run failed")]
    Trial(TrialError),
}

/// Records one run in a scratch copy of the repository at `root`. If the trial is no evidence, nothing is kept.
pub fn record<'a>(
    task: &'a RecordedTask,
    root: &'a Utf8Path,
    cassette: &'a Utf8Path,
    context: Arc<TrialContext>,
    cancel: &'a CancellationToken,
) -> BoxFuture<'a, Result<Trial, TrialError>> {
    Box::pin(async move {
        let trial = run(task, root, cassette, Mode::Record, context, cancel).await?;
        if no_evidence(&trial).is_none() {
            let text = serde_json::to_string_pretty(task).unwrap_or_default();
            fs_err::write(task_path(cassette), text + "\n")
                .map_err(|error| TrialError::Failed(error.to_string()))?;
        }
        Ok(trial)
    })
}

/// Replays a recording that [`record`] made.
pub fn replay<'a>(
    root: &'a Utf8Path,
    cassette: &'a Utf8Path,
    matching: Matching,
    context: Arc<TrialContext>,
    cancel: &'a CancellationToken,
) -> BoxFuture<'a, Result<(RecordedTask, Trial), ReplayError>> {
    Box::pin(async move {
        let path = task_path(cassette);
        if !path.exists() || !cassette.exists() {
            return Err(ReplayError::Missing);
        }
        let text = fs_err::read_to_string(&path)?;
        let task: RecordedTask =
            serde_json::from_str(&text).map_err(|error| ReplayError::BrokenTask { path, error })?;
        let trial = run(&task, root, cassette, Mode::Replay(matching), context, cancel).await;
        Ok((task, trial.map_err(ReplayError::Trial)?))
    })
}

fn task_path(cassette: &Utf8Path) -> Utf8PathBuf {
    cassette.with_extension("task.json")
}

/// A run is the one trial of an eval with one case.
async fn run(
    task: &RecordedTask,
    root: &Utf8Path,
    cassette: &Utf8Path,
    mode: Mode,
    context: Arc<TrialContext>,
    cancel: &CancellationToken,
) -> Result<Trial, TrialError> {
    // JSON is YAML.
    let text = serde_json::json!({
        "name": "session",
        "cases": [{
            "name": "session",
            "prompt": task.task,
            "agents": [task.agent],
            "cassette": cassette,
            "repository": { "path": root, "at": task.at },
            "assert": [{ "type": "no-errors" }],
        }],
    })
    .to_string();
    let eval = parse(&text, &task.agent).map_err(|error| TrialError::Skipped(error.message))?;
    let case = eval.cases.first().ok_or_else(|| TrialError::Skipped("there is nothing to do".to_owned()))?;
    let variant = case.variants.first().cloned();
    let variant = variant.ok_or_else(|| TrialError::Skipped("there is no agent".to_owned()))?;
    let id = TrialId { case: case.name.clone(), variant, trial: 1 };
    AgentTrials::new(&eval, root, mode, context).attempt(case, &id, cancel).await
}

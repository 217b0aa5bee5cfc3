//! Runs: what agents did, and why a task is not moving.

use camino::Utf8Path;
use rehearsal_core::{Blame, Run, SessionName};
use rehearsal_engine::why::{Surroundings, Why};
use rehearsal_engine::{LoopLock, has_died};
use rehearsal_store::{RunQuery, Scope};
use serde::Serialize;

use crate::project::{Project, ProjectError};
use crate::tasks::{Decision, last_decision};

/// `runs list --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunList {
    /// Newest first.
    pub runs: Vec<Run>,
}

/// `runs show --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunDocument {
    /// The run.
    pub run: Run,
    /// Where its files are: prompt, output, activity, result.
    pub directory: String,
    /// Whether its worker died before it ended.
    pub worker_died: bool,
    /// The end of standard error, where a run that went wrong often says why.
    #[serde(skip)]
    pub last_words: Vec<String>,
}

/// Why a task is not moving.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WhyAnswer {
    /// What holds it.
    #[serde(flatten)]
    pub why: Why,
    /// What a person decided last.
    pub decision: Option<Decision>,
}

/// Whose runs.
#[derive(Debug)]
pub enum RunsOf {
    /// Everyone's.
    All,
    /// A session's.
    Session(SessionName),
    /// Those of a task, which is named by a unique prefix of its id.
    Task(String),
}

/// Lists runs, newest first.
pub async fn list(project: &Project, of: RunsOf, limit: u32) -> Result<RunList, ProjectError> {
    let store = project.store().await?;
    let scope = match of {
        RunsOf::Session(session) => Scope::Session(store.session(&session).await?.name),
        RunsOf::Task(task) => Scope::Task(store.find_task(&task).await?.id),
        RunsOf::All => Scope::All,
    };
    Ok(RunList { runs: store.runs(&RunQuery { scope, limit: Some(limit) }).await? })
}

/// Shows a run, which is named by a unique prefix of its id.
pub async fn show(project: &Project, run: &str) -> Result<RunDocument, ProjectError> {
    let run = project.store().await?.find_run(run).await?;
    let directory = project.runs_dir()?.join(run.start.id.as_str());
    let last_words = last_words(&run, &directory);
    let worker_died = run.end.is_none() && has_died(&run.start.worker, &project.state_dir()?);
    Ok(RunDocument { run, directory: project.shown(&directory), worker_died, last_words })
}

/// Why a task, which is named by a unique prefix of its id, is not moving.
pub async fn why(project: &Project, task: &str) -> Result<WhyAnswer, ProjectError> {
    let store = project.store().await?;
    let task = store.find_task(task).await?;
    let (state_dir, limits) = (project.state_dir()?, project.settings()?.limits());
    let holder = LoopLock::holder(&state_dir);
    let around = Surroundings {
        now: project.caller.now(),
        limits: &limits,
        loop_holder: holder.as_deref(),
        state_dir: &state_dir,
    };
    let why = rehearsal_engine::why::why(&*store, &task, &around).await?;
    Ok(WhyAnswer { why, decision: last_decision(&*store, &task.id).await? })
}

fn last_words(run: &Run, directory: &Utf8Path) -> Vec<String> {
    let went_wrong = run.outcome().is_some_and(|outcome| outcome.blame() != Blame::Nobody);
    if went_wrong { rehearsal_engine::last_words(directory) } else { Vec::new() }
}

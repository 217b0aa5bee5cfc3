//! Makes the trials of an eval, several at a time, and writes each down as soon as it is over.

mod archive;
mod journal;
mod progress;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use async_trait::async_trait;
use rehearsal_core::BoxFuture;
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use archive::{Archive, EvalRun, FindRunError};
pub use journal::{Journal, JournalError};
pub use progress::{Estimate, Progress};

use crate::case::{Case, Eval};
use crate::grade::{Verdict, grade, no_evidence};
use crate::summary::Record;
use crate::trial::{Trial, TrialId};

/// Whoever can make a trial: with an agent, with its stand-in, or from a recording.
#[async_trait]
pub trait Attempts: Send + Sync {
    /// Makes one trial, from nothing to its end. Cancelled, it stops at once and leaves nothing.
    async fn attempt(
        &self,
        case: &Case,
        id: &TrialId,
        cancel: &CancellationToken,
    ) -> Result<Trial, TrialError>;
}

/// Why there is no trial.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TrialError {
    /// It cannot be made here: something that it needs is missing.
    #[error("{0}")]
    Skipped(String),
    /// The user can remove what is in the way.
    #[error(transparent)]
    Obstacle(Obstacle),
    /// Something around the agent went wrong.
    #[error("{0}")]
    Failed(String),
    /// It was stopped, and says nothing.
    #[error("it was stopped")]
    Cancelled,
}

/// What is in the way of a trial, and can be removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
#[expect(missing_docs, reason = "the words of `Display` say what each is")]
pub enum Obstacle {
    #[error("there is no recording `{name}`")]
    NotRecorded { name: String, eval: String, case: String },
    #[error("`{agent}` ({driver}) spends tokens")]
    AgentSpendsTokens { agent: String, driver: String },
    #[error("`{model}` spends tokens")]
    ModelSpendsTokens { model: String },
    #[error("`permission: trust` in {origin} needs your word")]
    NotTrusted { origin: String },
    #[error("`{cassette}` is not played: {error}")]
    HoldsSecrets { cassette: String, error: String },
}

/// How an eval is run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// So many trials at a time.
    pub jobs: usize,
    /// No trial is begun when so many dollars are spent.
    pub budget_usd: Option<f64>,
}

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// All trials were made.
    Complete,
    /// The money is spent; what is missing can be made later.
    OverBudget,
    /// Someone stopped it; what is missing can be made later.
    Cancelled,
}

/// What happens while it runs.
#[derive(Debug)]
pub enum RunEvent<'a> {
    /// A trial begins.
    Began(&'a TrialId),
    /// A trial is over, and written down.
    Over(&'a Record, Progress),
}

/// Makes all trials that the journal does not have. Those that it has as errors are made again.
pub fn run<'a>(
    eval: &'a Eval,
    attempts: Arc<dyn Attempts>,
    journal: &'a mut Journal,
    limits: Limits,
    watch: &'a mut (dyn FnMut(RunEvent<'_>) + Send),
    cancel: &'a CancellationToken,
) -> BoxFuture<'a, Result<Ended, JournalError>> {
    Box::pin(async move {
        let mut missing = missing(eval, journal.records());
        let mut progress = Progress::new(eval, missing.len());
        let mut running: JoinSet<(Arc<Case>, TrialId, Result<Trial, TrialError>)> = JoinSet::new();
        let cases: BTreeMap<&str, Arc<Case>> =
            eval.cases.iter().map(|case| (case.name.as_str(), Arc::new(case.clone()))).collect();
        let mut ended = Ended::Complete;
        loop {
            while running.len() < limits.jobs.max(1) && !cancel.is_cancelled() {
                if limits.budget_usd.is_some_and(|budget| !missing.is_empty() && progress.spent() >= budget) {
                    ended = Ended::OverBudget;
                    missing.clear();
                }
                let Some(id) = missing.pop_front() else { break };
                let Some(case) = cases.get(id.case.as_str()).map(Arc::clone) else { continue };
                watch(RunEvent::Began(&id));
                let (attempts, cancel) = (Arc::clone(&attempts), cancel.clone());
                running.spawn(async move {
                    let made = attempts.attempt(&case, &id, &cancel).await;
                    (case, id, made)
                });
            }
            match running.join_next().await {
                None => break,
                Some(Ok((case, id, made))) => {
                    let Some(record) = record(&case, id, made) else { continue };
                    journal.add(&record)?;
                    progress.add(&record);
                    watch(RunEvent::Over(&record, progress));
                }
                // A trial that panicked says nothing of any agent; it stays missing.
                Some(Err(_)) => {}
            }
        }
        Ok(if cancel.is_cancelled() { Ended::Cancelled } else { ended })
    })
}

/// The trials that are not there yet, the first trial of every case before the second of any.
fn missing(eval: &Eval, records: &[Record]) -> VecDeque<TrialId> {
    let mut made: BTreeMap<&TrialId, Verdict> = BTreeMap::new();
    for record in records {
        made.insert(&record.id, record.verdict);
    }
    let mut all: Vec<TrialId> = Vec::new();
    for case in &eval.cases {
        for variant in &case.variants {
            let id = |trial| TrialId { case: case.name.clone(), variant: variant.clone(), trial };
            all.extend((1..=case.repeat).map(id));
        }
    }
    all.retain(|id| matches!(made.get(id), None | Some(Verdict::Error)));
    all.sort_by_key(|id| id.trial);
    all.into()
}

/// What is written down of a trial; nothing of one that was stopped.
fn record(case: &Case, id: TrialId, made: Result<Trial, TrialError>) -> Option<Record> {
    let without = |id, verdict, error: TrialError| {
        let reason = Some(error.to_string());
        let obstacle = if let TrialError::Obstacle(obstacle) = error { Some(obstacle) } else { None };
        Record { id, verdict, reason, obstacle, graded: vec![], trial: None }
    };
    Some(match made {
        Ok(trial) => {
            let (graded, verdict) = grade(&trial, &case.assertions, case.file.threshold);
            Record { id, verdict, reason: no_evidence(&trial), obstacle: None, graded, trial: Some(trial) }
        }
        Err(TrialError::Cancelled) => return None,
        Err(error @ (TrialError::Failed(_) | TrialError::Obstacle(Obstacle::HoldsSecrets { .. }))) => {
            without(id, Verdict::Error, error)
        }
        Err(error @ (TrialError::Skipped(_) | TrialError::Obstacle(_))) => {
            without(id, Verdict::Skipped, error)
        }
    })
}

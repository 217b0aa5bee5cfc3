//! Writing runs.

use rehearsal_core::transition::Refusal;
use rehearsal_core::{EventKind, Run, RunEnd, RunId, RunStart, SessionName, Standing, Task, Tokens};

use super::Writing;
use crate::json::{from_json, to_json};
use crate::link::values;
use crate::tables::log::About;
use crate::tables::tasks::task_to_change;
use crate::{CommitError, StoreError};

impl Writing<'_> {
    pub(super) async fn start_run(&mut self, start: RunStart) -> Result<Run, CommitError> {
        let claimed = task_to_change(&mut self.link, &start.task).await?;
        if !claimed.as_ref().is_some_and(|claimed| holds(claimed, &start)) {
            return Err(self.why_not_started(start, claimed).await?);
        }
        let inserted = self
            .link
            .execute(
                "INSERT INTO runs (id, task, session, fence, agent, started_at, start_doc)
                 VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (id) DO NOTHING",
                values![
                    start.id.as_str(),
                    start.task.as_str(),
                    start.session.as_ref().map(SessionName::as_str),
                    start.fence.0,
                    start.agent.as_str(),
                    start.started_at.0,
                    to_json(&start)?,
                ],
            )
            .await?;
        if inserted == 0 {
            return Err(CommitError::IdTaken { id: start.id.to_string() });
        }
        let about = About { task: Some(&start.task), session: start.session.as_ref(), run: Some(&start.id) };
        self.append(about, &EventKind::RunStarted { run: start.clone() }).await?;
        Ok(Run { start, end: None })
    }

    async fn why_not_started(
        &mut self,
        start: RunStart,
        claimed: Option<Task>,
    ) -> Result<CommitError, StoreError> {
        if self.is_run(&start.id).await? {
            return Ok(CommitError::IdTaken { id: start.id.to_string() });
        }
        let Some(Task { id, fence: current, .. }) = claimed else {
            return Ok(CommitError::UnknownTask { id: start.task });
        };
        let refusal = Refusal::Stale { task: id.to_string(), given: start.fence, current };
        Ok(CommitError::Refused { index: self.index, refusal })
    }

    async fn is_run(&mut self, id: &RunId) -> Result<bool, StoreError> {
        let known: Option<(String,)> =
            self.link.optional("SELECT id FROM runs WHERE id = $1", values![id.as_str()]).await?;
        Ok(known.is_some())
    }

    pub(super) async fn end_run(&mut self, id: RunId, mut end: Box<RunEnd>) -> Result<Run, CommitError> {
        // JSON has no infinity: what is not a number is not known.
        end.cost_usd = end.cost_usd.filter(|usd| usd.is_finite());
        let Some(start) = self.write_end(&id, &end).await? else {
            let known = self.is_run(&id).await?;
            return Err(if known {
                CommitError::RunEnded { run: id }
            } else {
                CommitError::UnknownRun { id }
            });
        };
        let kind = EventKind::RunEnded { run: id, end };
        let about = About { task: Some(&start.task), session: start.session.as_ref(), run: Some(&start.id) };
        self.append(about, &kind).await?;
        let EventKind::RunEnded { end, .. } = kind else {
            return Ok(Run { start, end: None });
        };
        Ok(Run { start, end: Some(*end) })
    }

    /// Ends a run that has no end yet; how it began, if it is such a one.
    async fn write_end(&mut self, id: &RunId, end: &RunEnd) -> Result<Option<RunStart>, StoreError> {
        let columns = EndColumns::of(end);
        let start: Option<(String,)> = self
            .link
            .optional(
                "UPDATE runs SET ended_at = $2, cost_usd = $3, tokens_input = $4, tokens_cached = $5,
                                 tokens_output = $6, turns = $7, end_doc = $8
                 WHERE id = $1 AND end_doc IS NULL RETURNING start_doc",
                values![
                    id.as_str(),
                    columns.ended_at,
                    columns.cost_usd,
                    columns.tokens_input,
                    columns.tokens_cached,
                    columns.tokens_output,
                    columns.turns,
                    to_json(end)?,
                ],
            )
            .await?;
        start.map(|(doc,)| from_json("the start of a run", &doc)).transpose()
    }
}

fn holds(task: &Task, start: &RunStart) -> bool {
    matches!(&task.standing, Standing::Claimed(claim) if claim.run == start.id) && task.fence == start.fence
}

/// The columns that follow from the end of a run.
#[derive(Debug, PartialEq, Default)]
pub(crate) struct EndColumns {
    pub(crate) ended_at: Option<i64>,
    pub(crate) cost_usd: Option<f64>,
    pub(crate) tokens_input: Option<i64>,
    pub(crate) tokens_cached: Option<i64>,
    pub(crate) tokens_output: Option<i64>,
    pub(crate) turns: Option<i64>,
}

impl EndColumns {
    pub(crate) fn of(end: &RunEnd) -> Self {
        let tokens = |count: fn(&Tokens) -> u64| end.tokens.as_ref().map(|tokens| whole(count(tokens)));
        Self {
            ended_at: Some(end.ended_at.0),
            cost_usd: end.cost_usd,
            tokens_input: tokens(|tokens| tokens.input),
            tokens_cached: tokens(|tokens| tokens.cached),
            tokens_output: tokens(|tokens| tokens.output),
            turns: end.turns.map(whole),
        }
    }
}

/// The integers of databases are signed, and a sum that overflows is an error there: a count that mad is cut to what
/// leaves room for a thousand of its like.
fn whole(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX).min(i64::MAX / 1024)
}

//! Writing runs.

use rehearsal_core::transition::Refusal;
use rehearsal_core::{EventKind, Run, RunEnd, RunId, RunStart, SessionName, Standing, Task, Tokens};
use sqlx::{query, query_as, query_scalar};

use super::Writing;
use crate::sqlite::error::to_json;
use crate::sqlite::log::About;
use crate::sqlite::runs::{RunRow, read_run};
use crate::sqlite::tasks::task;
use crate::{CommitError, StoreError};

impl Writing<'_> {
    pub(super) async fn start_run(&mut self, start: RunStart) -> Result<Run, CommitError> {
        self.free_run_id(&start.id).await?;
        let Some(claimed) = task(self.connection, &start.task).await? else {
            return Err(CommitError::UnknownTask { id: start.task });
        };
        if !holds(&claimed, &start) {
            let refusal =
                Refusal::Stale { task: claimed.id.to_string(), given: start.fence, current: claimed.fence };
            return Err(CommitError::Refused { index: self.index, refusal });
        }
        query(
            "INSERT INTO runs (id, task, session, fence, started_at, start_doc)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )
        .bind(start.id.as_str())
        .bind(start.task.as_str())
        .bind(start.session.as_ref().map(SessionName::as_str))
        .bind(start.fence.0)
        .bind(start.started_at.0)
        .bind(to_json(&start)?)
        .execute(&mut *self.connection)
        .await?;
        let about = About { task: Some(&start.task), session: start.session.as_ref(), run: Some(&start.id) };
        self.append(about, &EventKind::RunStarted { run: start.clone() }).await?;
        Ok(Run { start, end: None })
    }

    async fn free_run_id(&mut self, id: &RunId) -> Result<(), CommitError> {
        let taken: Option<String> = query_scalar("SELECT id FROM runs WHERE id = ?1")
            .bind(id.as_str())
            .fetch_optional(&mut *self.connection)
            .await?;
        taken.map_or(Ok(()), |id| Err(CommitError::IdTaken { id }))
    }

    pub(super) async fn end_run(&mut self, id: RunId, mut end: Box<RunEnd>) -> Result<Run, CommitError> {
        // JSON has no infinity: what is not a number is not known.
        end.cost_usd = end.cost_usd.filter(|usd| usd.is_finite());
        let row: Option<RunRow> = query_as("SELECT start_doc, end_doc FROM runs WHERE id = ?1")
            .bind(id.as_str())
            .fetch_optional(&mut *self.connection)
            .await?;
        let Some(row) = row else {
            return Err(CommitError::UnknownRun { id });
        };
        let run = read_run(&row)?;
        if run.end.is_some() {
            return Err(CommitError::RunEnded { run: id });
        }
        self.write_end(&id, &end).await?;
        let kind = EventKind::RunEnded { run: id, end };
        let start = &run.start;
        let about = About { task: Some(&start.task), session: start.session.as_ref(), run: Some(&start.id) };
        self.append(about, &kind).await?;
        let EventKind::RunEnded { end, .. } = kind else {
            return Ok(run);
        };
        Ok(Run { start: run.start, end: Some(*end) })
    }

    async fn write_end(&mut self, id: &RunId, end: &RunEnd) -> Result<(), StoreError> {
        let columns = EndColumns::of(end);
        query(
            "UPDATE runs SET ended_at = ?2, cost_usd = ?3, tokens_input = ?4, tokens_cached = ?5,
                             tokens_output = ?6, turns = ?7, end_doc = ?8
             WHERE id = ?1",
        )
        .bind(id.as_str())
        .bind(columns.ended_at)
        .bind(columns.cost_usd)
        .bind(columns.tokens_input)
        .bind(columns.tokens_cached)
        .bind(columns.tokens_output)
        .bind(columns.turns)
        .bind(to_json(end)?)
        .execute(&mut *self.connection)
        .await?;
        Ok(())
    }
}

fn holds(task: &Task, start: &RunStart) -> bool {
    matches!(&task.standing, Standing::Claimed(claim) if claim.run == start.id) && task.fence == start.fence
}

/// The columns that follow from the end of a run.
#[derive(Debug, PartialEq, Default)]
pub(in crate::sqlite) struct EndColumns {
    pub(in crate::sqlite) ended_at: Option<i64>,
    pub(in crate::sqlite) cost_usd: Option<f64>,
    pub(in crate::sqlite) tokens_input: Option<i64>,
    pub(in crate::sqlite) tokens_cached: Option<i64>,
    pub(in crate::sqlite) tokens_output: Option<i64>,
    pub(in crate::sqlite) turns: Option<i64>,
}

impl EndColumns {
    pub(in crate::sqlite) fn of(end: &RunEnd) -> Self {
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

/// SQLite's integers are signed, and a sum that overflows is an error there: a count that mad is cut to what
/// leaves room for a thousand of its like.
fn whole(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX).min(i64::MAX / 1024)
}

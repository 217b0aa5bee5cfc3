//! One commit: begin, change, commit; and what to make of a connection that breaks in the last of them.

use rehearsal_core::{Actor, Timestamp};
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::at_once::Doubt;
use super::patience::Patience;
use super::server::Turn;
use super::{PostgresStore, TimeSource};
use crate::link::{FirstRead, Link, values};
use crate::tables::commit::{NOW, Writing, Written, first_read};
use crate::tables::log::{self, Trace};
use crate::{Change, CommitError, Committed, StoreError};

/// The server's clock, in milliseconds.
macro_rules! server_time {
    () => {
        "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
    };
}
pub(crate) use server_time;

/// How a transaction ended.
enum Ending {
    Committed,
    RolledBack,
    Unknown,
}

/// A transaction that has begun.
struct Begun {
    at: Timestamp,
    /// Its number.
    transaction: Option<String>,
    /// What was read with its beginning.
    read: Option<(FirstRead, Vec<PgRow>)>,
}

impl PostgresStore {
    /// Makes all changes or none. [`StoreError::Unreachable`] and [`StoreError::Contended`]: none, and it can be tried
    /// again.
    pub(super) async fn commit_once(
        &self,
        actor: &Actor,
        at: Timestamp,
        changes: Vec<Change>,
        doubt: Option<&Doubt>,
    ) -> Result<Vec<Committed>, CommitError> {
        let mut turn = self.server.turn().await?;
        let Begun { at, transaction, read } = self.begin(&mut turn, at, &changes).await?;
        let link = Link::postgres_after(&mut turn.connection, read);
        let mut writing = Writing::new(link, &self.flows, actor, at, transaction);
        if let Some(doubt) = doubt
            && let Some(settled) = doubt.settle(&mut writing).await?
        {
            turn.run("ROLLBACK").await?;
            return Ok(turn.kept(settled));
        }
        let committed = match writing.apply_all(changes).await {
            Ok(committed) => committed,
            Err(error) => {
                if turn.run("ROLLBACK").await.is_ok() {
                    turn.keep();
                }
                return Err(error);
            }
        };
        let ended = writing.commit().await;
        let written = writing.into_written();
        if let Err(error) = ended {
            drop(turn);
            self.server.heed(&error);
            return match self.ending_of(written.as_ref()).await {
                Ending::Committed => Ok(committed),
                Ending::RolledBack => Err(error.into()),
                Ending::Unknown => Err(CommitError::OutcomeUnknown),
            };
        }
        // What was committed is committed, whether others hear of it or not.
        if written.is_none() || self.hints.tell(&mut turn).await.is_ok() {
            turn.keep();
        }
        Ok(committed)
    }

    /// Begins a transaction. A claim that finds nothing to do needs no number: it gets one with the task that it takes.
    async fn begin(
        &self,
        turn: &mut Turn<'_>,
        given: Timestamp,
        changes: &[Change],
    ) -> Result<Begun, StoreError> {
        let first = changes.first().and_then(first_read);
        let only_claims = changes.iter().all(|change| matches!(change, Change::ClaimNext(_)));
        let opening = match &first {
            Some(_) => "BEGIN",
            None if only_claims => concat!("BEGIN; SELECT NULL, ", server_time!(), ", NULL::text"),
            None => concat!("BEGIN; SELECT NULL, ", server_time!(), ", pg_current_xact_id()::text"),
        };
        let time = match self.time {
            TimeSource::Given => given.0.to_string(),
            TimeSource::Server => server_time!().to_owned(),
        };
        let rows = turn.connection.begin_and_read(opening, &time, first.as_ref()).await?;
        let is_look = first.as_ref().is_some_and(|first| first.is_timed);
        let (shown, transaction) = if is_look { (time_of_look(&rows)?, None) } else { time_of_row(&rows)? };
        let at = match (self.time, shown) {
            (TimeSource::Server, Some(shown)) => {
                self.known.note_time(shown);
                shown
            }
            // There is no such task, and so nothing that would happen at any time.
            (TimeSource::Server, None) | (TimeSource::Given, _) => given,
        };
        Ok(Begun { at, transaction, read: first.map(|first| (first, rows)) })
    }

    /// Asks the server how a transaction ended whose last word was lost.
    async fn ending_of(&self, written: Option<&Written>) -> Ending {
        let Some(Written { trace, transaction }) = written else {
            return Ending::Committed;
        };
        let Some(transaction) = transaction else {
            return Ending::Unknown;
        };
        let mut patience = Patience::new();
        loop {
            let trouble = match self.look_for(trace, transaction).await {
                Ok(Some(ending)) => return ending,
                // The server has not noticed yet that we are gone, or is still at it.
                Ok(None) => StoreError::Unreachable { what: "a transaction is still under way".to_owned() },
                Err(error) => error,
            };
            self.server.heed(&trouble);
            if !patience.lasts(&trouble).await {
                return Ending::Unknown;
            }
        }
    }

    /// How a transaction ended, if it has; by what it wrote. Its number alone does not tell: a server that crashes forgets the
    /// numbers that it had not written down, and gives them out again.
    async fn look_for(&self, trace: &Trace, transaction: &str) -> Result<Option<Ending>, StoreError> {
        // A number that was not given out yet, which nobody may ask for, was forgotten.
        const IS_UNDER_WAY: &str = "SELECT CASE WHEN $1::xid8 < pg_current_xact_id()
                                           THEN coalesce(pg_xact_status($1::xid8) = 'in progress', false)
                                           ELSE false END";
        let mut turn = self.server.turn().await?;
        let mut link = turn.link();
        let (is_under_way,): (bool,) = link.one(IS_UNDER_WAY, values![transaction]).await?;
        // Only now: what ends between two looks is seen by the second.
        let is_there = log::is_there(&mut link, trace, transaction).await?;
        turn.keep();
        Ok(match (is_there, is_under_way) {
            (true, _) => Some(Ending::Committed),
            (false, true) => None,
            (false, false) => Some(Ending::RolledBack),
        })
    }
}

/// The time and the number of the transaction stand behind what was read.
fn time_of_row(rows: &[PgRow]) -> Result<(Option<Timestamp>, Option<String>), StoreError> {
    let Some(row) = rows.first() else { return Ok((None, None)) };
    Ok((Some(Timestamp(row.try_get(1)?)), row.try_get(2)?))
}

/// A look has a row for the time.
fn time_of_look(rows: &[PgRow]) -> Result<Option<Timestamp>, StoreError> {
    for row in rows {
        if row.try_get::<&str, _>(0)? == NOW {
            return Ok(Some(Timestamp(row.try_get(4)?)));
        }
    }
    Ok(None)
}

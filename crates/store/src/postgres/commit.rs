//! One commit: begin, change, commit; and what to make of a connection that breaks in the last of them.

use rehearsal_core::{Actor, Timestamp};
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::patience::Patience;
use super::server::Turn;
use super::{PostgresStore, TimeSource};
use crate::link::{FirstRead, Link, values};
use crate::tables::commit::{Writing, first_read};
use crate::{Change, CommitError, Committed, StoreError};

/// The server's clock, in milliseconds.
macro_rules! server_time {
    () => {
        "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
    };
}
pub(super) use server_time;

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
    ) -> Result<Vec<Committed>, CommitError> {
        let mut turn = self.server.turn().await?;
        let Begun { at, transaction, read } = self.begin(&mut turn, at, &changes).await?;
        let link = Link::postgres_after(&mut turn.connection, read);
        let mut writing = Writing::new(link, &self.flows, actor, at, transaction);
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
        let (has_written, transaction) = (writing.has_written(), writing.into_transaction());
        if let Err(error) = ended {
            drop(turn);
            self.server.heed(&error);
            return match self.ending_of(transaction.as_deref()).await {
                Ending::Committed => Ok(committed),
                Ending::RolledBack => Err(error.into()),
                Ending::Unknown => Err(CommitError::OutcomeUnknown),
            };
        }
        // What was committed is committed, whether others hear of it or not.
        if !has_written || self.hints.tell(&mut turn).await.is_ok() {
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
        let only_claims = changes.iter().all(|change| matches!(change, Change::ClaimNext(_)));
        let opening = if only_claims {
            concat!("BEGIN; SELECT ", server_time!(), ", NULL::text")
        } else {
            concat!("BEGIN; SELECT ", server_time!(), ", pg_current_xact_id()::text")
        };
        let time = match self.time {
            TimeSource::Given => given.0.to_string(),
            TimeSource::Server => server_time!().to_owned(),
        };
        let first = changes.first().and_then(first_read);
        let mut rows = turn.connection.begin_and_read(opening, &time, first.as_ref()).await?.into_iter();
        let row = rows.next().ok_or_else(|| StoreError::Other(Box::new(sqlx::Error::RowNotFound)))?;
        let at = match self.time {
            TimeSource::Given => given,
            TimeSource::Server => Timestamp(row.try_get(0)?),
        };
        Ok(Begun { at, transaction: row.try_get(1)?, read: first.map(|first| (first, rows.collect())) })
    }

    /// Asks the server how a transaction ended whose last word was lost. One without a number wrote nothing.
    async fn ending_of(&self, transaction: Option<&str>) -> Ending {
        let Some(transaction) = transaction else {
            return Ending::Committed;
        };
        let mut patience = Patience::new();
        loop {
            let trouble = match self.status_of(transaction).await {
                Ok(Some(status)) if status == "committed" => return Ending::Committed,
                Ok(Some(status)) if status == "aborted" => return Ending::RolledBack,
                // The server has not noticed yet that we are gone, or is still at it.
                Ok(Some(_)) => {
                    StoreError::Unreachable { what: "a transaction is still under way".to_owned() }
                }
                Ok(None) => return Ending::Unknown,
                Err(error) => error,
            };
            self.server.heed(&trouble);
            if !patience.lasts(&trouble).await {
                return Ending::Unknown;
            }
        }
    }

    async fn status_of(&self, transaction: &str) -> Result<Option<String>, StoreError> {
        let mut turn = self.server.turn().await?;
        let (status,) = turn.link().one("SELECT pg_xact_status($1::xid8)", values![transaction]).await?;
        turn.keep();
        Ok(status)
    }
}

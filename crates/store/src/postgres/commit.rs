//! One commit: begin, change, commit; and what to make of a connection that breaks in the last of them.

use rehearsal_core::{Actor, Timestamp};
use sqlx::{Row, raw_sql};

use super::patience::Patience;
use super::server::{Turn, in_time};
use super::{PostgresStore, TimeSource};
use crate::link::{Link, values};
use crate::tables::commit::Writing;
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
        let at = self.begin(&mut turn, at).await?;
        let mut writing = Writing::new(Link::postgres(&mut turn.connection), &self.flows, actor, at);
        let committed = match writing.apply_all(changes).await {
            Ok(committed) => committed,
            Err(error) => {
                if turn.run("ROLLBACK").await.is_ok() {
                    turn.keep();
                }
                return Err(error);
            }
        };
        let transaction = writing.into_transaction();
        if let Err(error) = turn.run("COMMIT").await {
            drop(turn);
            self.server.heed(&error);
            return match self.ending_of(transaction.as_deref()).await {
                Ending::Committed => Ok(committed),
                Ending::RolledBack => Err(error.into()),
                Ending::Unknown => Err(CommitError::OutcomeUnknown),
            };
        }
        // What was committed is committed, whether others hear of it or not.
        if transaction.is_none() || self.hints.tell(&mut turn).await.is_ok() {
            turn.keep();
        }
        Ok(committed)
    }

    /// Begins a transaction, and asks for the time on the same way.
    async fn begin(&self, turn: &mut Turn<'_>, given: Timestamp) -> Result<Timestamp, StoreError> {
        if self.time == TimeSource::Given {
            turn.run("BEGIN").await?;
            return Ok(given);
        }
        let sql = concat!("BEGIN; SELECT ", server_time!());
        let rows = in_time(async { Ok(raw_sql(sql).fetch_all(&mut turn.connection).await?) }).await?;
        let row = rows.first().ok_or_else(|| StoreError::Other(Box::new(sqlx::Error::RowNotFound)))?;
        Ok(Timestamp(row.try_get(0)?))
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

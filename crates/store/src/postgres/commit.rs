//! One commit: begin, change, commit; and what to make of a connection that breaks in the last of them.

use rehearsal_core::{Actor, Timestamp};

use super::{PostgresStore, TimeSource};
use crate::engine::Engine;
use crate::link::values;
use crate::patience::Patience;
use crate::tables::commit::Writing;
use crate::tables::log::{self, Trace};
use crate::{Change, CommitError, Committed, StoreError};

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
        let server_time = turn.begin().await?;
        let at = match self.time {
            TimeSource::Server => server_time,
            TimeSource::Given => at,
        };
        let mut writing = Writing::new(turn.link(), &self.flows, actor, at);
        let applied = writing.apply(changes).await;
        let last_event = writing.into_last_event();
        let committed = match applied {
            Ok(committed) => committed,
            Err(error) => {
                if turn.run("ROLLBACK").await.is_ok() {
                    turn.keep();
                }
                return Err(error);
            }
        };
        if let Err(error) = turn.run("COMMIT").await {
            drop(turn);
            self.server.heed(&error);
            return match self.ending_of(last_event.as_ref()).await {
                Ending::Committed => Ok(committed),
                Ending::RolledBack => Err(error.into()),
                Ending::Unknown => Err(CommitError::OutcomeUnknown),
            };
        }
        // The commit stands, whether or not others hear of it.
        if last_event.is_none() || self.hints.tell(&mut turn).await.is_ok() {
            turn.keep();
        }
        Ok(committed)
    }

    /// Asks the server how a transaction ended whose `COMMIT` was not answered.
    async fn ending_of(&self, last_event: Option<&Trace>) -> Ending {
        let Some(trace) = last_event else {
            return Ending::Committed;
        };
        let Some(transaction) = &trace.transaction else {
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
            if !self.tries_again(&mut patience, &trouble).await {
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

//! The engine in a file.

mod error;
mod migrate;
mod network;
mod open;

use std::path::Path;

use async_trait::async_trait;
use rehearsal_core::{Actor, Timestamp};
use sqlx::query;
use tokio::sync::watch;

use crate::engine::{Access, Engine, Turn};
use crate::link::Link;
use crate::tables::commit::Writing;
use crate::tables::flows::FlowCache;
use crate::{Change, CommitError, Committed, Durability, OpenError, StoreError};
use open::Database;

pub(crate) use error::meaning;

/// A store in one SQLite file, shared safely by the processes of one machine.
#[derive(Debug)]
pub struct SqliteStore {
    database: Database,
    flows: FlowCache,
    changes: watch::Sender<u64>,
}

impl SqliteStore {
    /// Whether there is one in a state directory.
    pub fn is_in(directory: &Path) -> bool {
        directory.join(open::FILE_NAME).exists()
    }

    /// Opens the store in a state directory; makes both if they are not there.
    pub async fn open(directory: &Path) -> Result<Self, OpenError> {
        Self::open_with(directory, Durability::Full).await
    }

    /// The same for one that nobody needs after the machine has failed, such as a rehearsal's: it never waits for the disk.
    pub async fn open_scratch(directory: &Path) -> Result<Self, OpenError> {
        Self::open_with(directory, Durability::UntilPowerFails).await
    }

    async fn open_with(directory: &Path, durability: Durability) -> Result<Self, OpenError> {
        Ok(Self {
            database: open::open(directory, durability).await?,
            flows: FlowCache::default(),
            changes: watch::Sender::new(0),
        })
    }
}

#[async_trait]
impl Engine for SqliteStore {
    const VERSION: &'static str = migrate::VERSION;

    fn flows(&self) -> &FlowCache {
        &self.flows
    }

    async fn turn(&self, access: Access) -> Result<Box<dyn Turn + '_>, StoreError> {
        Ok(match access {
            Access::Read => Box::new(self.database.reader().await?),
            Access::Write => Box::new(self.database.writer().await?),
        })
    }

    async fn transact(
        &self,
        actor: &Actor,
        at: Timestamp,
        changes: Vec<Change>,
    ) -> Result<Vec<Committed>, CommitError> {
        let mut turn = self.database.writer().await?;
        query("BEGIN IMMEDIATE").execute(&mut turn.connection).await.map_err(StoreError::from)?;
        let mut writing = Writing::new(Link::Sqlite(&mut turn.connection), &self.flows, actor, at);
        let applied = writing.apply(changes).await;
        let has_written = writing.into_last_event().is_some();
        let ended = match applied {
            Ok(committed) => match query("COMMIT").execute(&mut turn.connection).await {
                Ok(_) => Ok(committed),
                Err(error) => Err(StoreError::from(error).into()),
            },
            Err(error) => Err(error),
        };
        if ended.is_ok() {
            turn.keep();
            if has_written {
                self.changes.send_modify(|count| *count += 1);
            }
        } else if query("ROLLBACK").execute(&mut turn.connection).await.is_ok() {
            // Some errors (a full disk) have rolled back already. The connection is only kept if it is clean.
            turn.keep();
        }
        ended
    }

    fn watch(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}

#[cfg(test)]
mod tests;

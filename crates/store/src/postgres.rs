//! The engine on a server, for many machines.

mod commit;
mod error;
mod hints;
mod migrate;
mod server;

use std::sync::Arc;

use async_trait::async_trait;
use rehearsal_core::{Actor, Timestamp};
use tokio::sync::watch;

use crate::engine::{Access, Engine, Turn};
use crate::link::Link;
use crate::patience::Patience;
use crate::tables::flows::FlowCache;
use crate::{Change, CommitError, Committed, OpenError, StoreError};
use hints::Hints;
use server::{Server, server_time};

pub(crate) use error::meaning;
pub(crate) use server::in_time;

/// Whose time counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeSource {
    /// The server's, whatever time is given: machines have many clocks, and a lease must have one.
    Server,
    /// The one that is given, for tests and rehearsals with a virtual clock.
    Given,
}

/// A store on a PostgreSQL server, shared by the processes of many machines.
///
/// A server that is away for a moment is waited for, and what can be done again safely is done again: reading, prolonging
/// a lease, and a commit that is known not to have happened.
#[derive(Debug)]
pub struct PostgresStore {
    server: Arc<Server>,
    flows: FlowCache,
    time: TimeSource,
    hints: Hints,
}

impl PostgresStore {
    /// Opens the store in a database, by its URL; makes the tables if they are not there.
    pub async fn open(url: &str, time: TimeSource) -> Result<Self, OpenError> {
        let server = Arc::new(Server::new(url)?);
        migrate::migrate(&server).await?;
        let hints = Hints::new(Arc::clone(&server));
        Ok(Self { server, flows: FlowCache::default(), time, hints })
    }
}

#[async_trait]
impl Engine for PostgresStore {
    const VERSION: &'static str = migrate::VERSION;

    fn flows(&self) -> &FlowCache {
        &self.flows
    }

    async fn turn(&self, _: Access) -> Result<Box<dyn Turn + '_>, StoreError> {
        Ok(Box::new(self.server.turn().await?))
    }

    async fn tries_again(&self, patience: &mut Patience, error: &StoreError) -> bool {
        self.server.heed(error);
        patience.lasts(error).await
    }

    async fn time(&self, link: &mut Link<'_>, given: Timestamp) -> Result<Timestamp, StoreError> {
        match self.time {
            TimeSource::Given => Ok(given),
            TimeSource::Server => {
                let (now,) = link.one(server_time!(), &[]).await?;
                Ok(Timestamp(now))
            }
        }
    }

    async fn transact(
        &self,
        actor: &Actor,
        at: Timestamp,
        changes: Vec<Change>,
    ) -> Result<Vec<Committed>, CommitError> {
        self.commit_once(actor, at, changes).await
    }

    fn watch(&self) -> watch::Receiver<u64> {
        self.hints.changes()
    }
}

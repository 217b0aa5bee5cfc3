//! The engine in a file.

mod error;
mod migrate;
mod network;
mod open;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rehearsal_core::flow::Flow;
use rehearsal_core::guard::{Hindrance, Limits, Situation};
use rehearsal_core::{
    Actor, Event, Fence, ProgressEntry, Run, Session, SessionName, Task, TaskId, Timestamp,
};
use sqlx::{Connection, query};
use tokio::sync::watch;

use crate::link::Link;
use crate::tables::commit::Writing;
use crate::tables::flows::FlowCache;
use crate::tables::{find, log, runs, sessions, situation, tasks, tested, verify};
use crate::{
    Change, CommitError, Committed, Cost, Counts, Durability, EventQuery, FindError, OpenError, RunQuery,
    Scope, SessionSummary, Store, StoreError, TaskQuery, TestQuery, Tested,
};
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
impl Store for SqliteStore {
    async fn commit(
        &self,
        actor: Actor,
        at: Timestamp,
        changes: Vec<Change>,
    ) -> Result<Vec<Committed>, CommitError> {
        let mut turn = self.database.writer().await?;
        query("BEGIN IMMEDIATE").execute(&mut turn.connection).await.map_err(StoreError::from)?;
        let mut writing = Writing::new(Link::Sqlite(&mut turn.connection), &self.flows, &actor, at);
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

    async fn renew(
        &self,
        claims: &[(TaskId, Fence)],
        lease: Duration,
        now: Timestamp,
    ) -> Result<Vec<TaskId>, StoreError> {
        let mut turn = self.database.writer().await?;
        let held = situation::renew(&mut Link::Sqlite(&mut turn.connection), claims, lease, now).await?;
        turn.keep();
        Ok(held)
    }

    async fn still_held(&self, claims: &[(TaskId, Fence)]) -> Result<Vec<TaskId>, StoreError> {
        situation::still_held(&mut self.database.reader().await?.link(), claims).await
    }

    async fn situation(&self, limits: &Limits, now: Timestamp) -> Result<Situation, StoreError> {
        situation::situation(&mut self.database.reader().await?.link(), limits, now).await
    }

    async fn hindrance(
        &self,
        task: &Task,
        limits: &Limits,
        now: Timestamp,
    ) -> Result<Option<Hindrance>, StoreError> {
        situation::hindrance(&mut self.database.reader().await?.link(), &self.flows, task, limits, now).await
    }

    async fn next_wake(&self, now: Timestamp) -> Result<Option<Timestamp>, StoreError> {
        situation::next_wake(&mut self.database.reader().await?.link(), now).await
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    async fn leases(&self) -> Result<Vec<(Task, Timestamp)>, StoreError> {
        situation::leases(&mut self.database.reader().await?.link()).await
    }

    async fn flow(&self, version: &str) -> Result<Arc<Flow>, StoreError> {
        self.flows.get(&mut self.database.reader().await?.link(), version).await
    }

    async fn session(&self, name: &SessionName) -> Result<Session, FindError> {
        sessions::session(&mut self.database.reader().await?.link(), name).await
    }

    async fn sessions(&self) -> Result<Vec<SessionSummary>, StoreError> {
        sessions::sessions(&mut self.database.reader().await?.link()).await
    }

    async fn progress(&self, session: &SessionName, last: u32) -> Result<Vec<ProgressEntry>, StoreError> {
        sessions::progress(&mut self.database.reader().await?.link(), session, last).await
    }

    async fn task(&self, id: &TaskId) -> Result<Option<Task>, StoreError> {
        tasks::task(&mut self.database.reader().await?.link(), id).await
    }

    async fn find_task(&self, prefix: &str) -> Result<Task, FindError> {
        find::task(&mut self.database.reader().await?.link(), prefix).await
    }

    async fn tasks(&self, query: &TaskQuery) -> Result<Vec<Task>, StoreError> {
        tasks::tasks(&mut self.database.reader().await?.link(), query).await
    }

    async fn count_tasks(&self, session: Option<&SessionName>) -> Result<Counts, StoreError> {
        tasks::count(&mut self.database.reader().await?.link(), session).await
    }

    async fn next_task(
        &self,
        session: Option<&SessionName>,
        now: Timestamp,
    ) -> Result<Option<Task>, StoreError> {
        tasks::next(&mut self.database.reader().await?.link(), session, now).await
    }

    async fn find_run(&self, prefix: &str) -> Result<Run, FindError> {
        find::run(&mut self.database.reader().await?.link(), prefix).await
    }

    async fn runs(&self, query: &RunQuery) -> Result<Vec<Run>, StoreError> {
        runs::runs(&mut self.database.reader().await?.link(), query).await
    }

    async fn unfinished_runs(&self) -> Result<Vec<Run>, StoreError> {
        runs::unfinished(&mut self.database.reader().await?.link()).await
    }

    async fn cost_of(&self, scope: &Scope) -> Result<Cost, StoreError> {
        runs::cost(&mut self.database.reader().await?.link(), scope).await
    }

    async fn events(&self, query: &EventQuery) -> Result<Vec<Event>, StoreError> {
        log::events(&mut self.database.reader().await?.link(), query).await
    }

    async fn test_runs(&self, query: &TestQuery) -> Result<Vec<Tested>, StoreError> {
        tested::test_runs(&mut self.database.reader().await?.link(), query).await
    }

    async fn last_event(&self) -> Result<i64, StoreError> {
        log::last(&mut self.database.reader().await?.link()).await
    }

    async fn schema_version(&self) -> Result<i64, StoreError> {
        migrate::version(self.database.reader().await?.connection()).await
    }

    async fn verify(&self) -> Result<Vec<String>, StoreError> {
        let mut reader = self.database.reader().await?;
        let mut moment = reader.connection().begin().await?;
        verify::verify(&mut Link::Sqlite(&mut moment), &self.flows).await
    }
}

#[cfg(test)]
mod tests;

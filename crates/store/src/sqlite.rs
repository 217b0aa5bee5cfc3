//! The engine in a file.

mod commit;
mod error;
mod find;
mod flows;
mod log;
mod migrate;
mod network;
mod open;
mod runs;
mod sessions;
mod situation;
mod tasks;
mod tested;
mod verify;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rehearsal_core::flow::Flow;
use rehearsal_core::guard::{Hindrance, Limits, Situation};
use rehearsal_core::{
    Actor, Event, Fence, ProgressEntry, Run, Session, SessionName, Task, TaskId, Timestamp,
};
use tokio::sync::watch;

use crate::{
    Change, CommitError, Committed, Cost, Counts, EventQuery, FindError, OpenError, RunQuery, Scope,
    SessionSummary, Store, StoreError, TaskQuery, TestQuery, Tested,
};
use flows::FlowCache;
use open::Database;

/// A store in one SQLite file, shared safely by the processes of one machine.
#[derive(Debug)]
pub struct SqliteStore {
    database: Database,
    flows: FlowCache,
    changes: watch::Sender<u64>,
}

impl SqliteStore {
    /// Opens the store in a state directory; makes both if they are not there.
    pub async fn open(directory: &Path) -> Result<Self, OpenError> {
        Ok(Self {
            database: open::open(directory).await?,
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
        let committed = commit::commit(&self.database, &self.flows, &actor, at, changes).await?;
        // Whoever waits for a change would wake itself by looking for something to claim.
        if committed.iter().any(|committed| !matches!(committed, Committed::Claimed(None))) {
            self.changes.send_modify(|count| *count += 1);
        }
        Ok(committed)
    }

    async fn renew(
        &self,
        claims: &[(TaskId, Fence)],
        lease: Duration,
        now: Timestamp,
    ) -> Result<Vec<TaskId>, StoreError> {
        let mut turn = self.database.writer().await?;
        let held = situation::renew(&mut turn.connection, claims, lease, now).await?;
        turn.keep();
        Ok(held)
    }

    async fn situation(&self, limits: &Limits, now: Timestamp) -> Result<Situation, StoreError> {
        situation::situation(&mut *self.database.reader().await?, limits, now).await
    }

    async fn hindrance(
        &self,
        task: &Task,
        limits: &Limits,
        now: Timestamp,
    ) -> Result<Option<Hindrance>, StoreError> {
        situation::hindrance(&mut *self.database.reader().await?, &self.flows, task, limits, now).await
    }

    async fn next_wake(&self, now: Timestamp) -> Result<Option<Timestamp>, StoreError> {
        situation::next_wake(&mut *self.database.reader().await?, now).await
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    async fn leases(&self) -> Result<Vec<(Task, Timestamp)>, StoreError> {
        situation::leases(&mut *self.database.reader().await?).await
    }

    async fn flow(&self, version: &str) -> Result<Arc<Flow>, StoreError> {
        self.flows.get(&mut *self.database.reader().await?, version).await
    }

    async fn session(&self, name: &SessionName) -> Result<Session, FindError> {
        sessions::session(&mut *self.database.reader().await?, name).await
    }

    async fn sessions(&self) -> Result<Vec<SessionSummary>, StoreError> {
        sessions::sessions(&mut *self.database.reader().await?).await
    }

    async fn progress(&self, session: &SessionName, last: u32) -> Result<Vec<ProgressEntry>, StoreError> {
        sessions::progress(&mut *self.database.reader().await?, session, last).await
    }

    async fn task(&self, id: &TaskId) -> Result<Option<Task>, StoreError> {
        tasks::task(&mut *self.database.reader().await?, id).await
    }

    async fn find_task(&self, prefix: &str) -> Result<Task, FindError> {
        find::task(&mut *self.database.reader().await?, prefix).await
    }

    async fn tasks(&self, query: &TaskQuery) -> Result<Vec<Task>, StoreError> {
        tasks::tasks(&mut *self.database.reader().await?, query).await
    }

    async fn count_tasks(&self, session: Option<&SessionName>) -> Result<Counts, StoreError> {
        tasks::count(&mut *self.database.reader().await?, session).await
    }

    async fn next_task(
        &self,
        session: Option<&SessionName>,
        now: Timestamp,
    ) -> Result<Option<Task>, StoreError> {
        tasks::next(&mut *self.database.reader().await?, session, now).await
    }

    async fn find_run(&self, prefix: &str) -> Result<Run, FindError> {
        find::run(&mut *self.database.reader().await?, prefix).await
    }

    async fn runs(&self, query: &RunQuery) -> Result<Vec<Run>, StoreError> {
        runs::runs(&mut *self.database.reader().await?, query).await
    }

    async fn unfinished_runs(&self) -> Result<Vec<Run>, StoreError> {
        runs::unfinished(&mut *self.database.reader().await?).await
    }

    async fn cost_of(&self, scope: &Scope) -> Result<Cost, StoreError> {
        runs::cost(&mut *self.database.reader().await?, scope).await
    }

    async fn events(&self, query: &EventQuery) -> Result<Vec<Event>, StoreError> {
        log::events(&mut *self.database.reader().await?, query).await
    }

    async fn test_runs(&self, query: &TestQuery) -> Result<Vec<Tested>, StoreError> {
        tested::test_runs(&mut *self.database.reader().await?, query).await
    }

    async fn last_event(&self) -> Result<i64, StoreError> {
        log::last(&mut *self.database.reader().await?).await
    }

    async fn schema_version(&self) -> Result<i64, StoreError> {
        migrate::version(&mut *self.database.reader().await?).await
    }

    async fn verify(&self) -> Result<Vec<String>, StoreError> {
        verify::verify(&mut *self.database.reader().await?, &self.flows).await
    }
}

#[cfg(test)]
mod tests;

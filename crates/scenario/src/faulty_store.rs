//! A store that can become unreachable, restart and run out of disk space.
//!
//! Workers see its faults; people and the checks of the rehearsal do not.

use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use rehearsal_core::flow::Flow;
use rehearsal_core::guard::{Hindrance, Limits, Situation};
use rehearsal_core::{
    Actor, Event, Fence, ProgressEntry, Run, Session, SessionName, Task, TaskId, Timestamp,
};
use rehearsal_store::{
    Change, CommitError, Committed, Cost, Counts, EventQuery, FindError, OpenError, RunQuery, Scope,
    SessionSummary, Store, StoreError, TaskQuery, TestQuery, Tested,
};
use tokio::sync::watch;

use crate::clock::ScenarioClock;

/// Opens the store of a scenario any number of times: the same data over new connections.
#[async_trait]
pub(crate) trait OpensStore: Send + Sync {
    async fn open(&self) -> Result<Arc<dyn Store>, OpenError>;
}

pub(crate) struct FaultyStore {
    opener: Arc<dyn OpensStore>,
    store: Mutex<Arc<dyn Store>>,
    clock: ScenarioClock,
    /// How many more calls fail as unreachable.
    refuses: AtomicU32,
    /// The disk is full until then.
    full_until: AtomicI64,
    /// The last event that watchers were woken for.
    last_event: AtomicI64,
    changes: watch::Sender<u64>,
}

impl FaultyStore {
    pub(crate) async fn open(opener: Arc<dyn OpensStore>, clock: ScenarioClock) -> Result<Self, OpenError> {
        let store = Mutex::new(opener.open().await?);
        let (refuses, full_until, last_event) = (AtomicU32::new(0), AtomicI64::new(0), AtomicI64::new(0));
        Ok(Self { opener, store, clock, refuses, full_until, last_event, changes: watch::Sender::new(0) })
    }

    /// The store itself, without faults.
    pub(crate) fn inner(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Restarts it: the next `refuses` calls fail.
    pub(crate) async fn restart(&self, refuses: u32) -> Result<(), OpenError> {
        let new = self.opener.open().await?;
        *self.store.lock().unwrap_or_else(PoisonError::into_inner) = new;
        self.refuses.store(refuses, Ordering::SeqCst);
        Ok(())
    }

    /// Makes the disk full for a while.
    pub(crate) fn fill(&self, span: Duration) {
        self.full_until.store(self.clock.now().plus(span).0, Ordering::SeqCst);
    }

    /// For how long the disk stays full.
    pub(crate) fn full_for(&self) -> Option<Duration> {
        let until = Timestamp(self.full_until.load(Ordering::SeqCst));
        (until > self.clock.now()).then(|| until.since(self.clock.now()))
    }

    /// Commits what a person does; no fault applies.
    pub(crate) async fn commit_by_hand(&self, change: Change) -> Result<(), CommitError> {
        let store = self.inner();
        store.commit(Actor::User, self.clock.now(), vec![change]).await?;
        self.wake_others(&*store).await;
        Ok(())
    }

    /// Wakes watchers if there is a new event. A claim that finds nothing writes none.
    async fn wake_others(&self, store: &dyn Store) {
        let Ok(last) = store.last_event().await else { return };
        if self.last_event.swap(last, Ordering::SeqCst) != last {
            self.changes.send_modify(|count| *count += 1);
        }
    }

    fn readable(&self) -> Result<Arc<dyn Store>, StoreError> {
        let away = |left: u32| left.checked_sub(1);
        match self.refuses.fetch_update(Ordering::SeqCst, Ordering::SeqCst, away) {
            Ok(_) => Err(StoreError::Unreachable { what: "it restarts".to_owned() }),
            Err(_) => Ok(self.inner()),
        }
    }

    fn writable(&self) -> Result<Arc<dyn Store>, StoreError> {
        let store = self.readable()?;
        if self.full_for().is_some() { Err(StoreError::DiskFull) } else { Ok(store) }
    }
}

#[async_trait]
impl Store for FaultyStore {
    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    async fn commit(
        &self,
        actor: Actor,
        at: Timestamp,
        changes: Vec<Change>,
    ) -> Result<Vec<Committed>, CommitError> {
        let store = self.writable()?;
        let committed = store.commit(actor, at, changes).await?;
        self.wake_others(&*store).await;
        Ok(committed)
    }

    async fn renew(
        &self,
        claims: &[(TaskId, Fence)],
        lease: Duration,
        now: Timestamp,
    ) -> Result<Vec<TaskId>, StoreError> {
        self.writable()?.renew(claims, lease, now).await
    }

    async fn still_held(&self, claims: &[(TaskId, Fence)]) -> Result<Vec<TaskId>, StoreError> {
        self.readable()?.still_held(claims).await
    }

    async fn situation(&self, limits: &Limits, now: Timestamp) -> Result<Situation, StoreError> {
        self.readable()?.situation(limits, now).await
    }

    async fn hindrance(
        &self,
        task: &Task,
        limits: &Limits,
        now: Timestamp,
    ) -> Result<Option<Hindrance>, StoreError> {
        self.readable()?.hindrance(task, limits, now).await
    }

    async fn next_wake(&self, now: Timestamp) -> Result<Option<Timestamp>, StoreError> {
        self.readable()?.next_wake(now).await
    }

    async fn leases(&self) -> Result<Vec<(Task, Timestamp)>, StoreError> {
        self.readable()?.leases().await
    }

    async fn flow(&self, version: &str) -> Result<Arc<Flow>, StoreError> {
        self.readable()?.flow(version).await
    }

    async fn session(&self, name: &SessionName) -> Result<Session, FindError> {
        self.readable()?.session(name).await
    }

    async fn sessions(&self) -> Result<Vec<SessionSummary>, StoreError> {
        self.readable()?.sessions().await
    }

    async fn progress(&self, session: &SessionName, last: u32) -> Result<Vec<ProgressEntry>, StoreError> {
        self.readable()?.progress(session, last).await
    }

    async fn task(&self, id: &TaskId) -> Result<Option<Task>, StoreError> {
        self.readable()?.task(id).await
    }

    async fn find_task(&self, prefix: &str) -> Result<Task, FindError> {
        self.readable()?.find_task(prefix).await
    }

    async fn tasks(&self, query: &TaskQuery) -> Result<Vec<Task>, StoreError> {
        self.readable()?.tasks(query).await
    }

    async fn count_tasks(&self, session: Option<&SessionName>) -> Result<Counts, StoreError> {
        self.readable()?.count_tasks(session).await
    }

    async fn next_task(
        &self,
        session: Option<&SessionName>,
        now: Timestamp,
    ) -> Result<Option<Task>, StoreError> {
        self.readable()?.next_task(session, now).await
    }

    async fn find_run(&self, prefix: &str) -> Result<Run, FindError> {
        self.readable()?.find_run(prefix).await
    }

    async fn runs(&self, query: &RunQuery) -> Result<Vec<Run>, StoreError> {
        self.readable()?.runs(query).await
    }

    async fn unfinished_runs(&self) -> Result<Vec<Run>, StoreError> {
        self.readable()?.unfinished_runs().await
    }

    async fn cost_of(&self, scope: &Scope) -> Result<Cost, StoreError> {
        self.readable()?.cost_of(scope).await
    }

    async fn events(&self, query: &EventQuery) -> Result<Vec<Event>, StoreError> {
        self.readable()?.events(query).await
    }

    async fn test_runs(&self, query: &TestQuery) -> Result<Vec<Tested>, StoreError> {
        self.readable()?.test_runs(query).await
    }

    async fn last_event(&self) -> Result<i64, StoreError> {
        self.readable()?.last_event().await
    }

    async fn schema_version(&self) -> Result<i64, StoreError> {
        self.readable()?.schema_version().await
    }

    async fn verify(&self) -> Result<Vec<String>, StoreError> {
        self.readable()?.verify().await
    }
}

//! The worker's store, which waits: a database that is away or busy is asked again until it answers, so that a worker
//! outlives its restart, however long that takes.
//!
//! So is one that is away when the worker begins.
//!
//! Only what is known not to have happened is asked for again. Of a commit whose answer was lost nothing is known: what
//! became of it is for `recover` to see, by what is there.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use rehearsal_core::flow::Flow;
use rehearsal_core::guard::{Hindrance, Limits, Situation};
use rehearsal_core::{
    Actor, BoxFuture, Event, Fence, Notice, ProgressEntry, Run, Session, SessionName, Task, TaskId, Timestamp,
};
use rehearsal_store::{
    Change, CommitError, Committed, Cost, Counts, EventQuery, FindError, OpenError, RunQuery, Scope,
    SessionSummary, Store, StoreError, StoreLocation, TaskQuery, TestQuery, Tested,
};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{WorkEvent, WorkReporter};
use crate::StopSwitch;

/// The first pause before another try, and the longest: a database that is back should not wait for its workers.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(2));

/// Opens a store for a worker. One that is away is waited for until it answers, or the worker is stopped.
pub fn open_patiently<'a>(
    location: &'a StoreLocation,
    stop: &'a StopSwitch,
    reporter: &'a WorkReporter,
) -> BoxFuture<'a, Result<Arc<dyn Store>, OpenError>> {
    Box::pin(async move {
        // Nothing is under way yet: whoever stops it gently does not want to wait either.
        let waiting = Waiting::new(stop.after_iteration.clone(), Arc::clone(reporter));
        let mut tries = 0;
        loop {
            match rehearsal_store::open(location).await {
                Err(error) if error.passes() => {
                    if !waiting.wait(&error, &mut tries).await {
                        return Err(error);
                    }
                }
                opened => {
                    waiting.answered();
                    return opened;
                }
            }
        }
    })
}

/// A store that is waited for until it answers, or the worker is stopped now.
pub(super) struct Patient {
    store: Arc<dyn Store>,
    waiting: Waiting,
}

impl Patient {
    pub(super) fn new(store: Arc<dyn Store>, stop: CancellationToken, reporter: WorkReporter) -> Self {
        Self { store, waiting: Waiting::new(stop, reporter) }
    }
}

/// How a worker waits for its store, and what it says about that.
struct Waiting {
    stop: CancellationToken,
    reporter: WorkReporter,
    /// Whether someone was told that the store does not answer.
    told: AtomicBool,
}

impl Waiting {
    fn new(stop: CancellationToken, reporter: WorkReporter) -> Self {
        Self { stop, reporter, told: AtomicBool::new(false) }
    }

    fn answered(&self) {
        if self.told.swap(false, Ordering::Relaxed) {
            self.warn(Notice::DatabaseBack);
        }
    }

    /// Waits longer each time. Whether to ask again then.
    async fn wait(&self, error: &(dyn std::error::Error + Send + Sync), tries: &mut u32) -> bool {
        if !self.told.swap(true, Ordering::Relaxed) {
            self.warn(Notice::DatabaseUnreachable { error: error.to_string() });
        }
        let (first, longest) = PAUSES;
        let pause = first.saturating_mul(1 << (*tries).min(10)).min(longest);
        *tries += 1;
        // In earnest, even in a rehearsal: whatever the database waits for does not know of another time.
        tokio::select! {
            biased;
            () = self.stop.cancelled() => false,
            () = tokio::time::sleep(pause) => true,
        }
    }

    fn warn(&self, notice: Notice) {
        (self.reporter)(WorkEvent::Warning { notice });
    }
}

/// Asks until there is an answer that another try would not change.
macro_rules! patiently {
    ($self:ident, $ask:expr) => {{
        let mut tries = 0;
        loop {
            let answer = $ask.await;
            match &answer {
                Err(error) if error.passes() && $self.waiting.wait(error, &mut tries).await => {}
                Err(error) if error.passes() => return answer,
                _ => {
                    $self.waiting.answered();
                    return answer;
                }
            }
        }
    }};
}

#[async_trait]
impl Store for Patient {
    fn changes(&self) -> watch::Receiver<u64> {
        self.store.changes()
    }

    async fn commit(
        &self,
        actor: Actor,
        at: Timestamp,
        changes: Vec<Change>,
    ) -> Result<Vec<Committed>, CommitError> {
        patiently!(self, self.store.commit(actor.clone(), at, changes.clone()))
    }

    async fn renew(
        &self,
        claims: &[(TaskId, Fence)],
        lease: Duration,
        now: Timestamp,
    ) -> Result<Vec<TaskId>, StoreError> {
        patiently!(self, self.store.renew(claims, lease, now))
    }

    async fn still_held(&self, claims: &[(TaskId, Fence)]) -> Result<Vec<TaskId>, StoreError> {
        patiently!(self, self.store.still_held(claims))
    }

    async fn situation(&self, limits: &Limits, now: Timestamp) -> Result<Situation, StoreError> {
        patiently!(self, self.store.situation(limits, now))
    }

    async fn hindrance(
        &self,
        task: &Task,
        limits: &Limits,
        now: Timestamp,
    ) -> Result<Option<Hindrance>, StoreError> {
        patiently!(self, self.store.hindrance(task, limits, now))
    }

    async fn next_wake(&self, now: Timestamp) -> Result<Option<Timestamp>, StoreError> {
        patiently!(self, self.store.next_wake(now))
    }

    async fn leases(&self) -> Result<Vec<(Task, Timestamp)>, StoreError> {
        patiently!(self, self.store.leases())
    }

    async fn flow(&self, version: &str) -> Result<Arc<Flow>, StoreError> {
        patiently!(self, self.store.flow(version))
    }

    async fn session(&self, name: &SessionName) -> Result<Session, FindError> {
        patiently!(self, self.store.session(name))
    }

    async fn sessions(&self) -> Result<Vec<SessionSummary>, StoreError> {
        patiently!(self, self.store.sessions())
    }

    async fn progress(&self, session: &SessionName, last: u32) -> Result<Vec<ProgressEntry>, StoreError> {
        patiently!(self, self.store.progress(session, last))
    }

    async fn task(&self, id: &TaskId) -> Result<Option<Task>, StoreError> {
        patiently!(self, self.store.task(id))
    }

    async fn find_task(&self, prefix: &str) -> Result<Task, FindError> {
        patiently!(self, self.store.find_task(prefix))
    }

    async fn tasks(&self, query: &TaskQuery) -> Result<Vec<Task>, StoreError> {
        patiently!(self, self.store.tasks(query))
    }

    async fn count_tasks(&self, session: Option<&SessionName>) -> Result<Counts, StoreError> {
        patiently!(self, self.store.count_tasks(session))
    }

    async fn next_task(
        &self,
        session: Option<&SessionName>,
        now: Timestamp,
    ) -> Result<Option<Task>, StoreError> {
        patiently!(self, self.store.next_task(session, now))
    }

    async fn find_run(&self, prefix: &str) -> Result<Run, FindError> {
        patiently!(self, self.store.find_run(prefix))
    }

    async fn runs(&self, query: &RunQuery) -> Result<Vec<Run>, StoreError> {
        patiently!(self, self.store.runs(query))
    }

    async fn unfinished_runs(&self) -> Result<Vec<Run>, StoreError> {
        patiently!(self, self.store.unfinished_runs())
    }

    async fn cost_of(&self, scope: &Scope) -> Result<Cost, StoreError> {
        patiently!(self, self.store.cost_of(scope))
    }

    async fn events(&self, query: &EventQuery) -> Result<Vec<Event>, StoreError> {
        patiently!(self, self.store.events(query))
    }

    async fn test_runs(&self, query: &TestQuery) -> Result<Vec<Tested>, StoreError> {
        patiently!(self, self.store.test_runs(query))
    }

    async fn last_event(&self) -> Result<i64, StoreError> {
        patiently!(self, self.store.last_event())
    }

    async fn schema_version(&self) -> Result<i64, StoreError> {
        patiently!(self, self.store.schema_version())
    }

    async fn verify(&self) -> Result<Vec<String>, StoreError> {
        patiently!(self, self.store.verify())
    }
}

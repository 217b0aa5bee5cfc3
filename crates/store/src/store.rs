//! The port: what every engine can do.

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
    Change, CommitError, Committed, Cost, Counts, EventQuery, FindError, RunQuery, Scope, SessionSummary,
    StoreError, TaskQuery, TestQuery, Tested,
};

/// What every engine can do. Everything is written by [`commit`](Store::commit); the rest only reads.
#[async_trait]
pub trait Store: Send + Sync {
    /// Makes all changes or none, in one transaction with their events. A later change sees the earlier ones.
    async fn commit(
        &self,
        actor: Actor,
        at: Timestamp,
        changes: Vec<Change>,
    ) -> Result<Vec<Committed>, CommitError>;

    /// Prolongs the leases of these claims to `now + lease`, and says which of them still hold. One that is missing in
    /// the answer is lost. Leaves no event: a lease is a promise about time, and no state.
    async fn renew(
        &self,
        claims: &[(TaskId, Fence)],
        lease: Duration,
        now: Timestamp,
    ) -> Result<Vec<TaskId>, StoreError>;

    /// Which of these claims still hold, without prolonging any.
    async fn still_held(&self, claims: &[(TaskId, Fence)]) -> Result<Vec<TaskId>, StoreError>;

    /// What goes on: what is in work, what is held, when agents with an interval last began.
    async fn situation(&self, limits: &Limits, now: Timestamp) -> Result<Situation, StoreError>;

    /// What keeps a task from being claimed now, by the same rules as a claim. For a task that waits for nothing else.
    async fn hindrance(
        &self,
        task: &Task,
        limits: &Limits,
        now: Timestamp,
    ) -> Result<Option<Hindrance>, StoreError>;

    /// The next moment at which something becomes claimable by itself: a wait, a hold or a lease is over then.
    async fn next_wake(&self, now: Timestamp) -> Result<Option<Timestamp>, StoreError>;

    /// Changes whenever something was committed: by this process, and as far as the engine can tell by others.
    fn changes(&self) -> watch::Receiver<u64>;

    /// The tasks that are in work under a lease: their claims, and until when they hold.
    async fn leases(&self) -> Result<Vec<(Task, Timestamp)>, StoreError>;

    /// A version of a flow that some task started with.
    async fn flow(&self, version: &str) -> Result<Arc<Flow>, StoreError>;

    /// A session by its whole name.
    async fn session(&self, name: &SessionName) -> Result<Session, FindError>;

    /// All sessions, oldest first, and how their tasks stand.
    async fn sessions(&self) -> Result<Vec<SessionSummary>, StoreError>;

    /// The last lines of a session's journal, oldest first.
    async fn progress(&self, session: &SessionName, last: u32) -> Result<Vec<ProgressEntry>, StoreError>;

    /// A task by its whole id.
    async fn task(&self, id: &TaskId) -> Result<Option<Task>, StoreError>;

    /// A task by the beginning of its id. A whole id wins over longer ones that begin with it.
    async fn find_task(&self, prefix: &str) -> Result<Task, FindError>;

    /// Tasks by priority, then age, then order of arrival.
    async fn tasks(&self, query: &TaskQuery) -> Result<Vec<Task>, StoreError>;

    /// How many tasks there are, in a session or in all.
    async fn count_tasks(&self, session: Option<&SessionName>) -> Result<Counts, StoreError>;

    /// The first task, in the order of [`tasks`](Store::tasks), that a worker may claim now: it is ready, or its
    /// wait is over, and all it depends on is done. None for the session means of all.
    async fn next_task(
        &self,
        session: Option<&SessionName>,
        now: Timestamp,
    ) -> Result<Option<Task>, StoreError>;

    /// A run by the beginning of its id. A whole id wins over longer ones that begin with it.
    async fn find_run(&self, prefix: &str) -> Result<Run, FindError>;

    /// Runs, newest first.
    async fn runs(&self, query: &RunQuery) -> Result<Vec<Run>, StoreError>;

    /// Runs without an end, oldest first: they run now, or their worker died.
    async fn unfinished_runs(&self) -> Result<Vec<Run>, StoreError>;

    /// What runs cost.
    async fn cost_of(&self, scope: &Scope) -> Result<Cost, StoreError>;

    /// The log.
    async fn events(&self, query: &EventQuery) -> Result<Vec<Event>, StoreError>;

    /// Runs of the repository's tests, newest first.
    async fn test_runs(&self, query: &TestQuery) -> Result<Vec<Tested>, StoreError>;

    /// The place of the last event in the log; 0 when there is none. Whoever waits for a change looks here.
    async fn last_event(&self) -> Result<i64, StoreError>;

    /// The version of the database's layout.
    async fn schema_version(&self) -> Result<i64, StoreError>;

    /// Checks everything against everything: the file, each row against its events, each column against its
    /// document. What is wrong comes back in words; nothing is wrong if nothing comes back.
    async fn verify(&self) -> Result<Vec<String>, StoreError>;
}

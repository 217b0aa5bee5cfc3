//! A store that is away for a moment, or whose answer is lost: the worker waits, looks at what is there, and comes to the
//! same end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use rehearsal_core::flow::Flow;
use rehearsal_core::guard::{Hindrance, Limits, Situation};
use rehearsal_core::{
    Actor, Event, Fence, NewTask, ProgressEntry, Run, Session, SessionName, Task, TaskId, Timestamp,
};
use rehearsal_engine::WorkError;
use rehearsal_store::{
    Change, CommitError, Committed, Cost, Counts, EventQuery, FindError, RunQuery, Scope, SessionSummary,
    Store, StoreError, TaskQuery, TestQuery, Tested,
};
use tokio::sync::watch;

use crate::crashes::cast;
use crate::studio::{Studio, git, play};

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trouble {
    /// Every other call meets nobody.
    AwayEveryOtherTime,
    /// The answer to one commit is lost, which was made.
    LostAfter(usize),
    /// The answer to one commit is lost, which was not made.
    LostBefore(usize),
    /// The disk is full from one commit on.
    FullFrom(usize),
    /// It never answers.
    Away,
}

/// The store of a studio, with trouble.
struct Moody {
    store: Arc<dyn Store>,
    trouble: Trouble,
    commits: AtomicUsize,
    was_away: AtomicBool,
}

impl Moody {
    /// Between the studio and its store, from now on.
    fn enters(studio: &mut Studio, trouble: Trouble) -> Arc<Self> {
        let store = Arc::clone(&studio.store);
        let moody =
            Arc::new(Self { store, trouble, commits: AtomicUsize::new(0), was_away: AtomicBool::new(false) });
        studio.store = Arc::clone(&moody) as _;
        moody
    }

    fn leaves(&self, studio: &mut Studio) {
        studio.store = Arc::clone(&self.store);
    }

    fn stumble(&self) -> Result<(), StoreError> {
        let away = match self.trouble {
            Trouble::AwayEveryOtherTime => !self.was_away.fetch_xor(true, Ordering::SeqCst),
            Trouble::Away => true,
            _ => false,
        };
        if away { Err(StoreError::Unreachable { what: "nobody is there".to_owned() }) } else { Ok(()) }
    }
}

#[async_trait]
impl Store for Moody {
    async fn commit(
        &self,
        actor: Actor,
        at: Timestamp,
        changes: Vec<Change>,
    ) -> Result<Vec<Committed>, CommitError> {
        self.stumble()?;
        let number = self.commits.fetch_add(1, Ordering::SeqCst);
        match self.trouble {
            Trouble::LostBefore(lost) if number == lost => Err(CommitError::OutcomeUnknown),
            Trouble::LostAfter(lost) if number == lost => {
                self.store.commit(actor, at, changes).await?;
                Err(CommitError::OutcomeUnknown)
            }
            Trouble::FullFrom(full) if number >= full => Err(StoreError::DiskFull.into()),
            _ => self.store.commit(actor, at, changes).await,
        }
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.store.changes()
    }

    async fn renew(
        &self,
        claims: &[(TaskId, Fence)],
        lease: Duration,
        now: Timestamp,
    ) -> Result<Vec<TaskId>, StoreError> {
        self.stumble()?;
        self.store.renew(claims, lease, now).await
    }

    async fn still_held(&self, claims: &[(TaskId, Fence)]) -> Result<Vec<TaskId>, StoreError> {
        self.stumble()?;
        self.store.still_held(claims).await
    }

    async fn situation(&self, limits: &Limits, now: Timestamp) -> Result<Situation, StoreError> {
        self.stumble()?;
        self.store.situation(limits, now).await
    }

    async fn hindrance(
        &self,
        task: &Task,
        limits: &Limits,
        now: Timestamp,
    ) -> Result<Option<Hindrance>, StoreError> {
        self.stumble()?;
        self.store.hindrance(task, limits, now).await
    }

    async fn next_wake(&self, now: Timestamp) -> Result<Option<Timestamp>, StoreError> {
        self.stumble()?;
        self.store.next_wake(now).await
    }

    async fn leases(&self) -> Result<Vec<(Task, Timestamp)>, StoreError> {
        self.stumble()?;
        self.store.leases().await
    }

    async fn flow(&self, version: &str) -> Result<Arc<Flow>, StoreError> {
        self.stumble()?;
        self.store.flow(version).await
    }

    async fn session(&self, name: &SessionName) -> Result<Session, FindError> {
        self.stumble()?;
        self.store.session(name).await
    }

    async fn sessions(&self) -> Result<Vec<SessionSummary>, StoreError> {
        self.stumble()?;
        self.store.sessions().await
    }

    async fn progress(&self, session: &SessionName, last: u32) -> Result<Vec<ProgressEntry>, StoreError> {
        self.stumble()?;
        self.store.progress(session, last).await
    }

    async fn task(&self, id: &TaskId) -> Result<Option<Task>, StoreError> {
        self.stumble()?;
        self.store.task(id).await
    }

    async fn find_task(&self, prefix: &str) -> Result<Task, FindError> {
        self.stumble()?;
        self.store.find_task(prefix).await
    }

    async fn tasks(&self, query: &TaskQuery) -> Result<Vec<Task>, StoreError> {
        self.stumble()?;
        self.store.tasks(query).await
    }

    async fn count_tasks(&self, session: Option<&SessionName>) -> Result<Counts, StoreError> {
        self.stumble()?;
        self.store.count_tasks(session).await
    }

    async fn next_task(
        &self,
        session: Option<&SessionName>,
        now: Timestamp,
    ) -> Result<Option<Task>, StoreError> {
        self.stumble()?;
        self.store.next_task(session, now).await
    }

    async fn find_run(&self, prefix: &str) -> Result<Run, FindError> {
        self.stumble()?;
        self.store.find_run(prefix).await
    }

    async fn runs(&self, query: &RunQuery) -> Result<Vec<Run>, StoreError> {
        self.stumble()?;
        self.store.runs(query).await
    }

    async fn unfinished_runs(&self) -> Result<Vec<Run>, StoreError> {
        self.stumble()?;
        self.store.unfinished_runs().await
    }

    async fn cost_of(&self, scope: &Scope) -> Result<Cost, StoreError> {
        self.stumble()?;
        self.store.cost_of(scope).await
    }

    async fn events(&self, query: &EventQuery) -> Result<Vec<Event>, StoreError> {
        self.stumble()?;
        self.store.events(query).await
    }

    async fn test_runs(&self, query: &TestQuery) -> Result<Vec<Tested>, StoreError> {
        self.stumble()?;
        self.store.test_runs(query).await
    }

    async fn last_event(&self) -> Result<i64, StoreError> {
        self.stumble()?;
        self.store.last_event().await
    }

    async fn schema_version(&self) -> Result<i64, StoreError> {
        self.stumble()?;
        self.store.schema_version().await
    }

    async fn verify(&self) -> Result<Vec<String>, StoreError> {
        self.stumble()?;
        self.store.verify().await
    }
}

/// One pull request, from its beginning to its merge; how many commits to the store that took.
async fn live_through(studio: &mut Studio, trouble: Trouble) -> usize {
    cast(studio);
    studio.add("t1", "pull-request", NewTask::default()).await;
    let moody = Moody::enters(studio, trouble);
    studio.work().await;
    moody.leaves(studio);
    let task = studio.task("t1").await;
    assert_eq!((task.status(), task.rejections, task.losses), ("done", 0, 0), "{trouble:?}");
    assert_eq!(studio.landed(), ["write b.txt", "begin"], "{trouble:?}");
    let pull_requests = git(&studio.remote(), &["for-each-ref", "--format=%(refname)", "refs/rehearsal/pr"]);
    assert_eq!(pull_requests.trim(), "refs/rehearsal/pr/1", "{trouble:?}");
    moody.commits.load(Ordering::SeqCst)
}

#[test]
fn a_store_that_is_away_every_other_time_changes_nothing() {
    play(async |studio| {
        live_through(studio, Trouble::AwayEveryOtherTime).await;
        let warnings = studio.warnings();
        assert_eq!(
            warnings[..2],
            ["database_unreachable error=the database cannot be reached: nobody is there", "database_back"]
        );
    });
}

#[test]
fn whatever_answer_is_lost_the_task_comes_to_the_same_end() {
    let mut commits = 0;
    play(async |studio| commits = live_through(studio, Trouble::LostBefore(usize::MAX)).await);
    assert!(
        commits >= 2 * 3 + 7,
        "a claim, a run's start and its end for each agent, and 7 steps: {commits}"
    );
    for lost in 0..commits {
        for trouble in [Trouble::LostBefore(lost), Trouble::LostAfter(lost)] {
            play(async |studio| {
                live_through(studio, trouble).await;
            });
        }
    }
}

#[test]
fn a_worker_whose_store_has_no_room_ends_with_the_reason_and_the_next_one_goes_on() {
    play(async |studio| {
        cast(studio);
        studio.add("t1", "pull-request", NewTask::default()).await;
        let moody = Moody::enters(studio, Trouble::FullFrom(4));
        let ended = studio.try_work().await;
        assert!(
            matches!(ended, Err(WorkError::Commit(CommitError::Store(StoreError::DiskFull)))),
            "{ended:?}"
        );
        moody.leaves(studio);
        studio.leave_traces_of_death();
        studio.work().await;
        assert_eq!(studio.status("t1").await, "done");
        assert_eq!(studio.landed(), ["write b.txt", "begin"]);
    });
}

#[test]
fn a_worker_that_waits_for_its_store_can_be_stopped() {
    play(async |studio| {
        let moody = Moody::enters(studio, Trouble::Away);
        let stop = studio.stop.now.clone();
        let told = Arc::clone(&studio.events);
        let stopping = async {
            while !told
                .lock()
                .unwrap()
                .iter()
                .any(|event| matches!(event, rehearsal_engine::WorkEvent::Warning { .. }))
            {
                tokio::task::yield_now().await;
            }
            stop.cancel();
        };
        let (ended, ()) = tokio::join!(studio.try_work(), stopping);
        assert!(matches!(ended, Err(WorkError::Read(StoreError::Unreachable { .. }))), "{ended:?}");
        moody.leaves(studio);
    });
}

//! Two processes on one PostgreSQL: what one of them does counts for the next commit of the other.

use std::time::Duration;

use rehearsal_core::guard::Limits;
use rehearsal_core::transition::TaskInput;
use rehearsal_core::{
    Actor, Hold, HoldCause, Lane, NewTask, Outcome, Priority, Task, TaskEdit, TaskId, Timestamp, WorkerId,
};
use rehearsal_store::{Change, ClaimRequest, CommitError, EventQuery, PostgresStore, Store, TimeSource};

use crate::bench::{block_on, id, loop_flow, new_session, run_id, titled};
use crate::server;

const TASKS: usize = 300;

/// A store with many tasks of which some are claimed, and what is in the store of another process.
struct Busy {
    ours: PostgresStore,
    theirs: PostgresStore,
    claims: usize,
}

async fn open(url: &str) -> PostgresStore {
    PostgresStore::open(url, TimeSource::Server).await.unwrap()
}

async fn add(store: &PostgresStore, tasks: Vec<(TaskId, NewTask)>) {
    let flow = loop_flow();
    store.commit(Actor::User, Timestamp(0), vec![Change::AddTasks { tasks, flow }]).await.unwrap();
}

fn many() -> Vec<(TaskId, NewTask)> {
    (0..TASKS).map(|number| (id(&format!("t{number}")), titled("work"))).collect()
}

async fn claim(store: &PostgresStore, run: &str, lease: Duration) -> Option<Task> {
    let worker = WorkerId::new("w").unwrap();
    let request = ClaimRequest {
        worker: worker.clone(),
        run: run_id(run),
        lease,
        agents: None,
        stand_in: None,
        session: None,
        limits: Limits::default(),
        may_take_over: true,
    };
    let changes = vec![Change::ClaimNext(Box::new(request))];
    let committed = store.commit(Actor::Worker(worker), Timestamp(0), changes).await.unwrap();
    committed.into_iter().next().unwrap().task()
}

impl Busy {
    /// Some claims, in the order of the tasks.
    async fn begin() -> Option<Self> {
        let url = server::server()?.database().await.unwrap();
        let (ours, theirs) = (open(&url).await, open(&url).await);
        add(&ours, many()).await;
        let mut busy = Self { ours, theirs, claims: 0 };
        for number in 0..5 {
            assert_eq!(busy.claim().await.unwrap().id, id(&format!("t{number}")));
        }
        Some(busy)
    }

    async fn claim(&mut self) -> Option<Task> {
        self.claims += 1;
        claim(&self.ours, &format!("r{}", self.claims), Duration::from_secs(90)).await
    }

    async fn they_do(&self, change: Change) {
        self.theirs.commit(Actor::User, Timestamp(0), vec![change]).await.unwrap();
    }
}

/// Something happens in another process; then a task is claimed, or none.
fn after(happens: impl AsyncFnOnce(&Busy), check: impl FnOnce(Option<Task>)) {
    block_on(async {
        let Some(mut busy) = Busy::begin().await else { return };
        happens(&busy).await;
        check(busy.claim().await);
        assert_eq!(busy.ours.verify().await.unwrap(), Vec::<String>::new());
    });
}

fn is(task: &'static str) -> impl FnOnce(Option<Task>) {
    move |claimed| assert_eq!(claimed.map(|claimed| claimed.id), Some(id(task)))
}

fn change(task: &str, input: TaskInput) -> Change {
    Change::ChangeTask { id: id(task), input }
}

#[test]
fn a_pause_holds_for_the_very_next_claim() {
    let hold = Hold { cause: HoldCause::Person, reason: "lunch".into(), until: None };
    let pause = Change::HoldLane { lane: Lane::All, hold };
    after(async |busy| busy.they_do(pause).await, |claimed| assert_eq!(claimed, None));
}

#[test]
fn what_is_more_urgent_comes_first_also_if_it_comes_late() {
    let urgent = NewTask { priority: Priority::High, ..titled("urgent") };
    after(async |busy| add(&busy.theirs, vec![(id("urgent"), urgent)]).await, is("urgent"));
}

#[test]
fn a_task_that_was_cancelled_or_claimed_elsewhere_is_passed_over() {
    let happens = async |busy: &Busy| {
        busy.they_do(change("t5", TaskInput::Cancel)).await;
        let theirs = claim(&busy.theirs, "theirs", Duration::from_secs(90)).await.unwrap();
        assert_eq!(theirs.id, id("t6"));
    };
    after(happens, is("t7"));
}

#[test]
fn a_task_that_now_waits_for_another_one_is_passed_over() {
    let edit = TaskEdit { depends_on: Some(vec![id("t200")]), ..TaskEdit::default() };
    after(async |busy| busy.they_do(change("t5", TaskInput::Edit { edit })).await, is("t6"));
}

#[test]
fn a_task_is_claimed_as_it_is_now() {
    let edit = TaskEdit { title: Some("renamed".into()), ..TaskEdit::default() };
    let renaming = change("t5", TaskInput::Edit { edit });
    let is_renamed = |claimed: Option<Task>| assert_eq!(claimed.unwrap().title, "renamed");
    after(async |busy| busy.they_do(renaming).await, is_renamed);
}

#[test]
fn a_session_that_has_nothing_in_work_goes_before_one_that_has() {
    let happens = async |busy: &Busy| {
        busy.they_do(new_session("new")).await;
        let task = NewTask { session: Some("new".parse().unwrap()), ..titled("first of its session") };
        add(&busy.theirs, vec![(id("other"), task)]).await;
    };
    after(happens, is("other"));
}

#[test]
fn what_ran_out_elsewhere_is_taken_over() {
    let urgent = NewTask { priority: Priority::High, ..titled("urgent") };
    let happens = async |busy: &Busy| {
        add(&busy.theirs, vec![(id("urgent"), urgent)]).await;
        claim(&busy.theirs, "theirs", Duration::ZERO).await.unwrap();
    };
    after(happens, is("urgent"));
}

/// What became of our run of `t4` after something happened to its task in the other process; how often it ended.
async fn ended_after(busy: &Busy, happens: TaskInput) -> (Result<Task, CommitError>, usize) {
    let fence = busy.ours.task(&id("t4")).await.unwrap().unwrap().fence;
    busy.they_do(change("t4", happens)).await;
    let end = change("t4", TaskInput::EndRun { fence, outcome: Outcome::Done });
    let ended = busy.ours.commit(Actor::User, Timestamp(0), vec![end]).await;
    assert_eq!(busy.ours.verify().await.unwrap(), Vec::<String>::new());
    let events = busy.ours.events(&EventQuery::default()).await.unwrap();
    let ends = events.iter().filter(|event| format!("{:?}", event.kind).contains("EndRun")).count();
    (ended.map(|mut committed| committed.swap_remove(0).task().unwrap()), ends)
}

#[test]
fn what_somebody_else_has_changed_meanwhile_is_not_undone() {
    block_on(async {
        let Some(busy) = Busy::begin().await else { return };
        let edit = TaskEdit { title: Some("renamed".into()), ..TaskEdit::default() };
        let (ended, ends) = ended_after(&busy, TaskInput::Edit { edit }).await;
        assert_eq!((ended.unwrap().title.as_str(), ends), ("renamed", 1));
    });
}

#[test]
fn who_believes_to_hold_what_was_taken_from_it_is_refused() {
    block_on(async {
        let Some(busy) = Busy::begin().await else { return };
        let stale = busy.ours.task(&id("t4")).await.unwrap().unwrap().fence;
        let lose = TaskInput::Lose { stale, of: WorkerId::new("w").unwrap() };
        let (ended, ends) = ended_after(&busy, lose).await;
        assert!(matches!(ended, Err(CommitError::Refused { .. })), "{ended:?}");
        assert_eq!(ends, 0);
    });
}

#[test]
fn time_does_not_go_back_between_two_changes() {
    block_on(async {
        let Some(busy) = Busy::begin().await else { return };
        for number in 0..20 {
            let edit = TaskEdit { title: Some(number.to_string()), ..TaskEdit::default() };
            let rename = change("t4", TaskInput::Edit { edit });
            busy.ours.commit(Actor::User, Timestamp(0), vec![rename]).await.unwrap();
        }
        let events = busy.ours.events(&EventQuery::default()).await.unwrap();
        let times: Vec<Timestamp> = events.iter().map(|event| event.at).collect();
        assert!(times.is_sorted(), "{times:?}");
        assert!(times[0] > Timestamp(1_700_000_000_000), "{times:?}");
    });
}

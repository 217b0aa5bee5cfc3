//! Claiming one after the other on PostgreSQL: who claims often looks ahead, and must not miss what happens meanwhile.

use std::sync::Arc;
use std::time::Duration;

use rehearsal_core::flow::Flow;
use rehearsal_core::guard::Limits;
use rehearsal_core::transition::TaskInput;
use rehearsal_core::{
    Actor, EventKind, Hold, HoldCause, Lane, NewTask, Priority, Task, TaskEdit, TaskId, Timestamp, WorkerId,
};
use rehearsal_store::{Change, ClaimRequest, EventQuery, PostgresStore, Store, TimeSource};

use crate::bench::{block_on, id, new_session, run_id, titled};
use crate::server;
use crate::wire::{Cut, Wire};

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
    let flow = Arc::new(Flow::shipped("loop").unwrap());
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

/// Claims over a wire that is cut when a claim is sent that somebody saw ahead; how many were claimed, and how often.
async fn claimed_over(cut: Cut) -> Option<(usize, usize)> {
    let url = server::server()?.database().await.unwrap();
    let straight = open(&url).await;
    add(&straight, many()).await;
    // Only the statement that looks for itself has this in it, and only when it is sent first.
    let wire = Wire::to(&url, cut, b"NOT EXISTS (SELECT FROM holds)");
    let store = open(&wire.url).await;
    let mut claims = 0;
    while !wire.is_cut() {
        claims += 1;
        assert!(claims <= TASKS, "nobody looked ahead");
        claim(&store, &format!("r{claims}"), Duration::from_secs(90)).await.unwrap();
    }
    assert_eq!(straight.verify().await.unwrap(), Vec::<String>::new());
    let events = straight.events(&EventQuery::default()).await.unwrap();
    let is_claim = |kind: &EventKind| format!("{kind:?}").contains("Claim {");
    Some((claims, events.iter().filter(|event| is_claim(&event.kind)).count()))
}

#[test]
fn a_claim_that_never_arrived_is_made() {
    let claimed = block_on(claimed_over(Cut::Before));
    assert!(claimed.is_none_or(|(asked, made)| asked == made), "{claimed:?}");
}

#[test]
fn a_claim_whose_answer_was_lost_is_not_made_again() {
    let claimed = block_on(claimed_over(Cut::After));
    assert!(claimed.is_none_or(|(asked, made)| asked == made), "{claimed:?}");
}

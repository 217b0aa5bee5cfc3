//! Changing a task that this process works on: one statement, made once, and only if the task is as it was.

use std::sync::Arc;

use rehearsal_core::flow::Flow;
use rehearsal_core::guard::Limits;
use rehearsal_core::transition::TaskInput;
use rehearsal_core::{Actor, Fence, Outcome, Task, TaskEdit, Timestamp, WorkerId};
use rehearsal_store::{
    Change, ClaimRequest, CommitError, Committed, EventQuery, PostgresStore, Store, TimeSource,
};

use crate::bench::{block_on, id, run_id, titled};
use crate::server;
use crate::wire::{Cut, Wire};

/// What is in the statement that ends a run, and in no other.
const END: &[u8] = b"\"end_run\"";

async fn with_a_task(url: &str) -> PostgresStore {
    let store = PostgresStore::open(url, TimeSource::Server).await.unwrap();
    let flow = Arc::new(Flow::shipped("loop").unwrap());
    let tasks = vec![(id("t"), titled("work"))];
    store.commit(Actor::User, Timestamp(0), vec![Change::AddTasks { tasks, flow }]).await.unwrap();
    store
}

async fn commit(store: &PostgresStore, change: Change) -> Result<Task, CommitError> {
    let worker = Actor::Worker(WorkerId::new("w").unwrap());
    let committed = store.commit(worker, Timestamp(0), vec![change]).await?;
    Ok(committed.into_iter().find_map(Committed::task).unwrap())
}

async fn claim(store: &PostgresStore) -> Task {
    let request = ClaimRequest {
        worker: WorkerId::new("w").unwrap(),
        run: run_id("r"),
        lease: std::time::Duration::from_secs(90),
        agents: None,
        stand_in: None,
        session: None,
        limits: Limits::default(),
        may_take_over: true,
    };
    commit(store, Change::ClaimNext(Box::new(request))).await.unwrap()
}

fn end(fence: Fence) -> Change {
    Change::ChangeTask { id: id("t"), input: TaskInput::EndRun { fence, outcome: Outcome::Done } }
}

fn rename(title: &str) -> Change {
    let edit = TaskEdit { title: Some(title.to_owned()), ..TaskEdit::default() };
    Change::ChangeTask { id: id("t"), input: TaskInput::Edit { edit } }
}

/// How often the log says that the run ended.
async fn ends(store: &PostgresStore) -> usize {
    assert_eq!(store.verify().await.unwrap(), Vec::<String>::new());
    let events = store.events(&EventQuery::default()).await.unwrap();
    events.iter().filter(|event| format!("{:?}", event.kind).contains("EndRun")).count()
}

/// Ends a run over a wire that is cut in that moment; how often it ended.
async fn ended_over(cut: Cut) -> Option<usize> {
    let url = server::server()?.database().await.unwrap();
    let straight = with_a_task(&url).await;
    let wire = Wire::to(&url, cut, END);
    let store = PostgresStore::open(&wire.url, TimeSource::Server).await.unwrap();
    let task = claim(&store).await;
    let ended = commit(&store, end(task.fence)).await.unwrap();
    assert_eq!(straight.task(&task.id).await.unwrap(), Some(ended));
    let message = wire.cut_off();
    assert!(!message.windows(7).any(|word| word == b"EXECUTE"), "it was sent within a transaction");
    Some(ends(&straight).await)
}

#[test]
fn a_change_that_never_arrived_is_made() {
    assert!(matches!(block_on(ended_over(Cut::Before)), None | Some(1)));
}

#[test]
fn a_change_whose_answer_was_lost_is_not_made_again() {
    assert!(matches!(block_on(ended_over(Cut::After)), None | Some(1)));
}

#[test]
fn what_somebody_else_has_changed_meanwhile_is_not_undone() {
    let Some(server) = server::server() else { return };
    block_on(async {
        let url = server.database().await.unwrap();
        let ours = with_a_task(&url).await;
        let theirs = PostgresStore::open(&url, TimeSource::Server).await.unwrap();
        let task = claim(&ours).await;
        commit(&theirs, rename("renamed")).await.unwrap();
        let ended = commit(&ours, end(task.fence)).await.unwrap();
        assert_eq!(ended.title, "renamed");
        assert_eq!(ends(&ours).await, 1);
    });
}

#[test]
fn who_believes_to_hold_what_was_taken_from_it_is_refused() {
    let Some(server) = server::server() else { return };
    block_on(async {
        let url = server.database().await.unwrap();
        let ours = with_a_task(&url).await;
        let theirs = PostgresStore::open(&url, TimeSource::Server).await.unwrap();
        let task = claim(&ours).await;
        let lose = TaskInput::Lose { stale: task.fence, of: WorkerId::new("w").unwrap() };
        commit(&theirs, Change::ChangeTask { id: id("t"), input: lose }).await.unwrap();
        let refused = commit(&ours, end(task.fence)).await.unwrap_err();
        assert!(matches!(refused, CommitError::Refused { .. }), "{refused}");
        assert_eq!(ends(&ours).await, 0);
    });
}

#[test]
fn time_does_not_go_back_between_two_changes() {
    let Some(server) = server::server() else { return };
    block_on(async {
        let store = with_a_task(&server.database().await.unwrap()).await;
        let task = claim(&store).await;
        for number in 0..20 {
            commit(&store, rename(&number.to_string())).await.unwrap();
        }
        commit(&store, end(task.fence)).await.unwrap();
        let events = store.events(&EventQuery::default()).await.unwrap();
        let times: Vec<Timestamp> = events.iter().map(|event| event.at).collect();
        assert!(times.is_sorted(), "{times:?}");
        assert!(times[0] > Timestamp(1_700_000_000_000), "{times:?}");
    });
}

//! Faults that need a hand on the store's own connections.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use std::sync::Arc;

use rehearsal_core::flow::Flow;
use rehearsal_core::{NewSession, NewTask, SessionName, TaskId};
use sqlx::{ConnectOptions, query, raw_sql};
use tempfile::TempDir;

use super::*;
use crate::{Store, TaskQuery};

async fn fresh() -> (TempDir, SqliteStore) {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(directory.path()).await.unwrap();
    (directory, store)
}

/// Sets something on the connection that the next commit will use.
async fn on_the_writer(store: &SqliteStore, sql: &'static str) {
    let mut turn = store.database.writer().await.unwrap();
    raw_sql(sql).execute(&mut turn.connection).await.unwrap();
    turn.keep();
}

fn session(name: &str) -> Change {
    Change::AddSession(NewSession {
        name: SessionName::new(name).unwrap(),
        description: String::new(),
        context: String::new(),
        criteria: Vec::new(),
    })
}

fn big_task(number: u64) -> Change {
    Change::AddTask {
        task: Box::new(NewTask { title: "big".into(), body: "x".repeat(500_000), ..NewTask::default() }),
        id: TaskId::from_random(number),
        flow: Arc::new(Flow::shipped("loop").unwrap()),
    }
}

async fn commit(store: &SqliteStore, changes: Vec<Change>) -> Result<Vec<Committed>, CommitError> {
    store.commit(Actor::User, Timestamp(1), changes).await
}

#[tokio::test]
async fn a_full_disk_loses_nothing_and_passes() {
    let (_directory, store) = fresh().await;
    commit(&store, vec![session("before")]).await.unwrap();
    on_the_writer(&store, "PRAGMA max_page_count = 60").await;
    let full = commit(&store, vec![session("during"), big_task(1)]).await.unwrap_err();
    assert!(matches!(full, CommitError::Store(StoreError::DiskFull)), "{full:?}");
    assert_eq!(full.to_string(), "there is no space left to write the database");
    assert_eq!(store.sessions().await.unwrap().len(), 1);

    on_the_writer(&store, "PRAGMA max_page_count = 100000").await;
    commit(&store, vec![session("after"), big_task(1)]).await.unwrap();
    assert_eq!(store.sessions().await.unwrap().len(), 2);
    assert_eq!(store.verify().await.unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn a_writer_that_does_not_stop_is_named() {
    let (_directory, store) = fresh().await;
    on_the_writer(&store, "PRAGMA busy_timeout = 1").await;
    let mut other = store.database.options().connect().await.unwrap();
    query("BEGIN IMMEDIATE").execute(&mut other).await.unwrap();
    let busy = commit(&store, vec![session("a")]).await.unwrap_err();
    assert!(matches!(busy, CommitError::Store(StoreError::Busy)), "{busy:?}");
    assert_eq!(busy.to_string(), "the database is busy: another process has been writing to it for 10 s");
    assert!(store.sessions().await.unwrap().is_empty(), "readers are not held up");
    query("ROLLBACK").execute(&mut other).await.unwrap();
    commit(&store, vec![session("a")]).await.unwrap();
}

#[tokio::test]
async fn a_commit_that_nobody_waits_for_any_more_is_whole_or_not_there() {
    let (_directory, store) = fresh().await;
    // Each time it gets a little further before it is given up.
    for polls in 1..25 {
        let changes = vec![session(&format!("s{polls}")), big_task(polls)];
        let mut commit = std::pin::pin!(commit(&store, changes));
        for _ in 0..polls {
            if poll_when_woken(commit.as_mut()).await.is_some() {
                break;
            }
        }
    }
    commit(&store, vec![session("whole"), big_task(100)]).await.unwrap();
    let sessions = store.sessions().await.unwrap().len();
    let tasks = store.tasks(&TaskQuery::default()).await.unwrap().len();
    assert_eq!(sessions, tasks);
    assert_eq!(store.verify().await.unwrap(), Vec::<String>::new());
}

/// Polls a future once and waits until it wants to be polled again.
async fn poll_when_woken<F: Future>(mut future: Pin<&mut F>) -> Option<F::Output> {
    let mut was_polled = false;
    poll_fn(|context| {
        if was_polled {
            return Poll::Ready(None);
        }
        was_polled = true;
        future.as_mut().poll(context).map(Some)
    })
    .await
}

#[tokio::test]
async fn only_a_scratch_does_not_wait_for_the_disk() {
    let directory = tempfile::tempdir().unwrap();
    for (store, expected) in [
        (SqliteStore::open_scratch(&directory.path().join("scratch")).await.unwrap(), 0_i64),
        (SqliteStore::open(&directory.path().join("earnest")).await.unwrap(), 2),
    ] {
        let mut turn = store.database.writer().await.unwrap();
        let found: i64 =
            sqlx::query_scalar("PRAGMA synchronous").fetch_one(&mut turn.connection).await.unwrap();
        assert_eq!(found, expected);
    }
}

#[tokio::test]
async fn the_profile_is_the_one_that_keeps_its_promises() {
    let (_directory, store) = fresh().await;
    let mut turn = store.database.writer().await.unwrap();
    let pragma = async |connection: &mut sqlx::SqliteConnection, sql: &'static str| -> i64 {
        sqlx::query_scalar(sql).fetch_one(connection).await.unwrap()
    };
    let full = 2;
    assert_eq!(pragma(&mut turn.connection, "PRAGMA synchronous").await, full);
    assert_eq!(pragma(&mut turn.connection, "PRAGMA foreign_keys").await, 1);
    assert_eq!(pragma(&mut turn.connection, "PRAGMA busy_timeout").await, 10_000);
    turn.keep();
    let mut reader = store.database.reader().await.unwrap();
    let refused = query("DELETE FROM sessions").execute(&mut *reader.0).await.unwrap_err();
    assert!(refused.to_string().contains("attempt to write a readonly database"), "{refused}");
}

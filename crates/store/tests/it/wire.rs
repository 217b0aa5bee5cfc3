//! What goes wrong between us and a PostgreSQL server: a wire that is cut at the worst moment, and what is found at its
//! other end.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rehearsal_core::guard::Limits;
use rehearsal_core::transition::TaskInput;
use rehearsal_core::{Actor, Fence, Hold, HoldCause, Lane, NewTask, Outcome, Timestamp, WorkerId};
use rehearsal_store::scratch::Scratch;
use rehearsal_store::{
    Change, ClaimRequest, CommitError, Durability, EventQuery, OpenError, PostgresStore, Store, StoreError,
    TimeSource,
};
use rustix::process::Pid;
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Connection, raw_sql};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::bench::{block_on, id, loop_flow, message, new_session, run_id};
use crate::server;

const SOCKET: &str = ".s.PGSQL.5432";

/// When the wire is cut.
#[derive(Clone, Copy)]
enum Cut {
    /// The server never gets the message.
    Before,
    /// The server does what it is told, and its answer is lost.
    After,
    /// The server never gets the message, and the client hears nothing until the wire is let go.
    Silent,
}

/// A wire that is cut once, at the first message that has certain words in it.
struct Wire {
    url: String,
    _directory: tempfile::TempDir,
    carrying: JoinHandle<()>,
    cut_off: Arc<OnceLock<()>>,
    let_go: Arc<Semaphore>,
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.carrying.abort();
    }
}

impl Wire {
    fn to(url: &str, cut: Cut, words: &'static [u8]) -> Self {
        let options: PgConnectOptions = url.parse().unwrap();
        let server = options.get_socket().unwrap().join(SOCKET);
        let directory = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(directory.path().join(SOCKET)).unwrap();
        let cut_off = Arc::new(OnceLock::new());
        let cut_here = Arc::clone(&cut_off);
        let let_go = Arc::new(Semaphore::new(0));
        let told = Arc::clone(&let_go);
        let carrying = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let ends = (Arc::clone(&cut_here), Arc::clone(&told));
                tokio::spawn(carry(client, server.clone(), cut, words, ends));
            }
        });
        let here = directory.path().display().to_string();
        let url = url.replace(&options.get_socket().unwrap().display().to_string(), &here);
        Self { url, _directory: directory, carrying, cut_off, let_go }
    }

    fn is_cut(&self) -> bool {
        self.cut_off.get().is_some()
    }
}

async fn carry(
    client: UnixStream,
    server: PathBuf,
    cut: Cut,
    words: &'static [u8],
    (cut_off, let_go): (Arc<OnceLock<()>>, Arc<Semaphore>),
) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = UnixStream::connect(server).await.unwrap().into_split();
    let until = Arc::clone(&let_go);
    let back = tokio::spawn(async move {
        let _ = tokio::io::copy(&mut from_server, &mut to_client).await;
        if matches!(cut, Cut::Silent) {
            let _ = until.acquire().await;
        }
    });
    let mut bytes = vec![0; 1 << 16];
    while let Ok(count @ 1..) = from_client.read(&mut bytes).await {
        let is_here = bytes[..count].windows(words.len()).any(|found| found == words);
        if is_here && cut_off.set(()).is_ok() {
            if matches!(cut, Cut::Silent) {
                let _ = let_go.acquire().await;
            }
            back.abort();
            if matches!(cut, Cut::After) {
                to_server.write_all(&bytes[..count]).await.unwrap();
            }
            return;
        }
        to_server.write_all(&bytes[..count]).await.unwrap();
    }
    back.abort();
}

/// Commits of every kind, whose events are found each in its own way: each over a wire that is cut, and there once in the end.
async fn commit_over(cut: Cut) {
    let Some(server) = server::server() else { return };
    let flow = loop_flow();
    let task = Box::new(NewTask { title: "a".into(), ..NewTask::default() });
    let add = Change::AddTask { task, id: id("t1"), flow };
    let (worker, run) = (WorkerId::new("w1").unwrap(), run_id("r1"));
    let input = TaskInput::Claim { worker: worker.clone(), run: run.clone() };
    let claim = Change::ChangeTask { id: id("t1"), input };
    let input = TaskInput::EndRun { fence: Fence::default().next(), outcome: Outcome::Done };
    let end = Change::ChangeTask { id: id("t1"), input };
    let claim_next = Change::ClaimNext(Box::new(ClaimRequest {
        worker,
        run,
        lease: Duration::from_secs(90),
        agents: None,
        stand_in: None,
        session: None,
        limits: Limits::default(),
        may_take_over: true,
    }));
    let hold = Hold { cause: HoldCause::Person, reason: "lunch".into(), until: None };
    let hold = Change::HoldLane { lane: Lane::All, hold };
    for (before, change) in [
        (vec![], new_session("a")),
        (vec![], add.clone()),
        (vec![add.clone()], claim.clone()),
        (vec![add.clone()], claim_next),
        (vec![add, claim], end),
        (vec![], hold),
    ] {
        let url = server.database().await.unwrap();
        // Makes the tables, which would be the first commit.
        let straight = PostgresStore::open(&url, TimeSource::Given).await.unwrap();
        let there = before.len();
        straight.commit(Actor::User, Timestamp(1), before).await.unwrap();
        let wire = Wire::to(&url, cut, b"COMMIT");
        let store = PostgresStore::open(&wire.url, TimeSource::Given).await.unwrap();
        store.commit(Actor::User, Timestamp(2), vec![change.clone()]).await.unwrap();
        assert!(wire.is_cut(), "{change:?}");
        assert_eq!(straight.verify().await.unwrap(), Vec::<String>::new());
        let events = straight.events(&EventQuery::default()).await.unwrap();
        assert_eq!(events.len(), there + 1, "{change:?}");
    }
}

#[test]
fn a_commit_that_never_arrived_is_made_again() {
    block_on(commit_over(Cut::Before));
}

#[test]
fn a_commit_whose_answer_was_lost_is_asked_for_and_not_made_again() {
    block_on(commit_over(Cut::After));
}

/// A server that crashes gives out anew the numbers of transactions that it had not written down.
#[test]
fn a_commit_that_was_lost_with_a_crash_is_not_taken_for_one_that_came_after_it() {
    block_on(lost_with_a_crash(|server, _| server.crash_and_restart().unwrap()));
}

/// Then its server begins anew, too, though it was not started again.
#[test]
fn nor_is_one_that_was_lost_when_another_process_of_the_server_died() {
    block_on(lost_with_a_crash(|_, backend| {
        rustix::process::kill_process(backend, rustix::process::Signal::KILL).unwrap();
    }));
}

/// Before the server has a commit it crashes; then others commit. The first one is made again, and is there once.
async fn lost_with_a_crash(crash: impl FnOnce(&mut Scratch, Pid)) {
    /// More than there were numbers that are forgotten.
    const MORE: usize = 40;
    let Ok(mut server) = Scratch::start(Durability::UntilPowerFails) else { return };
    let url = server.database().await.unwrap();
    let straight = PostgresStore::open(&url, TimeSource::Given).await.unwrap();
    let mut other = PgConnectOptions::from_url(&url.parse().unwrap()).unwrap().connect().await.unwrap();
    let backend: i32 = sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(&mut other).await.unwrap();
    let wire = Wire::to(&url, Cut::Silent, b"COMMIT");
    let store = PostgresStore::open(&wire.url, TimeSource::Given).await.unwrap();
    let lost =
        tokio::spawn(async move { store.commit(Actor::User, Timestamp(1), vec![new_session("lost")]).await });
    while !wire.is_cut() {
        tokio::task::yield_now().await;
    }
    crash(&mut server, Pid::from_raw(backend).unwrap());
    for number in 0..MORE {
        let another = new_session(&format!("s{number}"));
        straight.commit(Actor::User, Timestamp(1), vec![another]).await.unwrap();
    }
    wire.let_go.close();
    lost.await.unwrap().unwrap();
    assert_eq!(straight.sessions().await.unwrap().len(), MORE + 1);
    assert_eq!(straight.events(&EventQuery::default()).await.unwrap().len(), MORE + 1);
}

#[test]
fn two_that_start_at_once_make_the_tables_once() {
    let Some(server) = server::server() else { return };
    block_on(async {
        let url = server.database().await.unwrap();
        let opening: tokio::task::JoinSet<_> = (0..6)
            .map(|_| {
                let url = url.clone();
                async move { PostgresStore::open(&url, TimeSource::Given).await.map(|_| ()) }
            })
            .collect();
        let refused: Vec<String> = opening
            .join_all()
            .await
            .into_iter()
            .filter_map(Result::err)
            .map(|error| format!("{error:?}"))
            .collect();
        assert_eq!(refused, Vec::<String>::new());
        let store = PostgresStore::open(&url, TimeSource::Given).await.unwrap();
        assert_eq!(store.schema_version().await.unwrap(), 1);
    });
}

async fn run(url: &str, sql: &'static str) {
    let options: PgConnectOptions = url.parse().unwrap();
    let mut connection = options.connect().await.unwrap();
    raw_sql(sql).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

#[test]
fn tables_of_a_newer_version_are_refused() {
    let Some(server) = server::server() else { return };
    block_on(async {
        let url = server.database().await.unwrap();
        drop(PostgresStore::open(&url, TimeSource::Given).await.unwrap());
        run(&url, "UPDATE rehearsal.schema_version SET version = 7").await;
        let error = message(PostgresStore::open(&url, TimeSource::Given).await);
        let expected = "was made by a newer version of this program (schema 7, this one knows 1)";
        assert!(error.ends_with(expected), "{error}");
    });
}

#[test]
fn a_schema_of_someone_else_is_left_alone() {
    let Some(server) = server::server() else { return };
    block_on(async {
        let url = server.database().await.unwrap();
        run(&url, "CREATE SCHEMA rehearsal; CREATE TABLE rehearsal.stage (width INTEGER)").await;
        let error = message(PostgresStore::open(&url, TimeSource::Given).await);
        assert!(error.ends_with("is not a database of this program"), "{error}");
    });
}

#[test]
fn the_log_on_a_server_is_append_only() {
    let Some(server) = server::server() else { return };
    block_on(async {
        let url = server.database().await.unwrap();
        let store = PostgresStore::open(&url, TimeSource::Given).await.unwrap();
        store.commit(Actor::User, Timestamp(1), vec![new_session("a")]).await.unwrap();
        let options: PgConnectOptions = url.parse().unwrap();
        let mut connection = options.connect().await.unwrap();
        for sql in ["DELETE FROM rehearsal.events", "TRUNCATE rehearsal.events"] {
            let error = raw_sql(sql).execute(&mut connection).await.unwrap_err().to_string();
            assert!(error.contains("the log is append-only"), "{error}");
        }
    });
}

#[test]
fn no_error_tells_the_password() {
    let told = |error: OpenError| format!("{error} {error:?}");
    let texts = block_on(async {
        let mut texts = Vec::new();
        for url in [
            "postgres://me:s3cret@127.0.0.1:1/db",
            "postgres://me:s3cret@/nowhere:port/db",
            "nonsense:s3cret",
            "postgres:///db?host=/nowhere&user=me&password=s3cret",
        ] {
            texts.push(told(PostgresStore::open(url, TimeSource::Server).await.unwrap_err()));
        }
        texts
    });
    assert!(texts.iter().all(|text| !text.contains("s3cret")), "{texts:#?}");
}

#[test]
fn a_server_that_is_not_there_is_named_as_that() {
    let nowhere = tempfile::tempdir().unwrap();
    let url = format!("postgres:///db?host={}&user=me", nowhere.path().display());
    match block_on(PostgresStore::open(&url, TimeSource::Server)) {
        Err(OpenError::Store(StoreError::Unreachable { what })) => {
            assert!(what.contains("No such file or directory"), "{what}");
            assert!(what.starts_with(&format!("postgres://me@{}/db: ", nowhere.path().display())), "{what}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_database_that_is_not_there_is_a_refusal() {
    let Some(server) = server::server() else { return };
    let url = block_on(server.database()).unwrap().replace("/scratch", "/missing");
    let error = message(block_on(PostgresStore::open(&url, TimeSource::Server)));
    assert!(error.starts_with("the database refuses us: database \"missing"), "{error}");
}

#[test]
fn an_unknown_outcome_says_so() {
    let expected =
        "the connection to the database was lost in the moment of writing: it may be written, or not";
    assert_eq!(CommitError::OutcomeUnknown.to_string(), expected);
}

//! Listings and the next pick, with a hundred thousand tasks and with a hundred.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rehearsal_core::flow::Flow;
use rehearsal_core::{Actor, NewSession, NewTask, SessionName, TaskId, Timestamp};
use rehearsal_store::{Change, SqliteStore, Store};

const MANY: u64 = 100_000;
const FEW: u64 = 100;
const ROUNDS: usize = 15;

pub(crate) fn measure(program: &Path) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let many = runtime.block_on(repository_with(MANY));
    let few = runtime.block_on(repository_with(FEW));
    // First: the commands move the store to where it belongs.
    let pick = |root: &Path| runtime.block_on(pick_time(root));
    crate::row("store: open and next pick", pick(many.path()), pick(few.path()), "< 50 ms");
    for args in [&["task", "list"][..], &["status"][..]] {
        let of = |root: &Path| command_time(program, root, args);
        let what = format!("store: `{}` of 100,000 tasks, of 100", args.join(" "));
        crate::row(&what, of(many.path()), of(few.path()), "< 50 ms");
    }
}

async fn repository_with(tasks: u64) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(root.path().join(".rehearsal")).unwrap();
    let store = SqliteStore::open(&root.path().join(".rehearsal/state")).await.unwrap();
    let session = SessionName::new("bench").unwrap();
    let new = NewSession {
        name: session.clone(),
        description: String::new(),
        context: String::new(),
        criteria: Vec::new(),
    };
    let task = |number: u64| {
        let task = NewTask {
            session: Some(session.clone()),
            title: format!("Task {number} with a title of a usual length"),
            criteria: vec!["the tests pass".into()],
            ..NewTask::default()
        };
        // A multiplier that is odd visits every id once.
        (TaskId::from_random(number.wrapping_mul(0x9e37_79b9_7f4a_7c15)), task)
    };
    let flow = Arc::new(Flow::shipped("loop").unwrap());
    let tasks = (0..tasks).map(task).collect();
    let changes = vec![Change::AddSession(new), Change::AddTasks { tasks, flow }];
    store.commit(Actor::User, Timestamp(1), changes).await.unwrap();
    root
}

fn command_time(program: &Path, root: &Path, args: &[&str]) -> Duration {
    let once = || {
        let start = Instant::now();
        let mut command = Command::new(program);
        command.args(args).current_dir(root).env("XDG_DATA_HOME", root.join("data")).stdout(Stdio::null());
        assert!(command.status().unwrap().success());
        start.elapsed()
    };
    crate::median((0..ROUNDS).map(|_| once()).collect())
}

async fn pick_time(root: &Path) -> Duration {
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let store = SqliteStore::open(&root.join(".rehearsal/state")).await.unwrap();
        let session = SessionName::new("bench").unwrap();
        assert!(store.next_task(Some(&session), Timestamp(2)).await.unwrap().is_some());
        times.push(start.elapsed());
    }
    crate::median(times)
}

//! Claiming a task and completing it: ours beside the bare statements of the same shape, and on PostgreSQL beside
//! graphile-worker and pg-boss; and what a claim costs when there are a thousand tasks, and a million.

mod bare;
mod peers;

use std::sync::Arc;
use std::time::{Duration, Instant};

use rehearsal_core::flow::Flow;
use rehearsal_core::guard::Limits;
use rehearsal_core::transition::TaskInput;
use rehearsal_core::{Actor, NewTask, Outcome, RunId, TaskId, Timestamp, WorkerId};
use rehearsal_store::Durability;
use rehearsal_store::scratch::Scratch;
use rehearsal_store::{Change, ClaimRequest, Committed, PostgresStore, SqliteStore, Store, TimeSource};

/// Tasks of one round, and rounds of which the fastest one counts: what else goes on only ever makes them slower.
const TASKS: u64 = 600;
const ROUNDS: usize = 7;
/// Who works side by side on PostgreSQL.
const CLIENTS: usize = 8;
const SIZES: [u64; 3] = [1_000, 100_000, 1_000_000];

pub(crate) fn measure() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let directory = tempfile::tempdir().unwrap();
        let sqlite: Arc<dyn Store> = Arc::new(SqliteStore::open(directory.path()).await.unwrap());
        let bare = bare::Sqlite::open(&directory.path().join("bare.db")).await;
        beside("claims: SQLite, 1 client", &sqlite, 1, async |_| bare.round(TASKS).await).await;
        match Scratch::start(Durability::Full) {
            Ok(server) => measure_postgres(&server).await,
            Err(error) => println!("claims on PostgreSQL are left out: {error}"),
        }
        let directory = tempfile::tempdir().unwrap();
        let sqlite: Arc<dyn Store> = Arc::new(SqliteStore::open(directory.path()).await.unwrap());
        growth("claims: SQLite", &sqlite).await;
    });
}

async fn measure_postgres(server: &Scratch) {
    let store = postgres(server).await;
    let bare = bare::Postgres::open(&server.database().await.unwrap(), CLIENTS).await;
    beside("claims: PostgreSQL, 1 client", &store, 1, async |clients| bare.round(TASKS, clients).await).await;
    beside("claims: PostgreSQL, 8 clients", &store, CLIENTS, async |clients| {
        bare.round(TASKS, clients).await
    })
    .await;
    let tables = bare::PostgresTables::open(&server.database().await.unwrap(), CLIENTS).await;
    for clients in [1, CLIENTS] {
        let what = format!("claims: PostgreSQL, {clients} clients, our tables");
        beside(&what, &store, clients, async |clients| tables.round(TASKS, clients).await).await;
    }
    for peer in peers::ALL {
        match peers::Installed::install(peer) {
            Ok(installed) => {
                let url = server.database().await.unwrap();
                let what = format!("claims: PostgreSQL, 8 clients, {}", peer.package);
                beside(&what, &store, CLIENTS, async |clients| installed.round(&url, TASKS, clients)).await;
            }
            Err(why) => println!("{} is left out: {why}", peer.package),
        }
    }
    growth("claims: PostgreSQL", &postgres(server).await).await;
}

async fn postgres(server: &Scratch) -> Arc<dyn Store> {
    let url = server.database().await.unwrap();
    Arc::new(PostgresStore::open(&url, TimeSource::Server).await.unwrap())
}

/// One round of ours, one of the other, and so on: what disturbs one disturbs the other, too.
async fn beside(what: &str, store: &Arc<dyn Store>, clients: usize, other: impl AsyncFn(usize) -> Duration) {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        add(store, TASKS).await;
        ours.push(round(store, clients).await);
        theirs.push(other(clients).await);
    }
    let count = u32::try_from(TASKS).unwrap_or(u32::MAX);
    let rate = |times: Vec<Duration>| {
        let fastest = times.into_iter().min().unwrap_or_default();
        f64::from(count) / fastest.as_secs_f64()
    };
    let (ours, theirs) = (rate(ours), rate(theirs));
    println!("{what:<44} {ours:>10.0}/s {theirs:>10.0}/s {:>7.3}x  of claim and complete", ours / theirs);
}

/// Claims and completes all there is; how long that took.
async fn round(store: &Arc<dyn Store>, clients: usize) -> Duration {
    let start = Instant::now();
    let worker = |client| {
        let store = Arc::clone(store);
        async move { while claim_and_complete(&store, client).await.is_some() {} }
    };
    all((0..clients).map(worker)).await;
    start.elapsed()
}

/// All clients side by side, ours and others alike on the threads of the runtime.
async fn all(clients: impl Iterator<Item = impl Future<Output = ()> + Send + 'static>) {
    clients.collect::<tokio::task::JoinSet<()>>().join_all().await;
}

/// How long the claim took; none if there was nothing to do.
async fn claim_and_complete(store: &Arc<dyn Store>, client: usize) -> Option<Duration> {
    let worker = WorkerId::new(format!("worker-{client}")).unwrap();
    let request = ClaimRequest {
        worker: worker.clone(),
        run: RunId::new("run").unwrap(),
        lease: Duration::from_secs(90),
        agents: None,
        session: None,
        stand_in: None,
        limits: Limits::default(),
        may_take_over: true,
    };
    let start = Instant::now();
    let actor = || Actor::Worker(worker.clone());
    let claim = vec![Change::ClaimNext(Box::new(request))];
    let claimed = store.commit(actor(), now(), claim).await.unwrap();
    let took = start.elapsed();
    let task = claimed.into_iter().next().and_then(Committed::task)?;
    let input = TaskInput::EndRun { fence: task.fence, outcome: Outcome::Done };
    store.commit(actor(), now(), vec![Change::ChangeTask { id: task.id, input }]).await.unwrap();
    Some(took)
}

/// Time stands still: it is no part of what is measured.
fn now() -> Timestamp {
    Timestamp(1)
}

async fn add(store: &Arc<dyn Store>, count: u64) {
    let flow = Arc::new(Flow::shipped("loop").unwrap());
    let before = store.count_tasks(None).await.unwrap().total;
    let task = |number: u64| {
        let title = format!("Task {number} with a title of a usual length");
        let task = NewTask { title, criteria: vec!["the tests pass".into()], ..NewTask::default() };
        (TaskId::new(format!("t{number}")).unwrap(), task)
    };
    let tasks = (before..before + count).map(task).collect();
    store.commit(Actor::User, now(), vec![Change::AddTasks { tasks, flow }]).await.unwrap();
}

/// What a claim costs, with ever more tasks that wait.
async fn growth(what: &str, store: &Arc<dyn Store>) {
    let mut first = None;
    let mut there = 0;
    for size in SIZES {
        while there < size {
            let more = (size - there).min(100_000);
            add(store, more).await;
            there += more;
        }
        let mut times = Vec::new();
        for _ in 0..500 {
            times.extend(claim_and_complete(store, 0).await);
        }
        let time = crate::median(times);
        let first = *first.get_or_insert(time);
        crate::row(&format!("{what}, one claim of {size} tasks, of 1000"), time, first, "<= 2x");
    }
}

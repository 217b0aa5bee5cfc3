//! Many workers on one PostgreSQL server, while connections break and the server crashes.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rehearsal_core::guard::{AgentLimits, Limits};
use rehearsal_core::transition::TaskInput;
use rehearsal_core::{
    Actor, AgentName, EventKind, NewTask, Outcome, RunStart, Task, TaskId, Timestamp, WorkerId,
};
use rehearsal_store::scratch::Scratch;
use rehearsal_store::{
    Change, ClaimRequest, CommitError, EventQuery, PostgresStore, Store, TaskQuery, TimeSource,
};
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, raw_sql};

use crate::bench::{how_it_ended, id, loop_flow, run_id, titled};
use crate::server;

const WORKERS: usize = 8;
const TASKS: usize = 240;
/// So short that what a broken connection left behind is taken over soon.
const LEASE: Duration = Duration::from_secs(5);

fn on_threads<T>(future: impl Future<Output = T>) -> T {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().unwrap().block_on(future)
}

async fn store_with(url: &str, tasks: Vec<(TaskId, NewTask)>) -> Arc<PostgresStore> {
    let store = PostgresStore::open(url, TimeSource::Server).await.unwrap();
    let flow = loop_flow();
    store.commit(Actor::User, Timestamp(0), vec![Change::AddTasks { tasks, flow }]).await.unwrap();
    Arc::new(store)
}

fn many() -> Vec<(TaskId, NewTask)> {
    (0..TASKS).map(|number| (id(&format!("t{number}")), titled("work"))).collect()
}

fn asking(worker: &str, run: &str) -> ClaimRequest {
    ClaimRequest {
        worker: WorkerId::new(worker).unwrap(),
        run: run_id(run),
        lease: LEASE,
        agents: None,
        stand_in: None,
        session: None,
        limits: Limits::default(),
        may_take_over: true,
    }
}

async fn claim(store: &PostgresStore, request: ClaimRequest) -> Result<Option<Task>, CommitError> {
    let actor = Actor::Worker(request.worker.clone());
    let committed = store.commit(actor, Timestamp(0), vec![Change::ClaimNext(Box::new(request))]).await?;
    Ok(committed.into_iter().next().unwrap().task())
}

fn start_of(task: &Task, run: &str, worker: &str) -> RunStart {
    RunStart {
        id: run_id(run),
        task: task.id.clone(),
        session: None,
        fence: task.fence,
        agent: AgentName::new("implementer").unwrap(),
        driver: "scripted".into(),
        model: None,
        worker: WorkerId::new(worker).unwrap(),
        iteration: 1,
        started_at: Timestamp(0),
    }
}

/// Works until all is done. Whatever happens on the way is no reason to stop: a claim that was lost is taken over.
async fn work(store: PostgresStore, number: usize, done: Arc<AtomicU64>) {
    let name = format!("worker-{number}");
    for round in 0.. {
        let run = format!("r{number}-{round}");
        let task = match claim(&store, asking(&name, &run)).await {
            Ok(Some(task)) => task,
            Ok(None) if store.count_tasks(None).await.unwrap().open == 0 => return,
            Ok(None) => {
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
            Err(CommitError::OutcomeUnknown) => continue,
            Err(error) => panic!("{error:?}"),
        };
        let outcome = Outcome::Done;
        let changes = vec![
            Change::StartRun(start_of(&task, &run, &name)),
            Change::EndRun { run: run_id(&run), end: Box::new(how_it_ended(outcome.clone(), Timestamp(0))) },
            Change::ChangeTask { id: task.id, input: TaskInput::EndRun { fence: task.fence, outcome } },
        ];
        match store.commit(Actor::User, Timestamp(0), changes).await {
            Ok(_) => {
                done.fetch_add(1, Ordering::SeqCst);
            }
            Err(CommitError::Refused { .. } | CommitError::OutcomeUnknown) => {}
            Err(error) => panic!("{error:?}"),
        }
    }
}

/// All work, and meanwhile `trouble` is made, until it is all done.
async fn all_work(url: &str, trouble: impl AsyncFnOnce(Arc<AtomicU64>)) {
    let store = store_with(url, many()).await;
    let done = Arc::new(AtomicU64::new(0));
    // All are there before the trouble begins: who cannot open a store is told, and tries again by itself or not.
    let mut stores = Vec::new();
    for _ in 0..WORKERS {
        stores.push(PostgresStore::open(url, TimeSource::Server).await.unwrap());
    }
    let workers = stores.into_iter().enumerate();
    let workers: Vec<_> =
        workers.map(|(number, store)| tokio::spawn(work(store, number, Arc::clone(&done)))).collect();
    trouble(Arc::clone(&done)).await;
    for worker in workers {
        worker.await.unwrap();
    }
    check(&store).await;
}

/// Each task is done, and one run of each counted.
async fn check(store: &PostgresStore) {
    assert_eq!(store.verify().await.unwrap(), Vec::<String>::new());
    let tasks = store.tasks(&TaskQuery::default()).await.unwrap();
    assert_eq!(tasks.len(), TASKS);
    assert!(tasks.iter().all(Task::is_done));
    let mut counted: HashMap<String, u32> = HashMap::new();
    for event in store.events(&EventQuery::default()).await.unwrap() {
        if let EventKind::TaskChanged { task, input: TaskInput::EndRun { .. }, .. } = event.kind {
            *counted.entry(task.to_string()).or_default() += 1;
        }
    }
    assert_eq!(counted.len(), TASKS);
    assert!(counted.values().all(|count| *count == 1), "{counted:?}");
}

async fn until(done: &AtomicU64, count: u64) {
    let reached = async {
        while done.load(Ordering::SeqCst) < count {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(120), reached).await.unwrap();
}

fn fresh() -> Option<(&'static Scratch, String)> {
    let server = server::server()?;
    Some((server, on_threads(server.database()).unwrap()))
}

#[test]
fn eight_workers_do_each_task_once() {
    let Some((_, url)) = fresh() else { return };
    on_threads(all_work(&url, async |_| {}));
}

#[test]
fn connections_that_are_cut_lose_nothing() {
    let Some((_, url)) = fresh() else { return };
    let options: PgConnectOptions = url.parse().unwrap();
    on_threads(all_work(&url, async |done| {
        let mut other = options.connect().await.unwrap();
        for cut in 1..=10 {
            until(&done, cut * 15).await;
            raw_sql(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                 WHERE datname = current_database() AND application_name = 'rehearsal'",
            )
            .execute(&mut other)
            .await
            .unwrap();
        }
    }));
}

#[test]
fn a_server_that_crashes_loses_nothing() {
    let Some(mut server) = server::start() else { return };
    let url = on_threads(server.database()).unwrap();
    on_threads(all_work(&url, async |done| {
        for crash in 1..=3 {
            until(&done, crash * 40).await;
            tokio::task::block_in_place(|| server.crash_and_restart().unwrap());
        }
    }));
}

/// How many of those that ask at once get a task.
async fn claimed_at_once(url: &str, limits: &Limits) -> usize {
    let claims = at_once(WORKERS, |number| {
        let (url, name) = (url.to_owned(), format!("w{number}"));
        let request = ClaimRequest { limits: limits.clone(), ..asking(&name, &format!("run-{number}")) };
        async move {
            let store = PostgresStore::open(&url, TimeSource::Server).await.unwrap();
            claim(&store, request).await.unwrap()
        }
    });
    let claimed = claims.await.into_iter().flatten().count();
    let store = PostgresStore::open(url, TimeSource::Server).await.unwrap();
    assert_eq!(store.verify().await.unwrap(), Vec::<String>::new());
    claimed
}

/// Does all of it side by side; the answers in any order.
async fn at_once<T, F>(count: usize, make: impl FnMut(usize) -> F) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let all: tokio::task::JoinSet<T> = (0..count).map(make).collect();
    all.join_all().await
}

#[test]
fn limits_hold_when_eight_ask_at_once() {
    let Some((_, url)) = fresh() else { return };
    on_threads(async {
        store_with(&url, many()).await;
        let two = AgentLimits { at_once: Some(2), ..AgentLimits::default() };
        let agents = BTreeMap::from([(AgentName::new("implementer").unwrap(), two)]);
        assert_eq!(claimed_at_once(&url, &Limits { at_once: None, agents }).await, 2);
    });
}

#[test]
fn without_limits_eight_who_ask_at_once_get_eight() {
    let Some((_, url)) = fresh() else { return };
    on_threads(async {
        store_with(&url, many()).await;
        assert_eq!(claimed_at_once(&url, &Limits::default()).await, 8);
    });
}

#[test]
fn of_tasks_that_touch_the_same_eight_who_ask_at_once_get_one() {
    let Some((_, url)) = fresh() else { return };
    on_threads(async {
        let touching = |number| {
            let task = NewTask { touches: vec!["src/*.rs".into()], ..titled("t") };
            (id(&format!("t{number}")), task)
        };
        store_with(&url, (0..20).map(touching).collect()).await;
        assert_eq!(claimed_at_once(&url, &Limits::default()).await, 1);
    });
}

#[test]
fn tasks_that_end_while_others_begin_to_wait_for_them_are_counted() {
    let Some((_, url)) = fresh() else { return };
    on_threads(async {
        let first = (0..40).map(|number| (id(&format!("a{number}")), titled("first"))).collect();
        let store = store_with(&url, first).await;
        let flow = loop_flow();
        at_once(80, |number| {
            let (store, flow) = (Arc::clone(&store), Arc::clone(&flow));
            let on = id(&format!("a{}", number / 2));
            let change = if number % 2 == 0 {
                Change::ChangeTask { id: on, input: TaskInput::Finish }
            } else {
                let task = NewTask { depends_on: vec![on], ..titled("second") };
                Change::AddTask { task: Box::new(task), id: id(&format!("b{number}")), flow }
            };
            async move { store.commit(Actor::User, Timestamp(0), vec![change]).await.unwrap() }
        })
        .await;
        assert_eq!(store.verify().await.unwrap(), Vec::<String>::new());
    });
}

#[test]
fn of_two_that_would_wait_for_each_other_one_is_refused() {
    let Some((_, url)) = fresh() else { return };
    on_threads(async {
        let tasks = (0..20).map(|number| (id(&format!("t{number}")), titled("t"))).collect();
        let store = store_with(&url, tasks).await;
        let answers = at_once(20, |number| {
            let store = Arc::clone(&store);
            let depends_on = Some(vec![id(&format!("t{}", number ^ 1))]);
            let edit = rehearsal_core::TaskEdit { depends_on, ..rehearsal_core::TaskEdit::default() };
            let change =
                Change::ChangeTask { id: id(&format!("t{number}")), input: TaskInput::Edit { edit } };
            async move { store.commit(Actor::User, Timestamp(0), vec![change]).await }
        })
        .await;
        let refused = answers
            .iter()
            .filter(|answer| matches!(answer, Err(CommitError::DependencyCycle { .. })))
            .count();
        assert_eq!((refused, answers.iter().filter(|answer| answer.is_ok()).count()), (10, 10));
        assert_eq!(store.verify().await.unwrap(), Vec::<String>::new());
    });
}

#[test]
fn others_hear_of_a_commit() {
    let Some((_, url)) = fresh() else { return };
    on_threads(async {
        let listening = PostgresStore::open(&url, TimeSource::Server).await.unwrap();
        let mut changes = listening.changes();
        // The first is that it listens now.
        changes.changed().await.unwrap();
        store_with(&url, many()).await;
        changes.changed().await.unwrap();
    });
}

#[test]
fn the_clock_of_the_server_counts_and_not_the_one_given() {
    let Some((_, url)) = fresh() else { return };
    on_threads(async {
        let store = store_with(&url, vec![(id("t"), titled("t"))]).await;
        claim(&store, asking("w", "r1")).await.unwrap().unwrap();
        let (task, until) = store.leases().await.unwrap().remove(0);
        assert!(task.created_at > Timestamp(1_700_000_000_000), "{}", task.created_at);
        assert_eq!(until, task.updated_at.plus(LEASE));
        let renewed = store.renew(&[(task.id.clone(), task.fence)], LEASE, Timestamp(0)).await.unwrap();
        assert_eq!(renewed, [task.id]);
        assert!(store.leases().await.unwrap()[0].1 >= until);
    });
}

//! Several processes on one database, killed in the middle of whatever they do.
//!
//! The workers are this test program itself, started again with a directory in its environment. They claim tasks,
//! run them and say so; they are killed when they have said so a random number of times, which is while they are
//! already at the next thing.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use rehearsal_core::transition::TaskInput;
use rehearsal_core::{Actor, EventKind, Fence, Outcome, RunId, Standing, Task, Timestamp, WorkerId};
use rehearsal_store::{Change, CommitError, EventQuery, SqliteStore, Store, TaskQuery};

use crate::bench::{block_on, how_it_ended, id, loop_flow, titled};

const WORKERS: u64 = 3;
const KILLS: u64 = 40;
const TASKS: u64 = 60;
/// A worker that looks for work this often in vain has met a defect; it would hang otherwise.
const MOST_IDLE: u32 = 50_000;
const DIRECTORY: &str = "REHEARSAL_TEST_HAMMER_DIRECTORY";
const SEED: &str = "REHEARSAL_TEST_HAMMER_SEED";

#[test]
fn killed_workers_break_nothing() {
    let seed = std::env::var(SEED).ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(random_seed);
    // Shown when the test fails, and in the message of each check.
    let told = format!("{SEED}={seed}");
    let directory = tempfile::tempdir().unwrap();
    let mut dice = Dice(seed);
    let mut claims: Vec<(String, i64)> = Vec::new();
    let mut workers: Vec<Worker> =
        (0..WORKERS).map(|number| Worker::start(directory.path(), seed, number)).collect();
    block_on(add_tasks(directory.path()));
    for number in WORKERS..WORKERS + KILLS {
        let place = usize::try_from(dice.below(WORKERS)).unwrap();
        let mut worker =
            std::mem::replace(&mut workers[place], Worker::start(directory.path(), seed, number));
        claims.extend(worker.claims(dice.below(6)));
        worker.child.kill().unwrap();
        claims.extend(worker.claims(u64::MAX));
        worker.child.wait().unwrap();
        block_on(bury(directory.path(), &worker.name)).unwrap_or_else(|error| panic!("{told}: {error}"));
    }
    block_on(let_all_be_done(directory.path()));
    for mut worker in workers {
        claims.extend(worker.claims(u64::MAX));
        assert!(worker.child.wait().unwrap().success(), "{told}");
    }
    block_on(check(directory.path(), &claims, &told));
}

/// The other side: what a worker does. Does nothing unless it was started as one.
#[test]
#[ignore = "started by `killed_workers_break_nothing`"]
fn worker() {
    let Ok(directory) = std::env::var(DIRECTORY) else {
        return;
    };
    let seed: u64 = std::env::var(SEED).unwrap().parse().unwrap();
    block_on(work(Path::new(&directory), seed));
}

struct Worker {
    name: String,
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Worker {
    fn start(directory: &Path, seed: u64, number: u64) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "hammer::worker", "--ignored", "--nocapture", "--test-threads=1"])
            .env(DIRECTORY, directory)
            .env(SEED, (seed ^ (number << 32)).to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { name: format!("worker-{}", child.id()), child, lines }
    }

    /// The next claims that it reports, or all that it still will.
    fn claims(&mut self, most: u64) -> Vec<(String, i64)> {
        let mut claims = Vec::new();
        while u64::try_from(claims.len()).unwrap() < most {
            let Some(Ok(line)) = self.lines.next() else {
                break;
            };
            let Some((_, claim)) = line.split_once("claimed ") else {
                continue;
            };
            // The last line may be cut by the kill.
            let Some((task, fence)) = claim.split_once(' ') else {
                continue;
            };
            let Some(fence) = fence.strip_suffix('.') else {
                continue;
            };
            claims.push((task.to_owned(), fence.parse().unwrap()));
        }
        claims
    }
}

async fn work(directory: &Path, seed: u64) {
    let store = SqliteStore::open(directory).await.unwrap();
    let name = WorkerId::new(format!("worker-{}", std::process::id())).unwrap();
    let actor = Actor::Worker(name.clone());
    let mut dice = Dice(seed);
    let mut idle = 0;
    loop {
        let Some(task) = store.next_task(None, Timestamp(0)).await.unwrap() else {
            let counts = store.count_tasks(None).await.unwrap();
            if counts.total > 0 && counts.open == 0 {
                return;
            }
            idle += 1;
            assert!(idle < MOST_IDLE, "there is work, and none of it can be claimed: {counts:?}");
            tokio::task::yield_now().await;
            continue;
        };
        let run = RunId::from_random(dice.next());
        let fence = task.fence.next();
        let start = start_of(&task, &run, &name);
        let claim = TaskInput::Claim { worker: name.clone(), run: run.clone() };
        let changes = vec![Change::ChangeTask { id: task.id.clone(), input: claim }, Change::StartRun(start)];
        match store.commit(actor.clone(), Timestamp(0), changes).await {
            Ok(_) => {}
            Err(CommitError::Refused { .. }) => continue,
            Err(error) => panic!("{error:?}"),
        }
        let mut out = std::io::stdout();
        writeln!(out, "claimed {} {fence}.", task.id).unwrap();
        // Rarely done, so that there is work left until the last of them is killed.
        let outcome =
            if dice.below(100) == 0 { Outcome::Done } else { Outcome::Continue { message: "more".into() } };
        let end = Box::new(how_it_ended(outcome.clone(), Timestamp(0)));
        let input = TaskInput::EndRun { fence, outcome };
        let changes = vec![Change::ChangeTask { id: task.id, input }, Change::EndRun { run, end }];
        match store.commit(actor.clone(), Timestamp(0), changes).await {
            // Someone may have finished the task in our stead.
            Ok(_) | Err(CommitError::Refused { .. }) => {}
            Err(error) => panic!("{error:?}"),
        }
    }
}

fn start_of(task: &Task, run: &RunId, worker: &WorkerId) -> rehearsal_core::RunStart {
    rehearsal_core::RunStart {
        id: run.clone(),
        task: task.id.clone(),
        session: None,
        fence: task.fence.next(),
        agent: rehearsal_core::AgentName::new("implementer").unwrap(),
        driver: "scripted".into(),
        model: None,
        worker: worker.clone(),
        iteration: 1,
        started_at: Timestamp(0),
    }
}

async fn add_tasks(directory: &Path) {
    let store = SqliteStore::open(directory).await.unwrap();
    let flow = loop_flow();
    let tasks = (0..TASKS).map(|number| (id(&format!("t{number}")), titled("work"))).collect();
    store.commit(Actor::User, Timestamp(0), vec![Change::AddTasks { tasks, flow }]).await.unwrap();
}

/// What an engine does for a worker that is known to be dead: its claims are given back, its runs are over.
async fn bury(directory: &Path, name: &str) -> Result<(), CommitError> {
    let store = SqliteStore::open(directory).await.unwrap();
    for run in store.unfinished_runs().await? {
        if run.start.worker.as_str() != name {
            continue;
        }
        let outcome = Outcome::crashed(rehearsal_core::Exit::Signal(9));
        let end = Box::new(how_it_ended(outcome, Timestamp(0)));
        let release = TaskInput::Release { fence: run.start.fence };
        let changes = vec![
            Change::EndRun { run: run.start.id, end },
            Change::ChangeTask { id: run.start.task, input: release },
        ];
        store.commit(Actor::User, Timestamp(0), changes).await?;
    }
    Ok(())
}

/// Ends it: whatever is still open is finished, also under the hands of a worker.
async fn let_all_be_done(directory: &Path) {
    let store = SqliteStore::open(directory).await.unwrap();
    for task in store.tasks(&TaskQuery::default()).await.unwrap() {
        let finish = Change::ChangeTask { id: task.id, input: TaskInput::Finish };
        match store.commit(Actor::User, Timestamp(0), vec![finish]).await {
            Ok(_) | Err(CommitError::Refused { .. }) => {}
            Err(error) => panic!("{error:?}"),
        }
    }
}

async fn check(directory: &Path, told_claims: &[(String, i64)], told: &str) {
    let store = SqliteStore::open(directory).await.unwrap();
    assert_eq!(store.verify().await.unwrap(), Vec::<String>::new(), "{told}");
    let tasks = store.tasks(&TaskQuery::default()).await.unwrap();
    assert_eq!(tasks.len(), 60, "{told}");
    assert!(tasks.iter().all(Task::is_done), "{told}");
    assert!(tasks.iter().all(|task| !matches!(task.standing, Standing::Claimed(_))), "{told}");

    // What the log says was given out: each fence of a task once, and always a higher one.
    let mut last: HashMap<String, Fence> = HashMap::new();
    let mut given = HashMap::new();
    for event in store.events(&EventQuery::default()).await.unwrap() {
        if let EventKind::RunStarted { run } = event.kind {
            let before = last.insert(run.task.to_string(), run.fence);
            assert!(before.is_none_or(|before| before < run.fence), "{told}: task {}", run.task);
            given.insert((run.task.to_string(), run.fence.0), run.id);
        }
    }
    // What the workers say they were given: all of it is in the log, and none of it was given to two.
    let mut heard = std::collections::HashSet::new();
    for claim in told_claims {
        assert!(given.contains_key(claim), "{told}: {claim:?} was answered and is not there");
        assert!(heard.insert(claim), "{told}: {claim:?} was given twice");
    }
    assert!(!told_claims.is_empty(), "{told}");
}

fn random_seed() -> u64 {
    RandomState::new().hash_one(0_u8)
}

/// splitmix64: small, and the same everywhere.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

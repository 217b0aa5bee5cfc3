//! Whatever agents do to whatever sessions: a loop ends, no task is lost, and the store is sound.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use rehearsal_agent::{RunRequest, ScriptedAgent, ScriptedRun};
use rehearsal_core::{Budget, Exit, NewTask, Outcome, Priority, TimeLimit, Timestamp};
use rehearsal_store::TaskQuery;

use crate::stage::{BEGINNING, HOUR, Stage, block_on, task_id, titled};

/// A session: for each task its priority and which of the earlier ones it depends on.
#[derive(Debug, Clone)]
struct World {
    tasks: Vec<(Priority, BTreeSet<usize>)>,
    runs: Vec<Play>,
    iterations: u32,
    max_failures: u32,
    max_cost: Option<f64>,
    accept_complete: bool,
    loops: usize,
}

/// One run: how it ends, and which tasks it reports as done or blocked.
#[derive(Debug, Clone)]
struct Play {
    outcome: Option<Outcome>,
    text: &'static str,
    done: Option<usize>,
    blocked: Option<usize>,
    own_done: bool,
    cost: Option<f64>,
}

fn outcomes() -> impl Strategy<Value = Option<Outcome>> {
    let reason = || "chance".to_owned();
    let until = |hours: u32| Some(BEGINNING.plus(hours * HOUR));
    prop_oneof![
        6 => Just(None),
        1 => Just(Some(Outcome::NoChanges)),
        1 => Just(Some(Outcome::Approved)),
        1 => Just(Some(Outcome::Rejected { comment: reason() })),
        1 => Just(Some(Outcome::NeedsContinuation { reason: reason() })),
        1 => Just(Some(Outcome::Failed { reason: reason() })),
        1 => Just(Some(Outcome::BudgetReached { reason: reason() })),
        1 => Just(Some(Outcome::crashed(Exit::Signal(9)))),
        1 => Just(Some(Outcome::TimedOut { limit: TimeLimit::Total, after_ms: 1 })),
        1 => Just(Some(Outcome::ProtocolError { reason: reason() })),
        1 => Just(Some(Outcome::EmptyOutput)),
        1 => (0..9_u32).prop_map(move |hours| Some(Outcome::RateLimited { until: until(hours) })),
        1 => Just(Some(Outcome::QuotaExhausted { until: Some(Timestamp(5)) })),
        1 => Just(Some(Outcome::Overloaded)),
        1 => Just(Some(Outcome::AuthFailed { reason: reason() })),
        1 => Just(Some(Outcome::Cancelled)),
    ]
}

fn plays() -> impl Strategy<Value = Play> {
    let texts = prop_oneof![
        4 => Just("worked"),
        1 => Just("<promise>COMPLETE</promise>"),
        1 => Just("<promise>BLOCKED: help</promise>"),
        1 => Just("<promise>CONTINUE: go on</promise>"),
    ];
    let other = || proptest::option::weighted(0.3, 0..8_usize);
    let cost = proptest::option::of(Just(0.25));
    (outcomes(), texts, other(), other(), any::<bool>(), cost).prop_map(
        |(outcome, text, done, blocked, own_done, cost)| Play {
            outcome,
            text,
            done,
            blocked,
            own_done,
            cost,
        },
    )
}

fn worlds() -> impl Strategy<Value = World> {
    let priority = proptest::sample::select(Priority::ALL.to_vec());
    let earlier = proptest::collection::btree_set(0..8_usize, 0..3);
    (
        proptest::collection::vec((priority, earlier), 0..8),
        proptest::collection::vec(plays(), 1..12),
        0..25_u32,
        1..5_u32,
        proptest::option::of(Just(1.0)),
        any::<bool>(),
        1..4_usize,
    )
        .prop_map(|(tasks, runs, iterations, max_failures, max_cost, accept_complete, loops)| World {
            tasks,
            runs,
            iterations,
            max_failures,
            max_cost,
            accept_complete,
            loops,
        })
}

fn name(number: usize) -> String {
    let mut name = "task".to_owned();
    write!(name, "{number}").unwrap();
    name
}

fn scripted(play: &Play, request: &RunRequest) -> ScriptedRun {
    let mut run = ScriptedRun::done(play.text).progress("a line");
    if play.own_done {
        run = run.task_done(request.task.as_str());
    }
    if let Some(number) = play.done {
        run = run.task_done(name(number));
    }
    if let Some(number) = play.blocked {
        run = run.task_blocked(name(number), "chance");
    }
    if let Some(cost) = play.cost {
        run = run.cost(cost);
    }
    match &play.outcome {
        Some(outcome) => run.outcome(outcome.clone()),
        None => run,
    }
}

async fn live_through(world: World) {
    let mut stage = Stage::new().await;
    stage.options.iterations = world.iterations;
    stage.options.max_failures = world.max_failures;
    stage.max_cost = world.max_cost;
    stage.options.accept_complete = world.accept_complete;
    for (number, (priority, earlier)) in world.tasks.iter().enumerate() {
        let depends_on = earlier.iter().filter(|other| **other < number).map(|other| task_id(&name(*other)));
        let task = NewTask {
            priority: *priority,
            depends_on: depends_on.collect(),
            budget: Budget::default(),
            ..titled("chance")
        };
        stage.add(&name(number), task).await;
    }
    let (plays, calls) = (world.runs.clone(), AtomicUsize::new(0));
    let agent = Arc::new(ScriptedAgent::new().with_handler(move |request| {
        scripted(&plays[calls.fetch_add(1, Ordering::SeqCst) % plays.len()], request)
    }));
    for _ in 0..world.loops {
        let before = stage.runs().await.len();
        let summary = stage.run(&agent).await;
        assert!(summary.iterations <= world.iterations);
        assert_eq!(stage.runs().await.len() - before, summary.runs.len());
    }
    let tasks = stage.store.tasks(&TaskQuery::default()).await.unwrap();
    assert_eq!(tasks.len(), world.tasks.len(), "no task is lost");
    assert!(tasks.iter().all(|task| task.status() != "working"), "nobody works on them: {tasks:?}");
    assert_eq!(stage.store.unfinished_runs().await.unwrap(), []);
    assert_eq!(stage.store.verify().await.unwrap(), Vec::<String>::new());
}

#[test]
fn every_loop_ends_and_loses_nothing() {
    let seed = match std::env::var("SEED") {
        Ok(seed) => seed.parse().unwrap(),
        Err(_) => rehearsal_engine::random_bits(),
    };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let config = Config { cases: 60, failure_persistence: None, ..Config::default() };
    let random = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(config, random);
    let lived = runner.run(&worlds(), |world| {
        block_on(live_through(world));
        Ok(())
    });
    if let Err(error) = lived {
        panic!("SEED={seed}\n{error}");
    }
}

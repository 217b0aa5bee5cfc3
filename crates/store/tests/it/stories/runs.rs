use rehearsal_core::{NewTask, Outcome, RunEnd, Tokens};
use rehearsal_store::{Change, Cost, RunQuery, Scope};

use crate::bench::{Bench, how_it_ended, id, message, new_session, run_id, session_name, titled};

async fn run_ids(bench: &Bench, scope: Scope, limit: Option<u32>) -> Vec<String> {
    let runs = bench.store.runs(&RunQuery { scope, limit }).await.unwrap();
    runs.iter().map(|run| run.start.id.to_string()).collect()
}

/// Two runs of a task in a session and one of a task in none.
async fn three_runs(bench: &Bench) {
    bench.commit(vec![new_session("alpha")]).await.unwrap();
    bench.add("in", NewTask { session: Some(session_name("alpha")), ..titled("in") }).await.unwrap();
    bench.add("out", titled("out")).await.unwrap();
    for (task, run) in [("in", "run-1"), ("out", "run-2"), ("in", "run-3")] {
        let run = bench.claim(task, run).await.unwrap();
        bench.end(&run, Outcome::NoChanges).await.unwrap();
    }
}

pub(crate) async fn runs_come_newest_first(bench: &Bench) {
    three_runs(bench).await;
    assert_eq!(run_ids(bench, Scope::All, None).await, ["run-3", "run-2", "run-1"]);
    assert_eq!(run_ids(bench, Scope::All, Some(1)).await, ["run-3"]);
    assert_eq!(run_ids(bench, Scope::Session(session_name("alpha")), None).await, ["run-3", "run-1"]);
    assert_eq!(run_ids(bench, Scope::Task(id("out")), None).await, ["run-2"]);
    let found = bench.store.find_run("run-2").await.unwrap();
    assert_eq!(found.outcome(), Some(&Outcome::NoChanges));
    let ambiguous = bench.store.find_run("run").await;
    assert_eq!(message(ambiguous), "`run` could be any of these runs: run-1, run-2, run-3");
}

pub(crate) async fn a_run_ends_once(bench: &Bench) {
    three_runs(bench).await;
    let end = |run: &str| Change::EndRun {
        run: run_id(run),
        end: Box::new(how_it_ended(Outcome::Done, bench.now())),
    };
    assert_eq!(message(bench.commit(vec![end("run-1")]).await), "run `run-1` has already ended");
    assert_eq!(message(bench.commit(vec![end("run-9")]).await), "unknown run `run-9`");
}

pub(crate) async fn a_run_without_an_end_is_found(bench: &Bench) {
    three_runs(bench).await;
    assert!(bench.store.unfinished_runs().await.unwrap().is_empty());
    let run = bench.claim("in", "run-4").await.unwrap();
    assert_eq!(bench.store.unfinished_runs().await.unwrap(), [run]);
}

pub(crate) async fn what_is_unknown_is_not_zero(bench: &Bench) {
    three_runs(bench).await;
    let run = bench.claim("in", "run-4").await.unwrap();
    let tokens = Tokens { input: 900, cached: 500, output: 100 };
    let end = RunEnd {
        cost_usd: Some(0.25),
        tokens: Some(tokens),
        turns: Some(7),
        ..how_it_ended(Outcome::Done, bench.now())
    };
    bench.commit(vec![Change::EndRun { run: run.start.id.clone(), end: Box::new(end) }]).await.unwrap();
    let cost = bench.store.cost_of(&Scope::Session(session_name("alpha"))).await.unwrap();
    let expected = Cost { runs: 3, usd: 0.25, without_usd: 2, tokens, without_tokens: 2, turns: 7 };
    assert_eq!(cost, expected);
    let out = bench.store.cost_of(&Scope::Task(id("out"))).await.unwrap();
    assert_eq!((out.runs, out.without_usd), (1, 1));
    assert_eq!(bench.store.cost_of(&Scope::All).await.unwrap().runs, 4);

    let nonsense = bench.claim("out", "run-5").await.unwrap();
    let end = RunEnd { cost_usd: Some(f64::NAN), ..how_it_ended(Outcome::Done, bench.now()) };
    bench.commit(vec![Change::EndRun { run: nonsense.start.id.clone(), end: Box::new(end) }]).await.unwrap();
    assert_eq!(bench.store.cost_of(&Scope::Task(id("out"))).await.unwrap().without_usd, 2);
}

//! What a worker that died has left is put in order by the next loop, each run exactly once.

use std::sync::Arc;

use rehearsal_agent::{Agent, RunReport, RunRequest, ScriptedAgent, ScriptedRun};
use rehearsal_core::transition::TaskInput;
use rehearsal_core::{
    Actor, AgentName, Clock, EventKind, NewTask, Outcome, RunId, RunStart, Standing, WorkerId,
};
use rehearsal_engine::{WorkEnd, WorkEvent};
use rehearsal_store::{Change, EventQuery};
use tokio_util::sync::CancellationToken;

use crate::stage::{Stage, change, new_session, play, session, titled};

/// A `run` claims the task, which is the next of its session, and dies while its agent works.
async fn dies_during(stage: &Stage, run: &str, task: &str) {
    let (worker, at) = (WorkerId::new("the-dead-one").unwrap(), stage.clock.now());
    let session = stage.task(task).await.session;
    let claimed = stage.claim("the-dead-one", run, session.clone()).await;
    assert_eq!(claimed.id.as_str(), task);
    let start = RunStart {
        id: RunId::new(run).unwrap(),
        task: claimed.id,
        session,
        fence: claimed.fence,
        agent: AgentName::new("implementer").unwrap(),
        driver: "scripted".into(),
        model: None,
        worker: worker.clone(),
        iteration: 1,
        started_at: at,
    };
    stage.store.commit(Actor::Worker(worker), at, vec![Change::StartRun(start)]).await.unwrap();
    // What a process leaves that was killed: its trace, without a lock.
    std::fs::create_dir_all(stage.directory().join("workers")).unwrap();
    std::fs::write(stage.directory().join("workers/the-dead-one"), "run").unwrap();
}

/// The agent had come to its end: its report is on the disk, and not yet in the store.
async fn had_ended(stage: &Stage, run: &str, scripted: ScriptedRun) {
    let agent = Arc::new(ScriptedAgent::new().then(scripted));
    let request = stage.worker(&agent).preview(&stage.task("parse").await).await.unwrap();
    let report: RunReport = agent.run(request, Arc::new(|_| {}), CancellationToken::new()).await;
    let directory = stage.directory().join("runs").join(run);
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("outcome.json"), serde_json::to_vec(&report).unwrap()).unwrap();
}

fn recovered(stage: &Stage) -> Vec<(String, Outcome)> {
    let events = stage.told().into_iter().filter_map(|event| match event {
        WorkEvent::Recovered { run, outcome, .. } => Some((run.to_string(), outcome)),
        _ => None,
    });
    events.collect()
}

async fn ends_in_the_log(stage: &Stage, run: &str) -> usize {
    let about = EventQuery { run: Some(RunId::new(run).unwrap()), ..EventQuery::default() };
    let events = stage.store.events(&about).await.unwrap();
    events.iter().filter(|event| matches!(event.kind, EventKind::RunEnded { .. })).count()
}

#[test]
fn a_run_without_a_report_costs_its_task_nothing() {
    play(async |stage| {
        stage.tasks(&["parse"]).await;
        dies_during(stage, "lost1", "parse").await;
        let agent = Arc::new(ScriptedAgent::new().then(ScriptedRun::done("").task_done("parse")));
        assert_eq!(stage.run(&agent).await.end, WorkEnd::AllDone);
        assert_eq!(recovered(stage), [("lost1".to_owned(), Outcome::Cancelled)]);
        assert_eq!(stage.task("parse").await.attempts, 1);
        let end = stage.runs().await[0].end.clone().unwrap();
        assert_eq!(end.verdict.because, ["the process that ran it died before it ended"]);
    });
}

#[test]
fn a_run_that_had_ended_counts_as_it_ended() {
    play(async |stage| {
        stage.tasks(&["parse", "print"]).await;
        dies_during(stage, "ended1", "parse").await;
        let run = ScriptedRun::done("").task_done("parse").task_done("print").progress("both").cost(0.5);
        had_ended(stage, "ended1", run).await;
        let agent = Arc::new(ScriptedAgent::new());
        let summary = stage.run(&agent).await;
        assert_eq!(summary.end, WorkEnd::NothingToDo);
        agent.assert_call_count(0);
        assert_eq!(recovered(stage), [("ended1".to_owned(), Outcome::Done)]);
        assert_eq!((summary.done_tasks, summary.open_tasks), (1, 0));
        assert_eq!(stage.runs().await[0].end.as_ref().unwrap().cost_usd, Some(0.5));
        assert_eq!(stage.store.progress(&session("work"), 10).await.unwrap().len(), 1);
    });
}

#[test]
fn a_report_that_was_half_written_is_no_report() {
    play(async |stage| {
        stage.options.iterations = 0;
        stage.tasks(&["parse"]).await;
        dies_during(stage, "half1", "parse").await;
        had_ended(stage, "half1", ScriptedRun::done("").task_done("parse")).await;
        let path = stage.directory().join("runs/half1/outcome.json");
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
        stage.run(&Arc::new(ScriptedAgent::new())).await;
        assert_eq!(recovered(stage), [("half1".to_owned(), Outcome::Cancelled)]);
        assert_eq!(stage.task("parse").await.standing, Standing::Ready);
    });
}

#[test]
fn each_run_is_put_in_order_exactly_once() {
    play(async |stage| {
        stage.options.iterations = 0;
        stage.commit(vec![new_session("other")]).await;
        stage.tasks(&["parse"]).await;
        stage.add("theirs", NewTask { session: Some(session("other")), ..titled("theirs") }).await;
        dies_during(stage, "first", "parse").await;
        dies_during(stage, "second", "theirs").await;
        had_ended(stage, "first", ScriptedRun::done("half")).await;
        let agent = Arc::new(ScriptedAgent::new());
        stage.run(&agent).await;
        stage.run(&agent).await;
        let once = [("first".to_owned(), Outcome::Done), ("second".to_owned(), Outcome::Cancelled)];
        assert_eq!(recovered(stage), once);
        for run in ["first", "second"] {
            assert_eq!(ends_in_the_log(stage, run).await, 1);
        }
        assert_eq!(stage.task("theirs").await.standing, Standing::Ready);
    });
}

#[test]
fn a_task_that_a_person_finished_meanwhile_stays_done() {
    play(async |stage| {
        stage.tasks(&["parse"]).await;
        dies_during(stage, "late1", "parse").await;
        had_ended(stage, "late1", ScriptedRun::done("").task_done("parse")).await;
        stage.commit(vec![change("parse", TaskInput::Finish)]).await;
        assert_eq!(stage.run(&Arc::new(ScriptedAgent::new())).await.end, WorkEnd::NothingToDo);
        assert_eq!(stage.warnings().await, ["task_taken_away task=parse"]);
        assert_eq!(ends_in_the_log(stage, "late1").await, 1);
    });
}

#[test]
fn a_limit_that_a_lost_run_had_met_is_kept_to() {
    play(async |stage| {
        stage.options.max_wait = crate::stage::MINUTE;
        stage.tasks(&["parse", "print"]).await;
        dies_during(stage, "limited1", "parse").await;
        let until = stage.clock.now().plus(crate::stage::HOUR);
        had_ended(stage, "limited1", ScriptedRun::of(Outcome::RateLimited { until: Some(until) })).await;
        let agent = Arc::new(ScriptedAgent::new());
        let end = stage.run(&agent).await.end;
        assert_eq!(end, WorkEnd::WaitTooLong { wait: "rate_limited".into(), until });
        agent.assert_call_count(0);
    });
}

#[test]
fn a_report_that_cannot_be_kept_is_told_and_counts_all_the_same() {
    play(async |stage| {
        stage.tasks(&["parse"]).await;
        // Where the report would go is a directory that is not empty.
        let in_the_way = |request: &RunRequest| {
            std::fs::create_dir_all(request.run_dir.join("outcome.json/in the way")).unwrap();
        };
        let run = ScriptedRun::done("").task_done("parse").progress("parsed").cost(0.5).effect(in_the_way);
        let summary = stage.run(&Arc::new(ScriptedAgent::new().then(run))).await;
        assert_eq!((summary.end, summary.done_tasks), (WorkEnd::AllDone, 1));
        let runs = stage.runs().await;
        assert_eq!(runs[0].end.as_ref().unwrap().cost_usd, Some(0.5));
        assert_eq!(stage.store.progress(&session("work"), 10).await.unwrap()[0].text, "parsed");
        let [warning] = &stage.warnings().await[..] else { panic!("{:?}", stage.warnings().await) };
        assert!(warning.starts_with("report_not_saved error="), "{warning}");
        assert!(warning.contains("Is a directory"), "{warning}");
    });
}

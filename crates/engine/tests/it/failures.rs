//! Whose failure it is decides what it costs and when the loop gives up.

use std::sync::Arc;

use rehearsal_agent::{ScriptedAgent, ScriptedRun};
use rehearsal_core::{Exit, Outcome, ReportedDecision, ResultFile, Standing, TimeLimit, WireErrorKind};
use rehearsal_engine::WorkEnd;

use crate::stage::play;

fn failed() -> ScriptedRun {
    ScriptedRun::of(Outcome::Failed { reason: "no idea".into() })
}

#[test]
fn what_only_a_hand_can_mend_stops_the_line_after_two_and_costs_no_attempt() {
    let hard = [
        Outcome::AuthFailed { reason: "invalid key".into() },
        Outcome::PermissionDenied { reason: "`Bash` was refused (rm)".into() },
        Outcome::AgentMissing { program: "claude".into() },
        Outcome::SandboxUnavailable { reason: "no user namespaces".into() },
        Outcome::DiskFull { path: "/tmp".into() },
    ];
    for outcome in hard {
        play(async |stage| {
            stage.tasks(&["parse", "print"]).await;
            let run = ScriptedRun::of(outcome.clone());
            let agent = Arc::new(ScriptedAgent::new().then(run.clone()).then(run));
            let summary = stage.run(&agent).await;
            assert_eq!(summary.end, WorkEnd::LineStopped { cause: outcome.clone() });
            agent.assert_call_count(2);
            let task = stage.task("parse").await;
            assert_eq!((task.attempts, task.last_outcome.as_ref()), (0, Some(&outcome)));
            assert_eq!(stage.task("print").await.attempts, 0);
        });
    }
}

#[test]
fn once_it_is_mended_the_next_loop_goes_on_at_once() {
    play(async |stage| {
        stage.tasks(&["parse"]).await;
        let auth = || ScriptedRun::error(WireErrorKind::Auth, "invalid key");
        let agent = Arc::new(
            ScriptedAgent::new().then(auth()).then(auth()).then(ScriptedRun::done("done").task_done("parse")),
        );
        let cause = Outcome::AuthFailed { reason: "invalid key".into() };
        assert_eq!(stage.run(&agent).await.end, WorkEnd::LineStopped { cause });
        assert_eq!(stage.run(&agent).await.end, WorkEnd::AllDone);
        assert_eq!(stage.waits(), [], "a key has no hour");
    });
}

#[test]
fn one_failure_of_the_system_between_good_runs_stops_nothing() {
    play(async |stage| {
        stage.tasks(&["parse"]).await;
        let auth = || ScriptedRun::error(WireErrorKind::Auth, "expired");
        let agent = Arc::new(
            ScriptedAgent::new()
                .then(auth())
                .then(ScriptedRun::done("half"))
                .then(auth())
                .then(ScriptedRun::done("done").task_done("parse")),
        );
        assert_eq!(stage.run(&agent).await.end, WorkEnd::AllDone);
        assert_eq!(stage.task("parse").await.attempts, 2);
    });
}

#[test]
fn failures_in_a_row_end_the_loop() {
    play(async |stage| {
        stage.tasks(&["parse"]).await;
        let timed_out = Outcome::TimedOut { limit: TimeLimit::Idle, after_ms: 5_000 };
        let agent = Arc::new(
            ScriptedAgent::new()
                .then(failed())
                .then(ScriptedRun::crashes(Exit::Signal(11)))
                .then(ScriptedRun::of(timed_out.clone())),
        );
        let summary = stage.run(&agent).await;
        assert_eq!(summary.end, WorkEnd::TooManyFailures { last: timed_out });
        assert_eq!(stage.task("parse").await.attempts, 3);
    });
}

#[test]
fn a_success_begins_the_count_anew() {
    play(async |stage| {
        stage.options.max_failures = 2;
        stage.tasks(&["parse", "print"]).await;
        let agent = Arc::new(
            ScriptedAgent::new()
                .then(failed())
                .then(ScriptedRun::done("half"))
                .then(failed())
                .then(ScriptedRun::done("done").task_done("parse"))
                .then(failed())
                .then(ScriptedRun::done("done").task_done("print")),
        );
        assert_eq!(stage.run(&agent).await.end, WorkEnd::AllDone);
    });
}

#[test]
fn a_task_that_fails_too_often_is_left_behind_and_the_others_go_on() {
    play(async |stage| {
        stage.options.max_failures = 9;
        stage.tasks(&["parse", "print"]).await;
        let agent = Arc::new(ScriptedAgent::new().with_handler(|request| match request.task.as_str() {
            "parse" => failed(),
            _ => ScriptedRun::done("done").task_done("print"),
        }));
        let summary = stage.run(&agent).await;
        assert_eq!(summary.end, WorkEnd::SomeFailed { failed: 1 });
        agent.assert_call_count(5);
        let task = stage.task("parse").await;
        assert_eq!((task.status(), task.attempts), ("failed", 4));
    });
}

#[test]
fn a_decision_that_nobody_asked_for_counts_as_a_crash() {
    play(async |stage| {
        stage.options.iterations = 1;
        stage.tasks(&["parse"]).await;
        let file = ResultFile { decision: Some(ReportedDecision::Approve), ..ResultFile::default() };
        let agent = Arc::new(ScriptedAgent::new().then(ScriptedRun::done("fine").result_file(file)));
        stage.run(&agent).await;
        let task = stage.task("parse").await;
        assert_eq!(task.standing, Standing::Ready);
        assert_eq!(task.edges_taken.get("todo/crashed"), Some(&1));
        assert_eq!(stage.warnings().await, [] as [&str; 0]);
        assert_eq!(stage.runs().await[0].outcome(), Some(&Outcome::Approved));
    });
}

#[test]
fn a_task_that_used_up_its_budget_waits_for_a_greater_one() {
    play(async |stage| {
        stage.options.iterations = 3;
        stage.tasks(&["parse"]).await;
        let spent = Outcome::BudgetReached { reason: "tokens".into() };
        let agent = Arc::new(ScriptedAgent::new().then(ScriptedRun::of(spent)));
        assert!(stage.run(&agent).await.is_spent);
        assert!(matches!(stage.task("parse").await.standing, Standing::Waiting(_)));
    });
}

#[test]
fn every_other_end_leads_somewhere() {
    let ends = [
        Outcome::NoChanges,
        Outcome::NeedsContinuation { reason: "turns".into() },
        Outcome::Violated { rule: "dropped commits".into() },
        Outcome::ProtocolError { reason: "broken".into() },
        Outcome::EmptyOutput,
        Outcome::crashed(Exit::Code(1)),
    ];
    for outcome in ends {
        play(async |stage| {
            stage.options.iterations = 1;
            stage.tasks(&["parse"]).await;
            stage.run(&Arc::new(ScriptedAgent::new().then(ScriptedRun::of(outcome.clone())))).await;
            let task = stage.task("parse").await;
            assert_eq!((&task.standing, task.last_outcome.as_ref()), (&Standing::Ready, Some(&outcome)));
            assert_eq!(task.attempts, u32::from(outcome.name().costs_attempt()));
            assert_eq!(stage.warnings().await, Vec::<String>::new());
        });
    }
}

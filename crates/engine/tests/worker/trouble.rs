//! Failures that are nobody's, the task's, or the system's.

use rehearsal_agent::{ScriptedAgent, ScriptedRun};
use rehearsal_core::guard::AgentLimits;
use rehearsal_core::{AgentName, Exit, HoldCause, Lane, NewTask, Outcome, OutcomeName, Standing};

use rehearsal_engine::StopSwitch;

use crate::studio::{play, writes};

#[test]
fn an_agent_that_fails_fails_its_task() {
    play(async |studio| {
        let failed = Outcome::Failed { reason: "cannot parse the requirements".into() };
        studio.agent("implementer", ScriptedAgent::new().then(ScriptedRun::of(failed)));
        studio.add("t1", "pull-request", NewTask::default()).await;
        studio.work().await;
        assert_eq!(studio.way_of("t1"), ["incoming -> failed"]);
    });
}

#[test]
fn an_agent_that_crashes_is_tried_again_and_then_given_up() {
    play(async |studio| {
        let agent = studio
            .agent("implementer", ScriptedAgent::new().with_handler(|_| ScriptedRun::crashes(Exit::Code(1))));
        studio.add("t1", "pull-request", NewTask::default()).await;
        studio.work().await;
        agent.assert_call_count(4);
        let task = studio.task("t1").await;
        assert_eq!((task.status(), task.attempts), ("failed", 4));
    });
}

#[test]
fn an_agent_that_may_not_begin_again_yet_is_waited_for() {
    play(async |studio| {
        let interval = std::time::Duration::from_millis(200);
        let limits = AgentLimits { interval, ..AgentLimits::default() };
        studio.limits.agents.insert(AgentName::new("implementer").unwrap(), limits);
        let failed = Outcome::Failed { reason: "no idea".into() };
        let agent = studio.agent(
            "implementer",
            ScriptedAgent::new().with_handler(move |_| ScriptedRun::of(failed.clone())),
        );
        for id in ["t1", "t2"] {
            studio.add(id, "pull-request", NewTask::default()).await;
        }
        studio.work().await;
        agent.assert_call_count(2);
    });
}

#[test]
fn a_reviewer_who_crashes_has_not_rejected() {
    play(async |studio| {
        studio.agent("implementer", ScriptedAgent::new().then(writes("b.txt", "two\n")));
        studio.agent(
            "gatekeeper",
            ScriptedAgent::new()
                .then(ScriptedRun::crashes(Exit::Signal(9)))
                .then(ScriptedRun::of(Outcome::Done))
                .then(ScriptedRun::of(Outcome::Approved)),
        );
        studio.add("t1", "pull-request", NewTask::default()).await;
        studio.work().await;
        let task = studio.task("t1").await;
        assert_eq!((task.status(), task.rejections), ("done", 0));
        assert_eq!(studio.way_of("t1")[1..3], ["provisional -> provisional", "provisional -> provisional"]);
    });
}

#[test]
fn a_missing_agent_stops_its_line_after_the_second_task_and_fails_nobody() {
    play(async |studio| {
        let missing = Outcome::AgentMissing { program: "claude".into() };
        let agent = studio.agent(
            "implementer",
            ScriptedAgent::new().with_handler(move |_| ScriptedRun::of(missing.clone())),
        );
        for id in ["t1", "t2", "t3"] {
            studio.add(id, "pull-request", NewTask::default()).await;
        }
        let summary = studio.work().await;
        agent.assert_call_count(2);
        let [(lane, hold)] = summary.held.as_slice() else { panic!("{:?}", summary.held) };
        assert_eq!(lane.to_string(), "agent:implementer");
        assert_eq!(hold.cause, HoldCause::System(OutcomeName::AgentMissing));
        assert!(hold.reason.starts_with("agent_missing: "), "{}", hold.reason);
        for id in ["t1", "t2", "t3"] {
            let task = studio.task(id).await;
            assert_eq!(task.attempts, 0, "{id} was not blamed");
            assert!(!task.is_ended());
        }
    });
}

#[test]
fn a_quota_holds_its_agent_until_then() {
    play(async |studio| {
        let until = rehearsal_core::Timestamp(i64::MAX / 2);
        studio.agent(
            "implementer",
            ScriptedAgent::new()
                .with_handler(move |_| ScriptedRun::of(Outcome::QuotaExhausted { until: Some(until) })),
        );
        studio.add("t1", "pull-request", NewTask::default()).await;
        studio.add("t2", "pull-request", NewTask::default()).await;
        let stop = studio.stop.after_iteration.clone();
        let events = std::sync::Arc::clone(&studio.events);
        let worker = studio.worker().await;
        // A worker would wait for half an eternity: it is stopped when it says so.
        let watch = async {
            while !events.lock().unwrap().iter().any(|event| matches!(event, rehearsal_engine::WorkEvent::Waiting { until: Some(at), .. } if *at == until)) {
                tokio::task::yield_now().await;
            }
            stop.cancel();
        };
        let (summary, ()) = tokio::join!(worker.run(), watch);
        let summary = summary.unwrap();
        assert_eq!(summary.runs.len(), 1, "the second task was not tried meanwhile");
        assert_eq!(summary.held[0].0, Lane::Agent(rehearsal_core::AgentName::new("implementer").unwrap()));
        assert!(matches!(studio.task("t2").await.standing, Standing::Ready));
    });
}

#[test]
fn a_remote_that_is_gone_costs_the_task_nothing_and_the_work_is_kept() {
    play(async |studio| {
        let (remote, away) = (studio.remote(), studio.remote().with_file_name("away.git"));
        let (from, to) = (remote.clone(), away.clone());
        let agent = studio.agent(
            "implementer",
            ScriptedAgent::new().then(writes("b.txt", "two\n").effect(move |request| {
                fs_err::write(request.working_dir.join("b.txt"), "two\n").unwrap();
                fs_err::rename(&from, &to).unwrap();
            })),
        );
        studio.approving();
        studio.add("t1", "pull-request", NewTask::default()).await;
        let worker = studio.worker().await;
        let stop = studio.stop.after_iteration.clone();
        let events = std::sync::Arc::clone(&studio.events);
        let watch = async {
            while !events
                .lock()
                .unwrap()
                .iter()
                .any(|event| matches!(event, rehearsal_engine::WorkEvent::Waiting { .. }))
            {
                tokio::task::yield_now().await;
            }
            stop.cancel();
        };
        let (summary, ()) = tokio::join!(worker.run(), watch);
        summary.unwrap();
        let task = studio.task("t1").await;
        assert_eq!(
            (task.attempts, task.pending.as_ref().unwrap().next),
            (1, 1),
            "its agent is done, `rebase` waits"
        );
        let Standing::Waiting(wait) = &task.standing else { panic!("{:?}", task.standing) };
        assert!(wait.reason.starts_with("rebase: "), "{}", wait.reason);

        fs_err::rename(&away, &remote).unwrap();
        let unblock = rehearsal_core::transition::TaskInput::Unblock;
        studio.commit(vec![rehearsal_store::Change::ChangeTask { id: task.id, input: unblock }]).await;
        studio.stop = StopSwitch::default();
        studio.work().await;
        assert_eq!(studio.status("t1").await, "done");
        agent.assert_call_count(1);
    });
}

#[test]
fn a_write_to_the_main_checkout_is_told() {
    play(async |studio| {
        let root = studio.root();
        studio.agent(
            "implementer",
            ScriptedAgent::new().then(writes("b.txt", "two\n").effect(move |request| {
                fs_err::write(request.working_dir.join("b.txt"), "two\n").unwrap();
                fs_err::write(root.join("stray.txt"), "oops\n").unwrap();
            })),
        );
        studio.approving();
        studio.add("t1", "pull-request", NewTask::default()).await;
        studio.work().await;
        let warnings = studio.warnings();
        assert!(
            warnings.iter().any(|text| text.starts_with(r#"checkout_changed files=["stray.txt"] run="#)),
            "{warnings:?}"
        );
        assert_eq!(studio.status("t1").await, "done");
    });
}

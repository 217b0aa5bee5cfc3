//! Stopping a loop: after the iteration, or now.

use std::sync::Arc;

use rehearsal_agent::{ScriptedAgent, ScriptedRun};
use rehearsal_core::{Outcome, Standing, WireErrorKind};
use rehearsal_engine::{WorkEnd, WorkEvent};

use crate::stage::{HOUR, play};

#[test]
fn the_soft_stop_finishes_the_iteration() {
    play(async |stage| {
        stage.tasks(&["parse", "print"]).await;
        let stop = stage.stop.after_iteration.clone();
        let run = ScriptedRun::done("").task_done("parse").effect(move |_| stop.cancel());
        let agent = Arc::new(ScriptedAgent::new().then(run));
        let summary = stage.run(&agent).await;
        assert_eq!(summary.end, WorkEnd::Interrupted);
        agent.assert_call_count(1);
        assert_eq!((summary.done_tasks, summary.open_tasks), (1, 1));
    });
}

#[test]
fn the_hard_stop_ends_the_agent_and_loses_nothing() {
    play(async |stage| {
        stage.tasks(&["parse"]).await;
        let agent = Arc::new(ScriptedAgent::new().then(ScriptedRun::never_ends()));
        let worker = stage.worker(&agent);
        let stopping = async {
            // The run is under way once the agent was called.
            while agent.calls().is_empty() {
                tokio::task::yield_now().await;
            }
            stage.stop.now.cancel();
        };
        let (summary, ()) = tokio::join!(worker.run(), stopping);
        assert_eq!(summary.unwrap().end, WorkEnd::Interrupted);
        let task = stage.task("parse").await;
        assert_eq!((task.standing, task.attempts), (Standing::Ready, 0));
        assert_eq!(stage.runs().await[0].outcome(), Some(&Outcome::Cancelled));
    });
}

#[test]
fn either_stop_ends_a_wait() {
    for soft in [true, false] {
        play(async |stage| {
            stage.tasks(&["parse"]).await;
            let limit = WireErrorKind::RateLimit { until: Some(crate::stage::BEGINNING.plus(HOUR)) };
            let agent = Arc::new(ScriptedAgent::new().then(ScriptedRun::error(limit, "slow down")));
            let mut worker = stage.worker(&agent);
            let stop = if soft { stage.stop.after_iteration.clone() } else { stage.stop.now.clone() };
            worker.reporter = Arc::new(move |event| {
                if matches!(event, WorkEvent::Waiting { .. }) {
                    stop.cancel();
                }
            });
            assert_eq!(worker.run().await.unwrap().end, WorkEnd::Interrupted);
            agent.assert_call_count(1);
            assert!(matches!(stage.task("parse").await.standing, Standing::Waiting(_)), "the wait is kept");
        });
    }
}

#[test]
fn a_loop_that_is_stopped_before_it_begins_calls_nobody() {
    play(async |stage| {
        stage.tasks(&["parse"]).await;
        stage.stop.now.cancel();
        let agent = Arc::new(ScriptedAgent::new());
        assert_eq!(stage.run(&agent).await.end, WorkEnd::Interrupted);
        agent.assert_call_count(0);
    });
}

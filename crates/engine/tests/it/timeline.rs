//! All that a reporter is told, in order.

use std::sync::Arc;

use insta::assert_snapshot;
use rehearsal_agent::{ScriptedAgent, ScriptedRun};
use rehearsal_core::{Activity, Commit, GitFacts, Tokens, WireErrorKind};
use rehearsal_engine::{SessionStart, WorkEvent};

use crate::stage::{BEGINNING, MINUTE, numbered, play};

fn line(event: &WorkEvent) -> String {
    match event {
        WorkEvent::WorkStarted { session: Some(start), .. } => {
            let SessionStart { session, agent, open_tasks, iterations } = start;
            format!("loop of {session} with {agent}: {open_tasks} open, at most {iterations} iterations")
        }
        WorkEvent::Claimed { iteration: Some(iteration), run, task, title, .. } => {
            format!("iteration {iteration}: {run} for {task} ({title})")
        }
        WorkEvent::AgentActed { run, activity, .. } => format!("  {run} {activity:?}"),
        WorkEvent::RunEnded { run, outcome, commits, files_changed, cost_usd, duration_ms, .. } => {
            format!(
                "{run} ended with {outcome} \
                 ({commits} commits, {files_changed} files, {cost_usd:?}, {duration_ms} ms)"
            )
        }
        WorkEvent::TaskReported { task, title, status } => format!("{task} ({title}) is {status}"),
        WorkEvent::CompleteRefused { open_tasks } => format!("COMPLETE refused: {open_tasks} open"),
        WorkEvent::Waiting { reason: Some(reason), until: Some(until) } => {
            format!("waiting {} s: {reason}", until.since(BEGINNING).as_secs())
        }
        WorkEvent::Warning { notice } => format!("warning: {notice}"),
        WorkEvent::Moved { task, status, .. } => format!("{task} is now {status}"),
        WorkEvent::Held { lane, hold } => format!("{lane} is held: {}", hold.reason),
        other => format!("{other:?}"),
    }
}

/// The id that is nothing but this digit.
fn oid(digit: &str) -> rehearsal_core::Oid {
    rehearsal_core::Oid::new(&digit.repeat(40)).unwrap()
}

#[test]
fn a_reporter_is_told_of_everything_in_order() {
    play(async |stage| {
        stage.tasks(&["parse", "print"]).await;
        let clock = Arc::clone(&stage.clock);
        let facts = GitFacts {
            head_before: Some(oid("a")),
            head_after: Some(oid("b")),
            commits: vec![Commit { id: oid("b"), subject: "Parse".into() }],
            files_changed: vec!["parse.rs".into(), "lib.rs".into()],
            uncommitted: false,
        };
        let tokens = Tokens { input: 100, output: 20, ..Tokens::default() };
        let limit = WireErrorKind::RateLimit { until: Some(BEGINNING.plus(15 * MINUTE)) };
        let agent = Arc::new(
            ScriptedAgent::new()
                .then(
                    ScriptedRun::done("<promise>COMPLETE</promise>")
                        .session("s1")
                        .activity(Activity::Text { text: "hm".into() })
                        .git(facts)
                        .tokens(tokens)
                        .cost(0.25)
                        .task_done("parse")
                        .task_done("nonsense")
                        .effect(move |_| clock.advance(MINUTE)),
                )
                .then(ScriptedRun::error(limit, "slow down"))
                .then(ScriptedRun::done("printed").task_done("print")),
        );
        let summary = stage.run(&agent).await;
        let runs = stage.runs().await;
        let is_step =
            |event: &WorkEvent| matches!(event, WorkEvent::StepStarted { .. } | WorkEvent::StepDone { .. });
        let events = stage.told().into_iter().filter(|event| !is_step(event));
        let told: Vec<String> = events.map(|event| numbered(&runs, line(&event))).collect();
        assert_snapshot!(told.join("\n"), @r#"
        loop of work with implementer: 2 open, at most 10 iterations
        iteration 1: #1 for parse (parse)
          #1 Started { session_id: Some("s1"), model: None }
          #1 Text { text: "hm" }
          #1 Text { text: "<promise>COMPLETE</promise>" }
          #1 Usage { tokens: Tokens { input: 100, cached: 0, output: 20 }, cost_usd: Some(0.25) }
        warning: reported_task_ignored error=there is no task `nonsense` run=#1 task=nonsense
        #1 ended with done (1 commits, 2 files, Some(0.25), 60000 ms)
        warning: nothing_tested
        parse (parse) is done
        parse is now done
        COMPLETE refused: 1 open
        iteration 2: #2 for print (print)
          #2 Started { session_id: None, model: None }
        #2 ended with rate_limited (0 commits, 0 files, None, 0 ms)
        agent:implementer is held: rate_limited
        print is now waiting
        waiting 900 s: rate_limited
        iteration 3: #3 for print (print)
          #3 Started { session_id: None, model: None }
          #3 Text { text: "printed" }
        #3 ended with done (0 commits, 0 files, None, 0 ms)
        print (print) is done
        print is now done
        "#);
        let tasks: Vec<String> =
            summary.tasks.iter().map(|task| format!("{} {}", task.id, task.status())).collect();
        assert_eq!(tasks, ["parse done", "print done"]);
        let of_store: Vec<_> = runs.iter().map(|run| run.start.id.clone()).collect();
        assert_eq!(summary.runs, of_store);
        assert_eq!((summary.iterations, summary.done_tasks, summary.open_tasks), (3, 2, 0));
        assert_eq!((summary.cost_usd, summary.runs_without_cost), (Some(0.25), 2));
        assert_eq!(summary.tokens, Some(tokens));
        assert_eq!(summary.duration_ms, 15 * 60 * 1000);
    });
}

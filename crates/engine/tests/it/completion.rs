//! When a loop is over: what the tests of juggle's agent loop ask for, and COMPLETE, which has to be true.

use std::sync::Arc;

use rehearsal_agent::{ScriptedAgent, ScriptedRun, WhenEmpty};
use rehearsal_core::config::PermissionMode;
use rehearsal_core::transition::TaskInput;
use rehearsal_core::{Exit, Outcome, ResultFile, ResultOutcome};
use rehearsal_engine::{WorkEnd, WorkEvent};

use crate::stage::{change, play};

const COMPLETE: &str = "Working... <promise>COMPLETE</promise>";

#[test]
fn complete_ends_the_loop_when_all_is_done() {
    play(async |stage| {
        stage.tasks(&["parse"]).await;
        let agent = Arc::new(ScriptedAgent::new().then(ScriptedRun::done(COMPLETE).task_done("parse")));
        let summary = stage.run(&agent).await;
        assert_eq!(summary.end, WorkEnd::AllDone);
        agent.assert_call_count(1);
        assert_eq!(stage.status("parse").await, "done");
    });
}

#[test]
fn complete_with_open_tasks_is_refused_and_the_next_prompt_says_so() {
    play(async |stage| {
        stage.tasks(&["parse", "print"]).await;
        let agent = Arc::new(
            ScriptedAgent::new()
                .then(ScriptedRun::done(COMPLETE).task_done("parse"))
                .then(ScriptedRun::done("the rest").task_done("print")),
        );
        let summary = stage.run(&agent).await;
        assert_eq!(summary.end, WorkEnd::AllDone);
        agent.assert_call_count(2);
        agent.assert_prompt_contains(
            1,
            "NOTE: the last iteration said COMPLETE, which was refused: 1 task is not done. \
             A task counts as done only when it is reported with `rehearsal task done ID`.",
        );
        assert!(stage.told().contains(&WorkEvent::CompleteRefused { open_tasks: 1 }));
    });
}

#[test]
fn the_agents_word_can_be_taken() {
    play(async |stage| {
        stage.options.accept_complete = true;
        stage.tasks(&["parse", "print"]).await;
        let agent = Arc::new(ScriptedAgent::new().when_empty(WhenEmpty::Complete));
        let summary = stage.run(&agent).await;
        assert_eq!(summary.end, WorkEnd::Complete { open_tasks: 2 });
        agent.assert_call_count(1);
        assert_eq!(stage.status("parse").await, "todo", "its word is taken for the loop, not for the task");
    });
}

#[test]
fn complete_does_not_hide_a_task_that_failed() {
    play(async |stage| {
        stage.options.max_failures = 10;
        stage.tasks(&["parse", "print"]).await;
        let crash = || ScriptedRun::crashes(Exit::Code(1));
        let agent = Arc::new(
            ScriptedAgent::new()
                .then(crash())
                .then(crash())
                .then(crash())
                .then(crash())
                .then(ScriptedRun::done(COMPLETE).task_done("print")),
        );
        let summary = stage.run(&agent).await;
        assert_eq!(summary.end, WorkEnd::SomeFailed { failed: 1 });
        assert_eq!(stage.status("parse").await, "failed");
    });
}

#[test]
fn blocked_ends_the_loop_with_its_reason() {
    play(async |stage| {
        stage.tasks(&["parse", "print"]).await;
        let agent = Arc::new(
            ScriptedAgent::new()
                .then(ScriptedRun::done("Starting..."))
                .then(ScriptedRun::done("<promise>BLOCKED: npm not found</promise>")),
        );
        let summary = stage.run(&agent).await;
        assert_eq!(summary.end, WorkEnd::Blocked { why: "npm not found".into() });
        agent.assert_call_count(2);
        assert_eq!(stage.status("parse").await, "blocked");
        assert_eq!(stage.status("print").await, "todo");
    });
}

#[test]
fn a_task_that_was_done_before_the_agent_was_blocked_is_done() {
    play(async |stage| {
        stage.tasks(&["parse", "print"]).await;
        let blocked = ScriptedRun::done("<promise>BLOCKED: no printer</promise>").task_done("parse");
        let summary = stage.run(&Arc::new(ScriptedAgent::new().then(blocked))).await;
        assert_eq!(summary.end, WorkEnd::Blocked { why: "no printer".into() });
        assert_eq!(stage.status("parse").await, "done");
    });
}

#[test]
fn it_iterates_until_all_is_complete() {
    play(async |stage| {
        stage.tasks(&["one", "two", "three"]).await;
        let agent = Arc::new(
            ScriptedAgent::new()
                .then(ScriptedRun::done("Task 1 done").task_done("one"))
                .then(ScriptedRun::done("Task 2 done").task_done("two"))
                .then(ScriptedRun::done("Half of task 3 done"))
                .then(ScriptedRun::done(COMPLETE).task_done("three")),
        );
        let summary = stage.run(&agent).await;
        assert_eq!(summary.end, WorkEnd::AllDone);
        agent.assert_call_count(4);
        agent.assert_all_played();
        assert_eq!((summary.done_tasks, summary.open_tasks, summary.iterations), (3, 0, 4));
    });
}

#[test]
fn all_tasks_done_ends_it_without_a_word() {
    play(async |stage| {
        stage.tasks(&["parse"]).await;
        let agent = Arc::new(ScriptedAgent::new().then(ScriptedRun::done("there").task_done("parse")));
        assert_eq!(stage.run(&agent).await.end, WorkEnd::AllDone);
    });
}

#[test]
fn max_iterations_is_not_an_error() {
    play(async |stage| {
        stage.options.iterations = 3;
        stage.tasks(&["parse"]).await;
        let agent = Arc::new(ScriptedAgent::new().with_handler(|_| ScriptedRun::done("Still working...")));
        let summary = stage.run(&agent).await;
        assert_eq!(summary.end, WorkEnd::MaxIterations);
        agent.assert_call_count(3);
        assert_eq!(stage.task("parse").await.attempts, 3);
    });
}

#[test]
fn an_empty_session_ends_at_once_and_the_agent_is_not_called() {
    play(async |stage| {
        let agent = Arc::new(ScriptedAgent::new());
        let summary = stage.run(&agent).await;
        assert_eq!(summary.end, WorkEnd::NothingToDo);
        assert_eq!((summary.iterations, summary.cost_usd), (0, None));
        agent.assert_call_count(0);
    });
}

#[test]
fn a_session_whose_tasks_are_over_ends_at_once() {
    play(async |stage| {
        stage.tasks(&["parse", "print"]).await;
        stage.commit(vec![change("parse", TaskInput::Finish), change("print", TaskInput::Cancel)]).await;
        let agent = Arc::new(ScriptedAgent::new());
        assert_eq!(stage.run(&agent).await.end, WorkEnd::NothingToDo);
        agent.assert_call_count(0);
    });
}

#[test]
fn a_session_whose_tasks_are_all_blocked_needs_a_human() {
    play(async |stage| {
        stage.tasks(&["parse"]).await;
        stage.commit(vec![change("parse", TaskInput::Block { reason: "which grammar?".into() })]).await;
        let agent = Arc::new(ScriptedAgent::new());
        let waiting = vec!["parse parse: which grammar?".to_owned()];
        assert_eq!(stage.run(&agent).await.end, WorkEnd::NeedsHuman { waiting });
        agent.assert_call_count(0);
    });
}

#[test]
fn an_unknown_session_is_an_error_with_the_name_that_may_have_been_meant() {
    play(async |stage| {
        stage.options.session = crate::stage::session("wrok");
        let error = stage.try_run(&Arc::new(ScriptedAgent::new())).await.unwrap_err();
        assert_eq!(error.to_string(), "there is no session `wrok`");
    });
}

#[test]
fn trust_is_handed_to_the_agent_only_when_it_is_given() {
    play(async |stage| {
        stage.options.iterations = 1;
        stage.tasks(&["parse"]).await;
        let agent = Arc::new(ScriptedAgent::new().when_empty(WhenEmpty::Complete));
        stage.run(&agent).await;
        assert_eq!(agent.calls()[0].permission, PermissionMode::AcceptEdits);
        agent.reset();
        stage.profile.permission = PermissionMode::Trust;
        stage.run(&agent).await;
        assert_eq!(agent.calls()[0].permission, PermissionMode::Trust);
    });
}

#[test]
fn more_runs_than_were_scripted_fail_aloud() {
    play(async |stage| {
        stage.options.max_failures = 1;
        stage.tasks(&["parse"]).await;
        let agent = Arc::new(ScriptedAgent::new().then(ScriptedRun::done("one")));
        let WorkEnd::TooManyFailures { last: Outcome::Failed { reason } } = stage.run(&agent).await.end
        else {
            panic!("the second run must fail");
        };
        assert!(reason.starts_with("1 runs were scripted, and this is call 2, which asks:"), "{reason}");
    });
}

#[test]
fn a_result_file_that_says_success_speaks_for_the_task_of_its_run_and_no_other() {
    play(async |stage| {
        stage.options.iterations = 1;
        stage.tasks(&["parse", "print"]).await;
        let file = ResultFile { outcome: Some(ResultOutcome::Success), ..ResultFile::default() };
        let agent = Arc::new(ScriptedAgent::new().then(ScriptedRun::done("done").result_file(file)));
        assert_eq!(stage.run(&agent).await.end, WorkEnd::MaxIterations);
        assert_eq!(
            (stage.status("parse").await, stage.status("print").await),
            ("done".into(), "todo".into())
        );
    });
}

#[test]
fn what_a_run_says_about_its_task_by_name_counts_more_than_its_result_file() {
    play(async |stage| {
        stage.options.iterations = 1;
        stage.tasks(&["parse"]).await;
        let file = ResultFile { outcome: Some(ResultOutcome::Success), ..ResultFile::default() };
        let run = ScriptedRun::done("done").result_file(file).task_blocked("parse", "needs a key");
        stage.run(&Arc::new(ScriptedAgent::new().then(run))).await;
        assert_eq!(stage.status("parse").await, "blocked");
    });
}

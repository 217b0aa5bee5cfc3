//! What the agent is asked.

use std::sync::Arc;

use rehearsal_agent::{ScriptedAgent, ScriptedRun};
use rehearsal_core::{NewTask, Outcome, Priority, SessionEdit};
use rehearsal_engine::WorkError;
use rehearsal_store::Change;

use crate::stage::{play, session, titled};

#[test]
fn a_prompt_has_all_its_sections() {
    play(async |stage| {
        let edit = SessionEdit {
            description: Some("Epic description".into()),
            context: Some("Custom context\nMultiple lines".into()),
            criteria: Some(vec!["the tests pass".into()]),
        };
        let line =
            Change::AddProgress { session: session("work"), run: None, text: "Prior work done".into() };
        stage.commit(vec![Change::EditSession { name: session("work"), edit }, line]).await;
        let task = NewTask {
            criteria: vec!["Criterion A".into(), "Criterion B".into()],
            priority: Priority::High,
            ..titled("Build feature X")
        };
        stage.add("x1", task).await;
        stage.options.message = Some("Be kind.".into());
        stage.options.test_command = Some("make check".into());
        let agent = Arc::new(ScriptedAgent::new().then(ScriptedRun::done("").task_done("x1")));
        stage.run(&agent).await;
        for part in [
            "<context>\nEpic description",
            "Custom context\nMultiple lines",
            "<progress>\nPrior work done",
            "<tasks>\n## Build feature X (this iteration)",
            "- priority: high",
            "  - Criterion A\n  - Criterion B\n  - the tests pass (holds for every task of this session)",
            "<instructions>\nONE TASK PER ITERATION. This is iteration 1 of at most 10.",
            "`make check`",
            "<promise>DONE</promise>",
            "<promise>COMPLETE</promise>",
            "Be kind.",
        ] {
            agent.assert_prompt_contains(0, part);
        }
    });
}

#[test]
fn continues_message_is_in_the_next_prompt_and_in_no_later_one() {
    play(async |stage| {
        stage.tasks(&["parse"]).await;
        let agent = Arc::new(
            ScriptedAgent::new()
                .then(ScriptedRun::done("<promise>CONTINUE: the lexer is next</promise>"))
                .then(ScriptedRun::done("more").progress("lexer done"))
                .then(ScriptedRun::done("").task_done("parse")),
        );
        stage.run(&agent).await;
        agent.assert_prompt_contains(1, "NOTE: the last iteration says: the lexer is next");
        agent.assert_prompt_contains(2, "<progress>\nlexer done");
        assert!(!agent.calls()[2].prompt.contains("the lexer is next"));
    });
}

#[test]
fn how_the_last_run_ended_is_in_the_next_prompt() {
    play(async |stage| {
        stage.tasks(&["parse"]).await;
        let agent = Arc::new(
            ScriptedAgent::new()
                .then(ScriptedRun::of(Outcome::Failed { reason: "tests are red".into() }))
                .then(ScriptedRun::done("").task_done("parse")),
        );
        stage.run(&agent).await;
        agent.assert_prompt_contains(1, "- last run: failed: tests are red");
    });
}

#[test]
fn a_template_that_cannot_be_used_is_an_error_before_anything_is_begun() {
    play(async |stage| {
        stage.tasks(&["parse"]).await;
        stage.template = "line one\n{{ sesion.name }}".into();
        let agent = Arc::new(ScriptedAgent::new().then(ScriptedRun::done("").task_done("parse")));
        let error = stage.try_run(&agent).await.unwrap_err();
        let WorkError::Prompt(prompt) = &error else { panic!("{error}") };
        assert_eq!(prompt.line, Some(2));
        assert_eq!(stage.status("parse").await, "todo");
        assert_eq!(stage.runs().await.len(), 0, "it is found out before anything is begun");
        agent.assert_call_count(0);
    });
}

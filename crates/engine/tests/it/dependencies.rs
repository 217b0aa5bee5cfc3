//! Which task is next.

use std::sync::Arc;

use rehearsal_agent::{ScriptedAgent, ScriptedRun};
use rehearsal_core::{Exit, NewTask, Priority};
use rehearsal_engine::WorkEnd;

use crate::stage::{Stage, after, new_session, play, session, titled};

/// Finishes whatever it is given.
fn willing() -> Arc<ScriptedAgent> {
    Arc::new(
        ScriptedAgent::new()
            .with_handler(|request| ScriptedRun::done("done").task_done(request.task.as_str())),
    )
}

async fn order(stage: &Stage) -> Vec<String> {
    stage.runs().await.iter().map(|run| run.start.task.to_string()).collect()
}

#[test]
fn the_most_urgent_comes_first_then_the_oldest() {
    play(async |stage| {
        for (id, priority) in [
            ("later", Priority::Low),
            ("usual", Priority::Medium),
            ("second", Priority::Medium),
            ("fire", Priority::Urgent),
            ("soon", Priority::High),
        ] {
            stage.add(id, NewTask { priority, ..titled(id) }).await;
        }
        assert_eq!(stage.run(&willing()).await.end, WorkEnd::AllDone);
        assert_eq!(order(stage).await, ["fire", "soon", "usual", "second", "later"]);
    });
}

#[test]
fn a_task_waits_for_those_it_depends_on_however_urgent_it_is() {
    play(async |stage| {
        stage.tasks(&["lexer", "parser"]).await;
        stage
            .add("printer", NewTask { priority: Priority::Urgent, ..after("printer", &["lexer", "parser"]) })
            .await;
        assert_eq!(stage.run(&willing()).await.end, WorkEnd::AllDone);
        assert_eq!(order(stage).await, ["lexer", "parser", "printer"]);
    });
}

#[test]
fn a_task_whose_dependency_failed_needs_a_human() {
    play(async |stage| {
        stage.options.max_failures = 9;
        stage.tasks(&["lexer"]).await;
        stage.add("parser", after("parser", &["lexer"])).await;
        let agent = Arc::new(ScriptedAgent::new().with_handler(|_| ScriptedRun::crashes(Exit::Signal(11))));
        let end = stage.run(&agent).await.end;
        let waiting = vec!["parser parser: it depends on tasks that are not done".to_owned()];
        assert_eq!(end, WorkEnd::NeedsHuman { waiting });
        assert_eq!(stage.status("lexer").await, "failed");
        assert_eq!(order(stage).await, ["lexer"; 4]);
    });
}

#[test]
fn a_task_of_another_session_is_waited_for_and_not_worked_on() {
    play(async |stage| {
        stage.commit(vec![new_session("other")]).await;
        stage.add("lexer", NewTask { session: Some(session("other")), ..titled("lexer") }).await;
        stage.add("parser", after("parser", &["lexer"])).await;
        let agent = willing();
        assert!(matches!(stage.run(&agent).await.end, WorkEnd::NeedsHuman { .. }));
        agent.assert_call_count(0);

        stage.options.session = session("other");
        assert_eq!(stage.run(&agent).await.end, WorkEnd::AllDone);
        stage.options.session = session("work");
        assert_eq!(stage.run(&agent).await.end, WorkEnd::AllDone);
    });
}

//! People who change tasks in another terminal while an agent works.

use std::sync::Arc;

use rehearsal_agent::{ScriptedAgent, ScriptedRun};
use rehearsal_core::transition::TaskInput;
use rehearsal_core::{EventKind, NewTask, Priority, TaskEdit};
use rehearsal_engine::WorkEnd;
use rehearsal_store::EventQuery;

use crate::stage::{Stage, add, change, play, task_id, titled};

fn finished(id: &str) -> ScriptedRun {
    ScriptedRun::done("done").task_done(id)
}

/// How often the log says that something of this kind happened to a task.
async fn logged(stage: &Stage, id: &str, is_it: impl Fn(&TaskInput) -> bool) -> usize {
    let about = EventQuery { task: Some(task_id(id)), ..EventQuery::default() };
    let events = stage.store.events(&about).await.unwrap();
    let matching = |kind: &EventKind| matches!(kind, EventKind::TaskChanged { input, .. } if is_it(input));
    events.iter().filter(|event| matching(&event.kind)).count()
}

#[test]
fn a_task_that_is_added_meanwhile_is_worked_on() {
    play(async |stage| {
        stage.tasks(&["parse", "print"]).await;
        let urgent = NewTask { priority: Priority::Urgent, ..titled("hotfix") };
        let adding = stage.person(move || vec![add("hotfix", urgent.clone())]);
        let agent = Arc::new(
            ScriptedAgent::new()
                .then(finished("parse").effect(adding))
                .then(finished("hotfix"))
                .then(finished("print")),
        );
        assert_eq!(stage.run(&agent).await.end, WorkEnd::AllDone);
        assert_eq!(agent.calls()[1].task.as_str(), "hotfix", "the most urgent is next");
    });
}

#[test]
fn an_edit_is_in_the_next_prompt() {
    play(async |stage| {
        stage.tasks(&["parse"]).await;
        let edit = TaskEdit {
            title: Some("parse TOML, not YAML".into()),
            criteria: Some(vec!["dates too".into()]),
            ..TaskEdit::default()
        };
        let editing = stage.person(move || vec![change("parse", TaskInput::Edit { edit: edit.clone() })]);
        let agent = Arc::new(
            ScriptedAgent::new().then(ScriptedRun::done("half").effect(editing)).then(finished("parse")),
        );
        assert_eq!(stage.run(&agent).await.end, WorkEnd::AllDone);
        agent.assert_prompt_contains(1, "## parse TOML, not YAML (this iteration)");
        agent.assert_prompt_contains(1, "  - dates too");
        assert_eq!(stage.warnings().await, Vec::<String>::new(), "an edit does not take the task away");
    });
}

#[test]
fn a_task_that_is_cancelled_before_its_turn_is_not_worked_on() {
    play(async |stage| {
        stage.tasks(&["parse", "print"]).await;
        let cancelling = stage.person(|| vec![change("print", TaskInput::Cancel)]);
        let agent = Arc::new(ScriptedAgent::new().then(finished("parse").effect(cancelling)));
        assert_eq!(stage.run(&agent).await.end, WorkEnd::AllDone);
        assert_eq!(stage.status("print").await, "cancelled");
    });
}

#[test]
fn a_task_that_a_person_finishes_meanwhile_is_done_once() {
    play(async |stage| {
        stage.tasks(&["parse", "print"]).await;
        let finishing = stage.person(|| vec![change("parse", TaskInput::Finish)]);
        let agent = Arc::new(
            ScriptedAgent::new()
                .then(finished("parse").progress("parsed").effect(finishing))
                .then(finished("print")),
        );
        let summary = stage.run(&agent).await;
        assert_eq!(summary.end, WorkEnd::AllDone);
        assert_eq!(stage.warnings().await, ["task_taken_away task=parse"]);
        assert_eq!(logged(stage, "parse", |input| *input == TaskInput::Finish).await, 1);
        assert_eq!(logged(stage, "parse", |input| matches!(input, TaskInput::EndRun { .. })).await, 0);
        let runs = stage.runs().await;
        assert!(runs.iter().all(|run| run.end.is_some()), "the run itself is over and on record");
        let journal = stage.store.progress(&stage.options.session, 10).await.unwrap();
        assert_eq!(journal.len(), 1, "what else it said is taken over");
    });
}

#[test]
fn a_task_that_a_person_cancels_meanwhile_stays_cancelled() {
    play(async |stage| {
        stage.tasks(&["parse"]).await;
        let cancelling = stage.person(|| vec![change("parse", TaskInput::Cancel)]);
        let agent = Arc::new(ScriptedAgent::new().then(finished("parse").effect(cancelling)));
        stage.run(&agent).await;
        assert_eq!(stage.status("parse").await, "cancelled");
        assert_eq!(stage.task("parse").await.attempts, 0);
    });
}

#[test]
fn a_task_that_begins_anew_meanwhile_is_not_ended_by_the_old_run() {
    play(async |stage| {
        stage.tasks(&["parse"]).await;
        let restarting =
            stage.person(|| vec![change("parse", TaskInput::Cancel), change("parse", TaskInput::Retry)]);
        let agent =
            Arc::new(ScriptedAgent::new().then(finished("parse").effect(restarting)).then(finished("parse")));
        assert_eq!(stage.run(&agent).await.end, WorkEnd::AllDone);
        agent.assert_call_count(2);
        assert_eq!(stage.task("parse").await.attempts, 1);
    });
}

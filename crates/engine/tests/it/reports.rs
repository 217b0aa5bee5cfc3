//! What an agent reports from inside its run, checked when the run is over.

use std::sync::Arc;

use rehearsal_agent::{ScriptedAgent, ScriptedRun};
use rehearsal_core::transition::TaskInput;
use rehearsal_core::{Exit, NewTask, Outcome, ReportedTask, ResultFile, TimeLimit, WireErrorKind};
use rehearsal_engine::{WorkEnd, WorkEvent};

use crate::stage::{Stage, change, new_session, play, session, titled};

async fn one_run(stage: &mut Stage, run: ScriptedRun) -> WorkEnd {
    stage.options.iterations = 1;
    stage.run(&Arc::new(ScriptedAgent::new().then(run))).await.end
}

async fn journal(stage: &Stage) -> Vec<String> {
    let lines = stage.store.progress(&session("work"), 100).await.unwrap();
    lines.into_iter().map(|entry| entry.text).collect()
}

#[test]
fn a_run_may_report_on_other_tasks_of_its_session() {
    play(async |stage| {
        stage.tasks(&["parse", "print", "docs"]).await;
        let run = ScriptedRun::done("all at once")
            .task_done("print")
            .task_blocked("docs", "who is the reader?")
            .progress("print was trivial");
        one_run(stage, run).await;
        let mut statuses = Vec::new();
        for id in ["parse", "print", "docs"] {
            statuses.push(stage.status(id).await);
        }
        assert_eq!(statuses, ["todo", "done", "blocked"]);
        assert_eq!(journal(stage).await, ["print was trivial"]);
        let reported: Vec<(String, String)> = stage
            .told()
            .into_iter()
            .filter_map(|event| match event {
                WorkEvent::TaskReported { task, status, .. } => Some((task.to_string(), status)),
                _ => None,
            })
            .collect();
        assert_eq!(reported, [("print".into(), "done".into()), ("docs".into(), "blocked".into())]);
    });
}

#[test]
fn the_result_file_says_the_same_as_the_commands() {
    play(async |stage| {
        stage.tasks(&["parse"]).await;
        let file = ResultFile {
            tasks: vec![ReportedTask::Done { id: "parse".into(), reason: None }],
            progress: vec!["parsed".into()],
            ..ResultFile::default()
        };
        assert_eq!(one_run(stage, ScriptedRun::done("").result_file(file)).await, WorkEnd::AllDone);
        assert_eq!(journal(stage).await, ["parsed"]);
    });
}

#[test]
fn a_prefix_of_an_id_is_enough() {
    play(async |stage| {
        stage.tasks(&["parse"]).await;
        assert_eq!(one_run(stage, ScriptedRun::done("").task_done("pa")).await, WorkEnd::AllDone);
    });
}

#[test]
fn the_last_word_on_a_task_counts() {
    play(async |stage| {
        stage.tasks(&["parse"]).await;
        let run = ScriptedRun::done("").task_blocked("parse", "no grammar").task_done("parse");
        assert_eq!(one_run(stage, run).await, WorkEnd::AllDone);
    });
}

#[test]
fn a_blocked_task_does_not_keep_the_loop_from_the_others() {
    play(async |stage| {
        stage.tasks(&["parse", "print"]).await;
        let agent = Arc::new(
            ScriptedAgent::new()
                .then(ScriptedRun::done("").task_blocked("parse", "no grammar"))
                .then(ScriptedRun::done("").task_done("print")),
        );
        let waiting = vec!["parse parse: no grammar".to_owned()];
        assert_eq!(stage.run(&agent).await.end, WorkEnd::NeedsHuman { waiting });
    });
}

#[test]
fn strangers_are_refused_aloud() {
    play(async |stage| {
        stage.commit(vec![new_session("other")]).await;
        stage.tasks(&["parse", "print", "printer"]).await;
        stage.add("theirs", NewTask { session: Some(session("other")), ..titled("theirs") }).await;
        stage.add("nobodys", NewTask { session: None, ..titled("nobodys") }).await;
        stage.commit(vec![change("print", TaskInput::Finish)]).await;
        let run = ScriptedRun::done("")
            .task_done("theirs")
            .task_done("nobodys")
            .task_done("parrse")
            .task_done("pr")
            .task_done("print");
        one_run(stage, run).await;
        assert_eq!(
            stage.warnings().await,
            [
                "reported_task_ignored run=#1 task=theirs",
                "reported_task_ignored run=#1 task=nobodys",
                "reported_task_ignored error=there is no task `parrse` run=#1 task=parrse",
                "reported_task_ignored error=`pr` could be any of these tasks: print, printer run=#1 task=pr",
                "change_refused error=task `print` is already done",
            ]
        );
        assert_eq!(stage.status("theirs").await, "todo");
    });
}

#[test]
fn a_run_that_broke_down_or_was_ended_has_changed_nothing() {
    let ends = [
        ScriptedRun::crashes(Exit::Signal(9)),
        ScriptedRun::of(Outcome::TimedOut { limit: TimeLimit::Total, after_ms: 1 }),
        ScriptedRun::of(Outcome::Cancelled),
        ScriptedRun::error(WireErrorKind::Overloaded, "overloaded"),
    ];
    for end in ends {
        play(async |stage| {
            stage.tasks(&["parse", "print"]).await;
            let run = end.clone().task_done("parse").task_done("print").progress("nearly there");
            one_run(stage, run).await;
            assert!(!stage.task("parse").await.is_done());
            assert_eq!(stage.status("print").await, "todo");
            assert_eq!(journal(stage).await, Vec::<String>::new());
            let name = stage.runs().await[0].outcome().unwrap().name();
            let warning = format!("report_ignored outcome={name} run=#1");
            assert_eq!(stage.warnings().await, [warning]);
        });
    }
}

#[test]
fn a_turn_limit_does_not_undo_what_was_reported() {
    play(async |stage| {
        stage.tasks(&["parse"]).await;
        let run = ScriptedRun::of(Outcome::NeedsContinuation { reason: "turns".into() }).task_done("parse");
        assert_eq!(one_run(stage, run).await, WorkEnd::AllDone);
    });
}

#[test]
fn a_run_that_says_it_failed_has_not_done_its_task() {
    play(async |stage| {
        stage.tasks(&["parse", "print"]).await;
        let run = ScriptedRun::of(Outcome::Failed { reason: "tests are red".into() })
            .task_done("parse")
            .task_done("print");
        one_run(stage, run).await;
        assert_eq!(stage.status("parse").await, "todo");
        assert_eq!(stage.status("print").await, "done");
    });
}

#[test]
fn a_text_without_end_is_cut_short_and_stops_nothing() {
    play(async |stage| {
        stage.tasks(&["parse", "print"]).await;
        let endless = "ä".repeat(30_000);
        let run = ScriptedRun::done("")
            .progress(endless.clone())
            .task_blocked("print", endless.clone())
            .task_done("parse");
        one_run(stage, run).await;
        assert_eq!(stage.status("parse").await, "done");
        assert_eq!(stage.status("print").await, "blocked");
        assert_eq!(journal(stage).await[0].chars().count(), 20_000);
        let warning = "reported_text_cut bytes=60000 run=#1";
        assert_eq!(stage.warnings().await, [warning, warning]);
    });
}

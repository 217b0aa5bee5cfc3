//! The way of a task from its first run to its merge.

use rehearsal_agent::{ScriptedAgent, ScriptedRun};
use rehearsal_core::{NewTask, Outcome};

use crate::studio::{play, writes};

#[test]
fn a_task_is_implemented_reviewed_and_merged() {
    play(async |studio| {
        studio.agent("implementer", ScriptedAgent::new().then(writes("b.txt", "two\n")));
        studio.approving();
        studio.add("t1", "pull-request", NewTask::default()).await;
        let summary = studio.work().await;
        assert_eq!(studio.way_of("t1"), ["incoming -> provisional", "provisional -> done"]);
        assert_eq!(studio.on_main("b.txt"), "two\n");
        assert_eq!(summary.runs.len(), 2);
        let task = studio.task("t1").await;
        let delivery = &task.delivery;
        assert_eq!(delivery.branch.as_deref(), Some("rehearsal/t1"));
        assert_eq!(delivery.merged, delivery.head, "what landed is what was tested");
        assert!(delivery.pull_request.as_ref().unwrap().url.ends_with("remote.git#1"));
        assert!(studio.warnings().is_empty(), "{:?}", studio.warnings());
    });
}

#[test]
fn a_rejected_task_comes_back_with_the_comment_and_goes_out_again() {
    play(async |studio| {
        let implementer = studio.agent(
            "implementer",
            ScriptedAgent::new().then(writes("b.txt", "two\n")).then(writes("b.txt", "two, and why\n")),
        );
        let rejected = Outcome::Rejected { comment: "say why".into() };
        studio.agent(
            "gatekeeper",
            ScriptedAgent::new().then(ScriptedRun::of(rejected)).then(ScriptedRun::of(Outcome::Approved)),
        );
        studio.add("t1", "pull-request", NewTask::default()).await;
        studio.work().await;
        assert_eq!(
            studio.way_of("t1"),
            [
                "incoming -> provisional",
                "provisional -> incoming",
                "incoming -> provisional",
                "provisional -> done"
            ]
        );
        implementer.assert_prompt_contains(1, "<feedback from=\"review\">\nsay why\n</feedback>");
        assert_eq!(studio.on_main("b.txt"), "two, and why\n");
        assert_eq!(studio.task("t1").await.rejections, 1);
        assert_eq!(
            studio.landed(),
            ["write b.txt", "write b.txt", "begin"],
            "the second attempt stands on the first"
        );
    });
}

#[test]
fn red_tests_go_into_the_next_prompt_and_nothing_is_pushed_before_they_are_green() {
    play(async |studio| {
        let implementer = studio.agent(
            "implementer",
            ScriptedAgent::new().then(writes("b.txt", "broken\n")).then(writes("b.txt", "mended\n")),
        );
        studio.approving();
        studio.add("t1", "pull-request", NewTask::default()).await;
        studio.work().await;
        assert_eq!(
            studio.way_of("t1"),
            ["incoming -> incoming", "incoming -> provisional", "provisional -> done"]
        );
        implementer.assert_prompt_contains(1, "<feedback from=\"run_tests\">");
        implementer.assert_prompt_contains(1, "b.txt");
        assert_eq!(studio.on_main("b.txt"), "mended\n");
    });
}

#[test]
fn what_an_agent_leaves_uncommitted_goes_out_too() {
    play(async |studio| {
        let run = ScriptedRun::of(Outcome::Done).effect(|request| {
            fs_err::write(request.working_dir.join("b.txt"), "uncommitted\n").unwrap();
        });
        studio.agent("implementer", ScriptedAgent::new().then(run));
        studio.approving();
        studio.add("t1", "pull-request", NewTask::default()).await;
        studio.work().await;
        assert_eq!(studio.on_main("b.txt"), "uncommitted\n");
        assert_eq!(studio.landed(), ["task t1", "begin"]);
    });
}

#[test]
fn a_task_of_which_nothing_came_is_not_pushed() {
    play(async |studio| {
        studio.agent("implementer", ScriptedAgent::new().with_handler(|_| ScriptedRun::of(Outcome::Done)));
        studio.approving();
        studio.add("t1", "pull-request", NewTask::default()).await;
        studio.work().await;
        assert_eq!(studio.way_of("t1"), ["incoming -> incoming", "incoming -> failed"]);
        let task = studio.task("t1").await;
        assert_eq!(task.feedback.unwrap().text, "there are no commits that could go out");
        assert_eq!(task.delivery.pushed, None);
    });
}

#[test]
fn a_run_that_needs_another_goes_on_in_the_same_place() {
    play(async |studio| {
        let half =
            writes("b.txt", "half\n").outcome(Outcome::NeedsContinuation { reason: "40 turns".into() });
        let implementer =
            studio.agent("implementer", ScriptedAgent::new().then(half).then(writes("c.txt", "whole\n")));
        studio.approving();
        studio.add("t1", "pull-request", NewTask::default()).await;
        studio.work().await;
        assert_eq!(studio.way_of("t1")[0], "incoming -> needs_continuation");
        let calls = implementer.calls();
        assert_eq!(calls[0].working_dir, calls[1].working_dir);
        implementer.assert_prompt_contains(1, "go on where it stopped");
        assert_eq!(studio.landed(), ["write c.txt", "write b.txt", "begin"]);
        let task = studio.task("t1").await;
        assert_eq!(
            (task.continuations, task.attempts),
            (1, 2),
            "one continuation, then an attempt and a review"
        );
    });
}

#[test]
fn a_reviewer_who_writes_is_undone_and_its_decision_counts() {
    play(async |studio| {
        studio.agent("implementer", ScriptedAgent::new().then(writes("b.txt", "two\n")));
        studio.agent(
            "gatekeeper",
            ScriptedAgent::new().then(writes("evil.txt", "unreviewed\n").outcome(Outcome::Approved)),
        );
        studio.add("t1", "pull-request", NewTask::default()).await;
        studio.work().await;
        assert_eq!(studio.status("t1").await, "done");
        assert_eq!(studio.landed(), ["write b.txt", "begin"]);
        assert_eq!(studio.warnings(), ["reviewer_changes_undone"]);
    });
}

#[test]
fn a_finished_worktree_serves_the_next_task() {
    play(async |studio| {
        let implementer = studio.agent(
            "implementer",
            ScriptedAgent::new().then(writes("b.txt", "two\n")).then(writes("c.txt", "three\n")),
        );
        studio.approving();
        studio.add("t1", "pull-request", NewTask::default()).await;
        studio.add("t2", "pull-request", NewTask::default()).await;
        studio.work().await;
        assert_eq!((studio.status("t1").await, studio.status("t2").await), ("done".into(), "done".into()));
        let calls = implementer.calls();
        assert_eq!(calls.len(), 2);
        assert_eq!(studio.landed(), ["write c.txt", "write b.txt", "begin"]);
    });
}

//! Work that goes from one machine to another: what was pushed is brought, what was not is done again.

use std::sync::Arc;

use async_trait::async_trait;
use rehearsal_agent::{ScriptedAgent, ScriptedRun};
use rehearsal_core::flow::parse;
use rehearsal_core::transition::TaskInput;
use rehearsal_core::{AgentName, Hold, HoldCause, Lane, NewTask, Outcome, Standing, TaskId};
use rehearsal_engine::{Moment, Moments, Reaction, Undisturbed, WorkError, WorkEvent};
use rehearsal_store::Change;

use crate::studio::{Studio, git, play, writes};

#[test]
fn a_reviewer_on_another_machine_sees_the_work() {
    play(async |studio| {
        studio.agent("implementer", ScriptedAgent::new().then(writes("b.txt", "two\n")));
        studio.agent(
            "gatekeeper",
            ScriptedAgent::new().then(ScriptedRun::of(Outcome::Approved).effect(|request| {
                assert_eq!(fs_err::read_to_string(request.working_dir.join("b.txt")).unwrap(), "two\n");
            })),
        );
        studio.add("t1", "pull-request", NewTask::default()).await;
        let_only("implementer", studio).await;
        studio.work().await;
        assert_eq!(studio.status("t1").await, "provisional");

        studio.machine = "there";
        let_only("gatekeeper", studio).await;
        studio.work().await;
        assert_eq!(studio.status("t1").await, "done");
    });
}

/// Dies at a moment of a step, and is not there any more after that.
struct DiesAt(Moment, &'static str);

#[async_trait]
impl Moments for DiesAt {
    async fn reached(&self, moment: Moment, _task: &TaskId, step: Option<&str>) -> Reaction {
        if (moment, step) == (self.0, Some(self.1)) { Reaction::Die } else { Reaction::GoOn }
    }
}

/// The worker dies and its machine is lost: after its lease another one takes over, which is told here by hand.
async fn die(studio: &mut Studio, moment: Moment, step: &'static str) {
    studio.moments = Arc::new(DiesAt(moment, step));
    assert!(matches!(studio.try_work().await, Err(WorkError::Died)));
    let task = studio.task("t1").await;
    let Standing::Claimed(claim) = &task.standing else { panic!("it is not held") };
    let lose = TaskInput::Lose { stale: task.fence, of: claim.worker.clone() };
    studio.commit(vec![Change::ChangeTask { id: task.id, input: lose }]).await;
    studio.moments = Arc::new(Undisturbed);
}

const GONE: &str = "work_lost task=t1";

#[test]
fn work_that_is_gone_with_its_machine_is_done_again() {
    play(async |studio| {
        let implementer = studio.agent(
            "implementer",
            ScriptedAgent::new().then(writes("b.txt", "two\n")).then(writes("b.txt", "two again\n")),
        );
        studio.approving();
        studio.add("t1", "pull-request", NewTask::default()).await;
        die(studio, Moment::StepBegun, "push_branch").await;
        studio.machine = "there";
        studio.work().await;
        implementer.assert_call_count(2);
        assert_eq!(studio.status("t1").await, "done");
        assert_eq!(studio.on_main("b.txt"), "two again\n");
        assert_eq!(studio.warnings(), [GONE]);
    });
}

#[test]
fn work_that_was_pushed_by_a_worker_that_did_not_come_to_say_so_is_gone_on_with() {
    play(async |studio| {
        let implementer = studio.agent("implementer", ScriptedAgent::new().then(writes("b.txt", "two\n")));
        studio.approving();
        studio.add("t1", "pull-request", NewTask::default()).await;
        die(studio, Moment::StepActed, "push_branch").await;
        studio.machine = "there";
        studio.work().await;
        implementer.assert_call_count(1);
        assert_eq!(studio.status("t1").await, "done");
        assert_eq!(studio.on_main("b.txt"), "two\n");
        assert_eq!(studio.warnings(), Vec::<String>::new());
    });
}

#[test]
fn what_was_pushed_before_its_task_was_begun_anew_is_known_to_be_ours() {
    play(async |studio| {
        studio.agent(
            "implementer",
            ScriptedAgent::new().then(writes("b.txt", "two\n")).then(writes("b.txt", "two again\n")),
        );
        studio.approving();
        studio.add("t1", "pull-request", NewTask::default()).await;
        die(studio, Moment::StepActed, "push_branch").await;
        let id = studio.task("t1").await.id;
        let cancel = Change::ChangeTask { id: id.clone(), input: TaskInput::Cancel };
        let retry = Change::ChangeTask { id, input: TaskInput::Retry };
        studio.commit(vec![cancel, retry]).await;
        studio.machine = "there";
        studio.work().await;
        assert_eq!(studio.status("t1").await, "done", "{:?}", studio.task("t1").await.standing);
        assert_eq!(studio.on_main("b.txt"), "two again\n");
    });
}

#[test]
fn a_second_attempt_that_is_gone_with_its_machine_is_not_replaced_by_the_first() {
    play(async |studio| {
        let implementer = studio.agent(
            "implementer",
            ScriptedAgent::new()
                .then(writes("b.txt", "two\n"))
                .then(writes("b.txt", "better\n"))
                .then(writes("b.txt", "better again\n")),
        );
        studio.agent(
            "gatekeeper",
            ScriptedAgent::new()
                .then(ScriptedRun::of(Outcome::Rejected { comment: "make it better".into() }))
                .then(ScriptedRun::of(Outcome::Approved)),
        );
        studio.add("t1", "pull-request", NewTask::default()).await;
        let_only("implementer", studio).await;
        studio.work().await;
        let_only("gatekeeper", studio).await;
        studio.work().await;
        let_only("implementer", studio).await;
        die(studio, Moment::StepBegun, "commit_leftovers").await;
        implementer.assert_call_count(2);

        studio.machine = "there";
        studio.work().await;
        implementer.assert_call_count(3);
        assert_eq!(studio.warnings(), [GONE]);
        let_only("gatekeeper", studio).await;
        studio.work().await;
        assert_eq!(studio.on_main("b.txt"), "better again\n");
    });
}

#[test]
fn a_place_that_others_left_behind_is_brought_to_what_they_pushed() {
    play(async |studio| {
        studio.agent(
            "implementer",
            ScriptedAgent::new().then(writes("b.txt", "two\n")).then(writes("b.txt", "better\n")),
        );
        studio.agent(
            "gatekeeper",
            ScriptedAgent::new()
                .then(ScriptedRun::of(Outcome::Rejected { comment: "make it better".into() }))
                .then(ScriptedRun::of(Outcome::Approved).effect(|request| {
                    let seen = fs_err::read_to_string(request.working_dir.join("b.txt")).unwrap();
                    assert_eq!(seen, "better\n", "the reviewer sees what will be merged");
                })),
        );
        studio.add("t1", "pull-request", NewTask::default()).await;
        let_only("implementer", studio).await;
        studio.work().await;
        // Another machine rejects it, and makes it better.
        studio.machine = "there";
        let_only("gatekeeper", studio).await;
        studio.work().await;
        let_only("implementer", studio).await;
        studio.work().await;
        // The first one reviews that, and not what it has from before.
        studio.machine = "here";
        let_only("gatekeeper", studio).await;
        studio.work().await;
        assert_eq!(studio.status("t1").await, "done");
        assert_eq!(studio.on_main("b.txt"), "better\n");
        assert_eq!(studio.warnings(), Vec::<String>::new());
    });
}

#[test]
fn steps_do_not_go_on_with_what_another_machine_has_done_again() {
    play(async |studio| {
        let implementer = studio.agent(
            "implementer",
            ScriptedAgent::new()
                .then(writes("b.txt", "two\n"))
                .then(writes("b.txt", "two again\n"))
                .then(writes("b.txt", "two once more\n")),
        );
        studio.approving();
        studio.add("t1", "pull-request", NewTask::default()).await;
        die(studio, Moment::StepBegun, "push_branch").await;
        studio.machine = "there";
        die(studio, Moment::StepDone, "run_tests").await;
        // What is here was never tested: another machine's was.
        studio.machine = "here";
        studio.work().await;
        implementer.assert_call_count(3);
        assert_eq!(studio.status("t1").await, "done");
        assert_eq!(studio.on_main("b.txt"), "two once more\n");
        assert_eq!(studio.warnings(), [GONE, GONE]);
    });
}

/// One of the two works, the other one waits.
async fn let_only(role: &str, studio: &Studio) {
    let lane = |name: &str| Lane::Agent(AgentName::new(name).unwrap());
    let other = if role == "implementer" { "gatekeeper" } else { "implementer" };
    let hold = Hold { cause: HoldCause::Person, reason: "elsewhere".into(), until: None };
    let changes = vec![Change::FreeLane { lane: lane(role) }, Change::HoldLane { lane: lane(other), hold }];
    studio.commit(changes).await;
}

/// Nothing of it is pushed before the review.
const LATE: &str = "name: late\nstart: todo\nstates:\n  todo:\n    agent: implementer\n    steps: [commit_leftovers]\n    on: { done: review }\n    otherwise: failed\n  review:\n    agent: gatekeeper\n    steps: [rebase, run_tests, push_branch, create_pr, merge_pr]\n    on: { approved: done }\n    otherwise: failed\n  done: { end: success }\n  failed: { end: failure }\n";

#[test]
fn what_was_not_pushed_is_left_to_the_machine_that_has_it() {
    play(async |studio| {
        studio.agent("implementer", ScriptedAgent::new().then(writes("b.txt", "two\n")));
        let gatekeeper = studio.agent(
            "gatekeeper",
            ScriptedAgent::new().then(ScriptedRun::of(Outcome::Approved).effect(|request| {
                assert_eq!(fs_err::read_to_string(request.working_dir.join("b.txt")).unwrap(), "two\n");
            })),
        );
        studio.add_to("t1", parse(LATE).unwrap(), NewTask::default()).await;
        let_only("implementer", studio).await;
        studio.work().await;
        studio.machine = "there";
        let_only("gatekeeper", studio).await;
        studio.once = true;
        studio.work().await;
        gatekeeper.assert_call_count(0);
        let task = studio.task("t1").await;
        let Standing::Waiting(wait) = &task.standing else { panic!("{:?}", task.standing) };
        let why = "unreachable: its work is in a place of another machine, from which it was not pushed";
        assert_eq!(wait.reason, why);
        let is_held = |event: &WorkEvent| matches!(event, WorkEvent::Held { .. });
        assert!(!studio.told().iter().any(is_held), "other tasks go on");
        studio.machine = "here";
        studio.once = false;
        let id = task.id.clone();
        studio.commit(vec![Change::ChangeTask { id, input: TaskInput::Unblock }]).await;
        studio.work().await;
        assert_eq!((studio.status("t1").await.as_str(), studio.on_main("b.txt").as_str()), ("done", "two\n"));
    });
}

#[test]
fn what_was_done_in_vain_is_kept_and_its_place_given_back() {
    play(async |studio| {
        studio.agent(
            "implementer",
            ScriptedAgent::new()
                .then(ScriptedRun::of(Outcome::Done).effect(|request| {
                    fs_err::write(request.working_dir.join("b.txt"), "in vain\n").unwrap();
                }))
                .then(writes("b.txt", "two\n")),
        );
        studio.approving();
        studio.add("t1", "pull-request", NewTask::default()).await;
        die(studio, Moment::StepBegun, "commit_leftovers").await;
        studio.machine = "there";
        studio.work().await;
        assert_eq!(studio.on_main("b.txt"), "two\n");
        // The lost machine is there again.
        studio.machine = "here";
        studio.work().await;
        let kept = git(&studio.root(), &["for-each-ref", "--format=%(refname)", "refs/rehearsal/left"]);
        let kept = kept.trim();
        assert_eq!(git(&studio.root(), &["show", &format!("{kept}:b.txt")]), "in vain\n");
        let told = format!("earlier_work_saved reference={kept} task=t1");
        assert_eq!(studio.warnings(), [GONE.to_owned(), told]);
        let worktrees = git(&studio.root(), &["worktree", "list", "--porcelain"]);
        assert!(!worktrees.contains("locked rehearsal t1/"), "{worktrees}");
    });
}

#[test]
fn an_agents_session_is_gone_on_with_only_where_it_is() {
    for (machine, resumed) in [("here", Some("s1".to_owned())), ("there", None)] {
        play(async |studio| {
            let reason = "the turns are used up".to_owned();
            let half = ScriptedRun::of(Outcome::NeedsContinuation { reason }).session("s1");
            let implementer =
                studio.agent("implementer", ScriptedAgent::new().then(half).then(writes("b.txt", "two\n")));
            studio.approving();
            studio.add("t1", "pull-request", NewTask::default()).await;
            studio.once = true;
            studio.work().await;
            assert_eq!(studio.status("t1").await, "needs_continuation");
            (studio.machine, studio.once) = (machine, false);
            studio.work().await;
            assert_eq!(implementer.calls()[1].resume, resumed, "on the machine {machine}");
            assert_eq!(studio.status("t1").await, "done");
        });
    }
}

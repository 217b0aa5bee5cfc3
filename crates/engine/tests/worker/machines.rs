//! Work that goes from one machine to another: what was pushed is brought, what was not is done again.

use std::sync::Arc;

use async_trait::async_trait;
use rehearsal_agent::{ScriptedAgent, ScriptedRun};
use rehearsal_core::transition::TaskInput;
use rehearsal_core::{AgentName, Hold, HoldCause, Lane, NewTask, Outcome, Standing, TaskId};
use rehearsal_engine::{Moment, Moments, Reaction, Undisturbed, WorkError};
use rehearsal_store::Change;

use crate::studio::{play, writes};

#[test]
fn a_reviewer_on_another_machine_sees_the_work() {
    play(async |studio| {
        studio.agent("implementer", ScriptedAgent::new().then(writes("b.txt", "two\n")));
        let lane = Lane::Agent(AgentName::new("gatekeeper").unwrap());
        let hold = Hold { cause: HoldCause::Person, reason: "elsewhere".into(), until: None };
        studio.commit(vec![Change::HoldLane { lane: lane.clone(), hold }]).await;
        studio.add("t1", "pull-request", NewTask::default()).await;
        studio.work().await;
        assert_eq!(studio.status("t1").await, "provisional");

        studio.machine = "there";
        studio.agent(
            "gatekeeper",
            ScriptedAgent::new().then(ScriptedRun::of(Outcome::Approved).effect(|request| {
                assert_eq!(fs_err::read_to_string(request.working_dir.join("b.txt")).unwrap(), "two\n");
            })),
        );
        studio.commit(vec![Change::FreeLane { lane }]).await;
        studio.work().await;
        assert_eq!(studio.status("t1").await, "done");
    });
}

/// Dies when the agent is done and nothing is pushed.
struct DiesBeforeThePush;

#[async_trait]
impl Moments for DiesBeforeThePush {
    async fn reached(&self, moment: Moment, _task: &TaskId, step: Option<&str>) -> Reaction {
        let here = moment == Moment::StepBegun && step == Some("push_branch");
        if here { Reaction::Die } else { Reaction::GoOn }
    }
}

#[test]
fn work_that_is_gone_with_its_machine_is_done_again() {
    play(async |studio| {
        let implementer = studio.agent(
            "implementer",
            ScriptedAgent::new().then(writes("b.txt", "two\n")).then(writes("b.txt", "two again\n")),
        );
        studio.approving();
        studio.moments = Arc::new(DiesBeforeThePush);
        studio.add("t1", "pull-request", NewTask::default()).await;
        assert!(matches!(studio.try_work().await, Err(WorkError::Died)));

        // The machine is lost: after its lease another one takes over, which is told here by hand.
        let task = studio.task("t1").await;
        let Standing::Claimed(claim) = &task.standing else { panic!("it is not held") };
        let lose = TaskInput::Lose { stale: task.fence, of: claim.worker.clone() };
        studio.commit(vec![Change::ChangeTask { id: task.id, input: lose }]).await;
        (studio.machine, studio.moments) = ("there", Arc::new(Undisturbed));
        studio.work().await;
        implementer.assert_call_count(2);
        assert_eq!(studio.status("t1").await, "done");
        assert_eq!(studio.on_main("b.txt"), "two again\n");
        assert_eq!(
            studio.warnings(),
            ["the work on task t1 is gone with its machine: the agent has to work again"]
        );
    });
}

//! What people do while a worker works.

use rehearsal_agent::{RunRequest, ScriptedAgent, ScriptedRun};
use rehearsal_core::transition::TaskInput;
use rehearsal_core::{
    Actor, AgentName, Clock, Hold, HoldCause, Lane, NewTask, Outcome, Standing, TaskId, WaitFor,
};
use rehearsal_engine::{StopSwitch, SystemClock, WorkEnd, WorkEvent};
use rehearsal_store::{Change, SqliteStore, Store};

use crate::studio::{Studio, play, writes};

/// What a person in another terminal does meanwhile: an effect for a scripted run.
fn person(studio: &Studio, changes: Vec<Change>) -> impl Fn(&RunRequest) + Send + Sync + 'static {
    let state = studio.root().parent().unwrap().join("state");
    move |_| {
        let (state, changes) = (state.clone(), changes.clone());
        let terminal = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let store = SqliteStore::open(state.as_std_path()).await.unwrap();
                store.commit(Actor::User, SystemClock.now(), changes).await.unwrap();
            });
        });
        terminal.join().unwrap();
    }
}

fn change(id: &str, input: TaskInput) -> Change {
    Change::ChangeTask { id: TaskId::new(id).unwrap(), input }
}

#[test]
fn a_task_that_is_cancelled_while_an_agent_works_stays_cancelled() {
    play(async |studio| {
        let cancel = person(studio, vec![change("t1", TaskInput::Cancel)]);
        studio.agent(
            "implementer",
            ScriptedAgent::new().then(ScriptedRun::of(Outcome::Done).effect(move |request| cancel(request))),
        );
        studio.add("t1", "pull-request", NewTask::default()).await;
        studio.work().await;
        assert_eq!(studio.status("t1").await, "cancelled");
        assert!(studio.told().iter().any(|event| matches!(event, WorkEvent::Lost { .. })));
        assert_eq!(studio.store.unfinished_runs().await.unwrap(), [], "its run is over as well");
        assert_eq!(studio.landed(), ["begin"]);
    });
}

#[test]
fn a_person_approves_what_waits_and_it_is_merged() {
    play(async |studio| {
        studio.agent("implementer", ScriptedAgent::new().then(writes("b.txt", "two\n")));
        studio.add("t1", "approve", NewTask::default()).await;
        studio.work().await;
        let task = studio.task("t1").await;
        assert!(matches!(&task.standing, Standing::Waiting(wait) if wait.wait_for == WaitFor::Human));
        assert_eq!(task.state.as_str(), "review");
        studio.commit(vec![change("t1", TaskInput::Decide { approve: true, comment: String::new() })]).await;
        studio.work().await;
        assert_eq!(studio.status("t1").await, "done");
        assert_eq!(studio.on_main("b.txt"), "two\n");
    });
}

#[test]
fn a_person_rejects_and_the_author_reads_why() {
    play(async |studio| {
        let implementer = studio.agent(
            "implementer",
            ScriptedAgent::new().then(writes("b.txt", "two\n")).then(writes("b.txt", "three\n")),
        );
        studio.add("t1", "approve", NewTask::default()).await;
        studio.work().await;
        let reject = TaskInput::Decide { approve: false, comment: "not two, three".into() };
        studio.commit(vec![change("t1", reject)]).await;
        studio.work().await;
        implementer.assert_prompt_contains(1, "not two, three");
        let task = studio.task("t1").await;
        assert_eq!((task.state.as_str(), task.rejections), ("review", 1));
    });
}

#[test]
fn a_paused_agent_rests_while_others_go_on() {
    play(async |studio| {
        studio.agent("implementer", ScriptedAgent::new().with_handler(|_| writes("b.txt", "two\n")));
        studio.approving();
        studio.add("t1", "pull-request", NewTask::default()).await;
        let lane = Lane::Agent(AgentName::new("gatekeeper").unwrap());
        let hold = Hold { cause: HoldCause::Person, reason: "on leave".into(), until: None };
        studio.commit(vec![Change::HoldLane { lane: lane.clone(), hold }]).await;
        let summary = studio.work().await;
        assert_eq!(studio.status("t1").await, "provisional");
        assert_eq!(summary.held.len(), 1);
        studio.commit(vec![Change::FreeLane { lane }]).await;
        studio.work().await;
        assert_eq!(studio.status("t1").await, "done");
    });
}

#[test]
fn a_drained_worker_finishes_what_it_began_and_begins_nothing() {
    play(async |studio| {
        let drain = studio.stop.after_iteration.clone();
        studio.agent(
            "implementer",
            ScriptedAgent::new().then(writes("b.txt", "two\n").effect(move |request| {
                fs_err::write(request.working_dir.join("b.txt"), "two\n").unwrap();
                drain.cancel();
            })),
        );
        studio.add("t1", "pull-request", NewTask::default()).await;
        studio.add("t2", "pull-request", NewTask::default()).await;
        let summary = studio.work().await;
        assert_eq!(summary.end, WorkEnd::Interrupted);
        assert_eq!(studio.way_of("t1"), ["incoming -> provisional"]);
        assert_eq!(studio.status("t2").await, "incoming");
    });
}

#[test]
fn a_stopped_worker_gives_back_what_it_had_and_blames_nobody() {
    play(async |studio| {
        let stop = studio.stop.clone();
        studio.agent(
            "implementer",
            ScriptedAgent::new().with_handler(move |_| {
                stop.after_iteration.cancel();
                stop.now.cancel();
                ScriptedRun::never_ends()
            }),
        );
        studio.add("t1", "pull-request", NewTask::default()).await;
        let summary = studio.work().await;
        assert_eq!(summary.end, WorkEnd::Interrupted);
        let task = studio.task("t1").await;
        assert_eq!((task.status(), task.attempts, task.losses), ("incoming", 0, 0));
        studio.stop = StopSwitch::default();
        studio.agent("implementer", ScriptedAgent::new().then(writes("b.txt", "two\n")));
        studio.approving();
        studio.work().await;
        assert_eq!(studio.status("t1").await, "done");
    });
}

#[test]
fn two_workers_share_the_tasks_and_none_is_done_twice() {
    play(async |studio| {
        let implementer = studio.agent(
            "implementer",
            ScriptedAgent::new().with_handler(|request| {
                let task = request.task.to_string();
                ScriptedRun::of(Outcome::Done).effect(move |request| {
                    fs_err::write(request.working_dir.join(format!("{task}.txt")), "x\n").unwrap();
                })
            }),
        );
        studio.approving();
        for number in 0..6 {
            studio.add(&format!("t{number}"), "pull-request", NewTask::default()).await;
        }
        let (first, second) = (studio.worker().await, studio.worker().await);
        let (first, second) = tokio::join!(first.run(), second.run());
        assert_eq!(first.unwrap().runs.len() + second.unwrap().runs.len(), 12);
        for number in 0..6 {
            assert_eq!(studio.status(&format!("t{number}")).await, "done");
        }
        let mut worked: Vec<String> = implementer.calls().iter().map(|call| call.task.to_string()).collect();
        worked.sort();
        assert_eq!(worked, ["t0", "t1", "t2", "t3", "t4", "t5"]);
    });
}

#[test]
fn a_task_that_is_taken_back_and_begun_again_waits_until_its_old_agent_is_gone() {
    play(async |studio| {
        let mut away = vec![change("t1", TaskInput::Block { reason: "wait".into() })];
        away.push(change("t1", TaskInput::Unblock));
        let away = person(studio, away);
        let (busy, free) = (tokio_util::sync::CancellationToken::new(), studio.stop.now.clone());
        let told = busy.clone();
        let first = ScriptedAgent::new().with_handler(move |request| {
            away(request);
            told.cancel();
            // It does not know yet that it has lost its task.
            ScriptedRun::never_ends()
        });
        studio.agent("implementer", first);
        studio.add("t1", "pull-request", NewTask::default()).await;
        let old = studio.worker().await;
        let later =
            studio.agent("implementer", ScriptedAgent::new().with_handler(|_| writes("b.txt", "two\n")));
        studio.stop = StopSwitch::default();
        let new = studio.worker().await;
        let drain = studio.stop.after_iteration.clone();
        let events = std::sync::Arc::clone(&studio.events);
        let second = async {
            busy.cancelled().await;
            let watch = async {
                while !events.lock().unwrap().iter().any(|event| matches!(event, WorkEvent::RunEnded { .. }))
                {
                    tokio::task::yield_now().await;
                }
                drain.cancel();
                free.cancel();
            };
            tokio::join!(new.run(), watch).0
        };
        let (old, new) = tokio::join!(old.run(), second);
        old.unwrap();
        new.unwrap();
        later.assert_call_count(0);
        let Standing::Waiting(wait) = studio.task("t1").await.standing else { panic!() };
        assert_eq!(wait.reason, "unreachable: someone else is still busy with the worktree of task t1");
    });
}

use std::collections::BTreeMap;
use std::time::Duration;

use rehearsal_core::guard::{AgentLimits, Limits};
use rehearsal_core::transition::TaskInput;
use rehearsal_core::{
    AgentName, Fence, Hold, HoldCause, Lane, NewTask, Outcome, RunId, SessionName, Standing, Task, TaskId,
    Timestamp, WorkerId,
};
use rehearsal_store::{Change, ClaimRequest, Claimed, Committed};

use crate::bench::{Bench, how_it_ended, id, message, new_session, run_id, session_name, titled};

const LEASE: Duration = Duration::from_secs(90);

fn asking(worker: &str, run: &str) -> ClaimRequest {
    ClaimRequest {
        worker: WorkerId::new(worker).unwrap(),
        run: run_id(run),
        lease: LEASE,
        agents: None,
        stand_in: None,
        session: None,
        limits: Limits::default(),
        may_take_over: true,
    }
}

async fn claim(bench: &Bench, request: ClaimRequest) -> Option<Claimed> {
    match bench.commit(vec![Change::ClaimNext(Box::new(request))]).await.unwrap().pop() {
        Some(Committed::Claimed(claimed)) => claimed.map(|claimed| *claimed),
        other => panic!("not a claim: {other:?}"),
    }
}

async fn next(bench: &Bench, worker: &str, run: &str) -> Option<String> {
    claim(bench, asking(worker, run)).await.map(|claimed| claimed.task.id.to_string())
}

/// Ends the run of a claim, as its worker would: without a row for the run, this is the task's part of it.
async fn finish(bench: &Bench, task: &Task, outcome: Outcome) -> Result<Task, String> {
    let input = TaskInput::EndRun { fence: task.fence, outcome };
    bench.change(task.id.as_str(), input).await.map_err(|error| error.to_string())
}

pub(crate) async fn the_next_task_is_claimed_under_a_lease(bench: &Bench) {
    bench.add("t1", titled("first")).await.unwrap();
    bench.add("t2", titled("second")).await.unwrap();
    let Claimed { task, taken_from } = claim(bench, asking("w1", "run-1")).await.unwrap();
    assert_eq!((task.id.as_str(), task.fence, taken_from), ("t1", Fence(1), None));
    let leases = bench.store.leases().await.unwrap();
    assert_eq!(leases, [(task, bench.now().plus(LEASE))]);
    assert_eq!(next(bench, "w2", "run-2").await.as_deref(), Some("t2"));
    assert_eq!(next(bench, "w3", "run-3").await, None);
}

pub(crate) async fn a_renewed_lease_holds_and_one_that_nobody_took_can_still_be_renewed(bench: &Bench) {
    bench.add("t", titled("t")).await.unwrap();
    let task = claim(bench, asking("w1", "run-1")).await.unwrap().task;
    let claims = [(task.id.clone(), task.fence)];
    bench.pass(Duration::from_secs(80));
    assert_eq!(bench.store.renew(&claims, LEASE, bench.now()).await.unwrap(), [id("t")]);
    bench.pass(Duration::from_secs(80));
    assert_eq!(next(bench, "w2", "run-2").await, None, "it was renewed in time");
    bench.pass(Duration::from_hours(3));
    assert_eq!(bench.store.renew(&claims, LEASE, bench.now()).await.unwrap(), [id("t")], "a long sleep");
    assert_eq!(next(bench, "w2", "run-2").await, None);
}

pub(crate) async fn what_ran_out_is_taken_over_and_the_zombie_is_refused(bench: &Bench) {
    bench.add("t", titled("t")).await.unwrap();
    let zombie = claim(bench, asking("w1", "run-1")).await.unwrap().task;
    bench.commit(vec![Change::StartRun(bench.start_under(&zombie, "run-1"))]).await.unwrap();
    bench.pass(LEASE);
    assert_eq!(claim(bench, ClaimRequest { may_take_over: false, ..asking("w2", "run-2") }).await, None);
    let owner = claim(bench, asking("w2", "run-2")).await.unwrap();
    assert_eq!(owner.taken_from, Some(run_id("run-1")));
    assert_eq!(owner.task.losses, 1);
    let run = bench.store.find_run("run-1").await.unwrap();
    let because = run.end.unwrap().verdict.because;
    assert_eq!(because, ["its worker let the lease run out, and another took over"]);

    let claims = [(zombie.id.clone(), zombie.fence)];
    assert_eq!(bench.store.renew(&claims, LEASE, bench.now()).await.unwrap(), [] as [TaskId; 0]);
    let late = finish(bench, &zombie, Outcome::Done).await;
    assert_eq!(message(late), "fence 1 of task `t` is stale: it is 3 now");
    let end = Box::new(how_it_ended(Outcome::Done, bench.now()));
    let late = bench.commit(vec![Change::EndRun { run: run_id("run-1"), end }]).await;
    assert_eq!(message(late), "run `run-1` has already ended");
    assert!(finish(bench, &owner.task, Outcome::Done).await.unwrap().is_done());
}

/// The probe that four well-known queues fail: a worker that was declared dead reports success.
pub(crate) async fn of_a_thousand_zombies_none_is_believed(bench: &Bench) {
    let mut accepted = 0;
    for number in 0..1_000 {
        let (task, first, second) = (format!("t{number}"), format!("a{number}"), format!("b{number}"));
        bench.add(&task, titled("t")).await.unwrap();
        let zombie = claim(bench, asking("w1", &first)).await.unwrap().task;
        bench.pass(LEASE);
        let owner = claim(bench, asking("w2", &second)).await.unwrap().task;
        accepted += u32::from(finish(bench, &zombie, Outcome::Done).await.is_ok());
        assert!(finish(bench, &owner, Outcome::Done).await.unwrap().is_done());
        accepted += u32::from(finish(bench, &zombie, Outcome::Done).await.is_ok());
    }
    assert_eq!(accepted, 0);
}

pub(crate) async fn a_claim_is_adopted_by_one_process_under_its_fence_and_its_lease(bench: &Bench) {
    bench.add("t", titled("t")).await.unwrap();
    let task = claim(bench, asking("w1", "run-1")).await.unwrap().task;
    let until = bench.now().plus(LEASE);
    bench.pass(Duration::from_secs(30));
    let worker = |name: &str| WorkerId::new(name).unwrap();
    let adopt = |by: &str| TaskInput::Adopt { fence: task.fence, from: worker("w1"), by: worker(by) };
    let adopted = bench.change("t", adopt("w2")).await.unwrap();
    assert_eq!((adopted.fence, adopted.attempts, adopted.losses), (task.fence, 0, 0));
    assert_eq!(bench.store.leases().await.unwrap(), [(adopted, until)], "it is not prolonged by that");
    let held = "task `t` is held by worker `w2`, not by `w1`";
    assert_eq!(message(bench.change("t", adopt("w3")).await), held);
    let late = TaskInput::Lose { stale: task.fence, of: worker("w1") };
    assert_eq!(message(bench.change("t", late).await), held);

    let claims = [(task.id.clone(), task.fence)];
    assert_eq!(bench.store.renew(&claims, LEASE, bench.now()).await.unwrap(), [id("t")]);
    assert_eq!(next(bench, "w3", "run-3").await, None);
    assert!(finish(bench, &task, Outcome::Done).await.unwrap().is_done());
    assert_eq!(bench.store.verify().await.unwrap(), [] as [String; 0]);
}

pub(crate) async fn a_lease_ends_with_its_claim(bench: &Bench) {
    bench.add("t", titled("t")).await.unwrap();
    let task = claim(bench, asking("w1", "run-1")).await.unwrap().task;
    bench.change("t", TaskInput::Cancel).await.unwrap();
    let claims = [(task.id.clone(), task.fence)];
    assert_eq!(bench.store.renew(&claims, LEASE, bench.now()).await.unwrap(), [] as [TaskId; 0]);
    assert_eq!(bench.store.leases().await.unwrap(), []);
    bench.pass(LEASE);
    assert_eq!(next(bench, "w2", "run-2").await, None);
}

pub(crate) async fn a_task_that_loses_worker_after_worker_is_given_up(bench: &Bench) {
    bench.add("t", titled("t")).await.unwrap();
    for number in 0..4 {
        assert_eq!(next(bench, "w", &format!("run-{number}")).await.as_deref(), Some("t"));
        bench.pass(LEASE);
    }
    assert_eq!(next(bench, "w", "run-5").await, None);
    let task = bench.task("t").await;
    assert_eq!(
        (task.status(), task.feedback.as_ref().unwrap().text.as_str()),
        ("failed", "its worker was lost 4 times")
    );
}

pub(crate) async fn a_claim_without_a_lease_is_never_taken_over(bench: &Bench) {
    bench.add("t", titled("t")).await.unwrap();
    bench.claim("t", "run-1").await.unwrap();
    bench.pass(Duration::from_hours(100));
    assert_eq!(next(bench, "w2", "run-2").await, None);
}

pub(crate) async fn sessions_take_turns(bench: &Bench) {
    bench.commit(vec![new_session("alpha"), new_session("beta")]).await.unwrap();
    let of = |session: &str| NewTask { session: Some(session_name(session)), ..titled("t") };
    for number in 0..3 {
        bench.add(&format!("a{number}"), of("alpha")).await.unwrap();
    }
    bench.add("b0", of("beta")).await.unwrap();
    bench.add("c0", titled("of no session")).await.unwrap();
    let mut order = Vec::new();
    for number in 0..5 {
        let task = claim(bench, asking("w", &format!("run-{number}"))).await.unwrap().task;
        finish(bench, &task, Outcome::Done).await.unwrap();
        order.push(task.id.to_string());
    }
    assert_eq!(order, ["a0", "b0", "c0", "a1", "a2"]);
}

pub(crate) async fn a_session_with_less_in_work_comes_first(bench: &Bench) {
    bench.commit(vec![new_session("alpha"), new_session("beta")]).await.unwrap();
    let of = |session: &str| NewTask { session: Some(session_name(session)), ..titled("t") };
    for number in 0..4 {
        bench.add(&format!("a{number}"), of("alpha")).await.unwrap();
    }
    for number in 0..2 {
        bench.add(&format!("b{number}"), of("beta")).await.unwrap();
    }
    let mut order = Vec::new();
    for number in 0..6 {
        order.push(next(bench, "w", &format!("run-{number}")).await.unwrap());
    }
    assert_eq!(order, ["a0", "b0", "a1", "b1", "a2", "a3"]);
}

pub(crate) async fn a_worker_can_ask_for_some_agents_or_one_session_only(bench: &Bench) {
    bench.commit(vec![new_session("alpha")]).await.unwrap();
    bench.add("t", titled("t")).await.unwrap();
    let of = |name: &str| Some([AgentName::new(name).unwrap()].into());
    assert_eq!(claim(bench, ClaimRequest { agents: of("gatekeeper"), ..asking("w", "r1") }).await, None);
    let session = Some(session_name("alpha"));
    assert_eq!(claim(bench, ClaimRequest { session, ..asking("w", "r1") }).await, None);
    assert!(claim(bench, ClaimRequest { agents: of("implementer"), ..asking("w", "r1") }).await.is_some());
}

pub(crate) async fn a_held_lane_rests_until_it_is_freed_or_its_time_is_over(bench: &Bench) {
    bench.add("t", titled("t")).await.unwrap();
    let lane = Lane::Agent(AgentName::new("implementer").unwrap());
    let hold = |until| Hold { cause: HoldCause::Person, reason: "the fair".into(), until };
    bench.commit(vec![Change::HoldLane { lane: lane.clone(), hold: hold(None) }]).await.unwrap();
    assert_eq!(next(bench, "w", "r1").await, None);
    let why = bench.store.hindrance(&bench.task("t").await, &Limits::default(), bench.now()).await.unwrap();
    assert_eq!(why.unwrap().to_string(), "agent `implementer` is held: the fair");
    // Another agent that would work on it is not held.
    let stand_in = AgentName::new("second").ok();
    let task = claim(bench, ClaimRequest { stand_in, ..asking("w", "r0") }).await.unwrap().task;
    finish(bench, &task, Outcome::Cancelled).await.unwrap();

    let until = bench.now().plus(LEASE);
    bench.commit(vec![Change::HoldLane { lane: lane.clone(), hold: hold(Some(until)) }]).await.unwrap();
    assert_eq!(bench.store.next_wake(bench.now()).await.unwrap(), Some(until));
    bench.pass(LEASE);
    let task = claim(bench, asking("w", "r1")).await.unwrap().task;
    finish(bench, &task, Outcome::Cancelled).await.unwrap();

    bench.commit(vec![Change::HoldLane { lane: Lane::All, hold: hold(None) }]).await.unwrap();
    assert_eq!(next(bench, "w", "r2").await, None);
    bench
        .commit(vec![Change::FreeLane { lane: Lane::All }, Change::FreeLane { lane: Lane::All }])
        .await
        .unwrap();
    assert_eq!(next(bench, "w", "r2").await.as_deref(), Some("t"));
    let names = bench.event_names().await;
    assert_eq!(names.iter().filter(|name| name.starts_with("lane_")).count(), 4, "{names:?}");
}

pub(crate) async fn limits_hold_back_what_is_too_much(bench: &Bench) {
    for name in ["t1", "t2"] {
        bench.add(name, titled(name)).await.unwrap();
    }
    let one = AgentLimits { at_once: Some(1), ..AgentLimits::default() };
    let agents = BTreeMap::from([(AgentName::new("implementer").unwrap(), one)]);
    let limits = Limits { at_once: None, agents };
    let ask = |run: &str| ClaimRequest { limits: limits.clone(), ..asking("w", run) };
    assert!(claim(bench, ask("r1")).await.is_some());
    assert_eq!(claim(bench, ask("r2")).await, None);
    let why = bench.store.hindrance(&bench.task("t2").await, &limits, bench.now()).await.unwrap();
    assert_eq!(why.unwrap().to_string(), "agent `implementer` has 1 runs under way, and may have no more");
    bench.pass(LEASE);
    assert!(claim(bench, ask("r2")).await.is_some(), "a lease that ran out counts no more");
}

pub(crate) async fn tasks_that_touch_the_same_are_not_claimed_together(bench: &Bench) {
    let touching = |what: &str| NewTask { touches: vec![what.into()], ..titled("t") };
    bench.add("t1", touching("src/a.rs")).await.unwrap();
    bench.add("t2", touching("src/*.rs")).await.unwrap();
    bench.add("t3", touching("docs/*.md")).await.unwrap();
    assert_eq!(next(bench, "w", "r1").await.as_deref(), Some("t1"));
    assert_eq!(next(bench, "w", "r2").await.as_deref(), Some("t3"));
    assert_eq!(next(bench, "w", "r3").await, None);
}

pub(crate) async fn the_next_wake_is_the_earliest_of_all(bench: &Bench) {
    assert_eq!(bench.store.next_wake(bench.now()).await.unwrap(), None);
    bench.add("t", titled("t")).await.unwrap();
    assert_eq!(bench.store.next_wake(bench.now()).await.unwrap(), None, "it can be claimed now");
    let task = claim(bench, asking("w", "r1")).await.unwrap().task;
    assert_eq!(bench.store.next_wake(bench.now()).await.unwrap(), Some(bench.now().plus(LEASE)));
    let until = Timestamp(bench.now().0 + 5_000);
    finish(bench, &task, Outcome::RateLimited { until: Some(until) }).await.unwrap();
    assert_eq!(bench.store.next_wake(bench.now()).await.unwrap(), Some(until));
}

pub(crate) async fn a_watcher_hears_of_every_commit(bench: &Bench) {
    let mut changes = bench.store.changes();
    changes.mark_unchanged();
    bench.add("t", titled("t")).await.unwrap();
    changes.changed().await.unwrap();
}

/// Names that a table must not confuse.
pub(crate) async fn lanes_of_all_names_are_told_apart(bench: &Bench) {
    for session in ["a", "a-b", "b"] {
        bench.commit(vec![new_session(session)]).await.unwrap();
        let session: SessionName = session_name(session);
        let name = format!("of-{session}");
        bench.add(&name, NewTask { session: Some(session.clone()), ..titled("t") }).await.unwrap();
    }
    let mut seen = Vec::new();
    for (number, session) in ["a", "a-b", "b"].into_iter().enumerate() {
        let run: RunId = run_id(&format!("r{number}"));
        let request = ClaimRequest { session: Some(session_name(session)), run, ..asking("w", "r") };
        let task = claim(bench, request).await.unwrap().task;
        assert!(matches!(task.standing, Standing::Claimed(_)));
        seen.push(task.id.to_string());
    }
    assert_eq!(seen, ["of-a", "of-a-b", "of-b"]);
}

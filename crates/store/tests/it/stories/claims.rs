use std::time::Duration;

use rehearsal_core::transition::TaskInput;
use rehearsal_core::{NewTask, Outcome, Priority, Timestamp};
use rehearsal_store::Change;

use crate::bench::{Bench, id, is_claimed, message, new_session, session_name, titled};

pub(crate) async fn the_most_urgent_comes_first_then_the_oldest(bench: &Bench) {
    let flow = std::sync::Arc::clone(&bench.flow);
    let tasks = vec![(id("z"), titled("first of two at once")), (id("a"), titled("second of two at once"))];
    bench.commit(vec![Change::AddTasks { tasks, flow }]).await.unwrap();
    bench.add("later", titled("later")).await.unwrap();
    bench.add("high", NewTask { priority: Priority::High, ..titled("high") }).await.unwrap();
    let mut order = Vec::new();
    while let Some(next) = bench.next().await {
        bench.change(&next, TaskInput::Finish).await.unwrap();
        order.push(next);
    }
    assert_eq!(order, ["high", "z", "a", "later"]);
}

pub(crate) async fn a_session_has_its_own_queue(bench: &Bench) {
    bench.commit(vec![new_session("alpha")]).await.unwrap();
    let alpha = session_name("alpha");
    bench.add("outside", titled("outside")).await.unwrap();
    assert!(bench.store.next_task(Some(&alpha), bench.now()).await.unwrap().is_none());
    bench.add("inside", NewTask { session: Some(alpha.clone()), ..titled("inside") }).await.unwrap();
    assert_eq!(bench.store.next_task(Some(&alpha), bench.now()).await.unwrap().unwrap().id, id("inside"));
    assert_eq!(bench.next().await.as_deref(), Some("outside"));
}

pub(crate) async fn a_task_is_claimed_once(bench: &Bench) {
    bench.add("t", titled("t")).await.unwrap();
    bench.claim("t", "run-1").await.unwrap();
    assert_eq!(bench.next().await, None);
    assert_eq!(message(bench.claim("t", "run-2").await), "task `t` is being worked on by run `run-1`");
}

pub(crate) async fn a_zombie_changes_nothing(bench: &Bench) {
    bench.add("t", titled("t")).await.unwrap();
    let zombie = bench.claim("t", "run-1").await.unwrap();
    bench.change("t", TaskInput::Release { fence: zombie.start.fence }).await.unwrap();
    let owner = bench.claim("t", "run-2").await.unwrap();
    assert!(owner.start.fence > zombie.start.fence);
    let late = bench.end(&zombie, Outcome::Done).await;
    assert_eq!(message(late), "fence 1 of task `t` is stale: it is 3 now");
    assert!(is_claimed(&bench.task("t").await));
    assert!(bench.store.find_run("run-1").await.unwrap().end.is_none(), "its end was refused with it");
    assert!(bench.end(&owner, Outcome::Done).await.unwrap().is_done());
}

pub(crate) async fn a_wait_that_is_over_can_be_claimed(bench: &Bench) {
    bench.add("t", titled("t")).await.unwrap();
    let run = bench.claim("t", "run-1").await.unwrap();
    let until = bench.now().plus(Duration::from_hours(5));
    bench.end(&run, Outcome::RateLimited { until: Some(until) }).await.unwrap();
    let next = async |now: Timestamp| bench.store.next_task(None, now).await.unwrap().map(|task| task.id);
    assert_eq!(next(Timestamp(until.0 - 1)).await, None);
    assert_eq!(next(until).await, Some(id("t")));
}

pub(crate) async fn a_run_starts_only_under_its_own_claim(bench: &Bench) {
    let task = bench.add("t", titled("t")).await.unwrap();
    let start = bench.start_of(&task, "run-1");
    let unclaimed = bench.commit(vec![Change::StartRun(start.clone())]).await;
    assert_eq!(message(unclaimed), "fence 1 of task `t` is stale: it is 0 now");
    let claim = TaskInput::Claim { worker: start.worker.clone(), run: start.id.clone() };
    bench.change("t", claim).await.unwrap();
    let other = bench.start_of(&task, "run-2");
    assert_eq!(
        message(bench.commit(vec![Change::StartRun(other)]).await),
        "fence 1 of task `t` is stale: it is 1 now"
    );
    bench.commit(vec![Change::StartRun(start.clone())]).await.unwrap();
    assert_eq!(message(bench.commit(vec![Change::StartRun(start)]).await), "id `run-1` is already taken");
}

use std::sync::Arc;

use rehearsal_core::transition::TaskInput;
use rehearsal_core::{Task, TaskEdit};
use rehearsal_store::{Change, CommitError};

use crate::bench::{Bench, after, id, message, titled};

async fn depend(bench: &Bench, name: &str, on: &[&str]) -> Result<Task, CommitError> {
    let edit = TaskEdit { depends_on: Some(after(on).depends_on), ..TaskEdit::default() };
    bench.change(name, TaskInput::Edit { edit }).await
}

pub(crate) async fn a_task_waits_for_all_it_depends_on(bench: &Bench) {
    bench.add("one", titled("one")).await.unwrap();
    bench.add("two", titled("two")).await.unwrap();
    bench.add("last", after(&["one", "two", "one"])).await.unwrap();
    bench.change("one", TaskInput::Finish).await.unwrap();
    assert_eq!(bench.next().await.as_deref(), Some("two"));
    bench.change("two", TaskInput::Block { reason: "a key".into() }).await.unwrap();
    assert_eq!(bench.next().await, None);
    bench.change("two", TaskInput::Finish).await.unwrap();
    assert_eq!(bench.next().await.as_deref(), Some("last"));
}

pub(crate) async fn a_cancelled_task_is_not_done(bench: &Bench) {
    bench.add("one", titled("one")).await.unwrap();
    bench.add("last", after(&["one"])).await.unwrap();
    bench.change("one", TaskInput::Cancel).await.unwrap();
    assert_eq!(bench.next().await, None);
    depend(bench, "last", &[]).await.unwrap();
    assert_eq!(bench.next().await.as_deref(), Some("last"));
}

pub(crate) async fn a_task_that_begins_anew_is_waited_for_again(bench: &Bench) {
    bench.add("one", titled("one")).await.unwrap();
    bench.change("one", TaskInput::Finish).await.unwrap();
    bench.add("last", after(&["one"])).await.unwrap();
    assert_eq!(bench.next().await.as_deref(), Some("last"));
    bench.change("one", TaskInput::Retry).await.unwrap();
    bench.change("one", TaskInput::Block { reason: "a key".into() }).await.unwrap();
    assert_eq!(bench.next().await, None);
}

pub(crate) async fn an_unknown_dependency_is_refused(bench: &Bench) {
    let refused = bench.add("last", after(&["nowhere"])).await;
    assert_eq!(message(refused), "task `last` depends on `nowhere`, which does not exist");
    bench.add("last", titled("last")).await.unwrap();
    let refused = depend(bench, "last", &["nowhere"]).await;
    assert_eq!(message(refused), "task `last` depends on `nowhere`, which does not exist");
    assert_eq!(message(depend(bench, "last", &["last"]).await), "task `last` cannot depend on itself");
}

pub(crate) async fn tasks_that_would_wait_for_each_other_are_refused(bench: &Bench) {
    let tasks = vec![(id("x"), after(&["y"])), (id("y"), after(&["z"])), (id("z"), after(&["x"]))];
    let around = bench.commit(vec![Change::AddTasks { tasks, flow: Arc::clone(&bench.flow) }]).await;
    assert_eq!(message(around), "these tasks would wait for each other: `x` -> `y` -> `z` -> `x`");

    bench.add("a", titled("a")).await.unwrap();
    bench.add("b", after(&["a"])).await.unwrap();
    bench.add("side", after(&["a"])).await.unwrap();
    bench.add("c", after(&["side", "b"])).await.unwrap();
    let around = depend(bench, "a", &["c"]).await;
    assert_eq!(message(around), "these tasks would wait for each other: `a` -> `c` -> `b` -> `a`");
    assert!(bench.task("a").await.depends_on.is_empty());
    depend(bench, "c", &["a"]).await.unwrap();
    depend(bench, "b", &["c"]).await.unwrap();
}

pub(crate) async fn a_batch_may_depend_on_itself_in_any_order(bench: &Bench) {
    let tasks =
        vec![(id("roof"), after(&["walls"])), (id("walls"), after(&["ground"])), (id("ground"), titled("g"))];
    bench.commit(vec![Change::AddTasks { tasks, flow: Arc::clone(&bench.flow) }]).await.unwrap();
    let mut order = Vec::new();
    while let Some(next) = bench.next().await {
        bench.change(&next, TaskInput::Finish).await.unwrap();
        order.push(next);
    }
    assert_eq!(order, ["ground", "walls", "roof"]);
}

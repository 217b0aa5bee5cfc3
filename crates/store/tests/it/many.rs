//! A list that is far too long.

use std::sync::Arc;

use rehearsal_core::transition::TaskInput;
use rehearsal_core::{NewTask, TaskId};
use rehearsal_store::{Change, Committed, StatusFilter, TaskQuery};

use crate::bench::{Bench, new_session, session_name, titled};

const MANY: u64 = 100_000;

/// A chain in which each waits for the one that was added after it: the last is the only one that can be worked on.
pub(crate) async fn a_hundred_thousand_tasks(bench: &Bench) {
    let alpha = session_name("alpha");
    bench.commit(vec![new_session("alpha")]).await.unwrap();
    let number = |number: u64| TaskId::new(format!("t{number:06}")).unwrap();
    let task = |position: u64| {
        let depends_on = (position + 1 < MANY).then(|| number(position + 1)).into_iter().collect();
        let new = NewTask { session: Some(alpha.clone()), depends_on, ..titled(&format!("task {position}")) };
        (number(position), new)
    };
    let change = Change::AddTasks { tasks: (0..MANY).map(task).collect(), flow: Arc::clone(&bench.flow) };
    match bench.commit(vec![change]).await.unwrap().pop() {
        Some(Committed::Tasks(tasks)) => assert_eq!(tasks.len(), 100_000),
        other => panic!("{other:?}"),
    }
    for position in [MANY - 1, MANY - 2, MANY - 3] {
        let next = bench.store.next_task(Some(&alpha), bench.now()).await.unwrap().unwrap();
        assert_eq!(next.id, number(position));
        assert_eq!(bench.next().await.unwrap(), next.id.to_string());
        bench.change(next.id.as_str(), TaskInput::Finish).await.unwrap();
    }
    assert_eq!(bench.store.count_tasks(Some(&alpha)).await.unwrap().open, MANY - 3);
    let last = TaskQuery {
        status: StatusFilter::Open,
        after: Some(number(MANY - 5)),
        limit: Some(10),
        ..TaskQuery::default()
    };
    assert_eq!(bench.listed(last).await, [number(MANY - 4).to_string()]);
    assert_eq!(bench.store.find_task("t012345").await.unwrap().title, "task 12345");
}

use std::sync::Arc;

use rehearsal_core::flow;
use rehearsal_core::transition::TaskInput;
use rehearsal_core::{NewTask, Priority, StateName, TaskEdit};
use rehearsal_store::{Change, FindError, StatusFilter, TaskQuery};

use crate::bench::{Bench, id, message, new_session, session_name, titled};

pub(crate) async fn a_task_begins_where_its_flow_begins(bench: &Bench) {
    let new = NewTask {
        body: "Say \"hällo\"\n\u{0}\u{1f600} to <all>.".into(),
        criteria: vec!["it says so".into()],
        labels: vec!["good".into()],
        budget: rehearsal_core::Budget { usd: Some(0.1), tokens: Some(u64::from(u32::MAX)), turns: None },
        ..titled("add a greeting")
    };
    let added = bench.add("greet", new.clone()).await.unwrap();
    assert_eq!((added.state.as_str(), added.status()), ("todo", "todo"));
    assert_eq!((&added.title, &added.body, added.budget), (&new.title, &new.body, new.budget));
    assert_eq!(added, bench.task("greet").await);
    assert!(bench.store.task(&id("other")).await.unwrap().is_none());
}

pub(crate) async fn a_task_stays_with_the_version_of_its_flow(bench: &Bench) {
    bench.add("old", titled("old")).await.unwrap();
    let renamed = flow::parse(&bench.flow.source.replace("todo", "backlog")).unwrap();
    let change =
        Change::AddTask { task: Box::new(titled("new")), id: id("new"), flow: Arc::new(renamed.clone()) };
    bench.commit(vec![change]).await.unwrap();
    for name in ["old", "new"] {
        bench.change(name, TaskInput::Cancel).await.unwrap();
        bench.change(name, TaskInput::Retry).await.unwrap();
    }
    assert_eq!(bench.task("old").await.state.as_str(), "todo");
    assert_eq!(bench.task("new").await.state.as_str(), "backlog");
    assert_eq!(*bench.store.flow(&renamed.version).await.unwrap(), renamed);
    let unknown = message(bench.store.flow("000000000000").await);
    assert_eq!(unknown, "the database is damaged: version `000000000000` of a flow is missing");
}

pub(crate) async fn an_id_is_given_once(bench: &Bench) {
    bench.add("same", titled("one")).await.unwrap();
    assert_eq!(message(bench.add("same", titled("two")).await), "id `same` is already taken");
    let tasks = vec![(id("twin"), titled("one")), (id("twin"), titled("two"))];
    let twins = bench.commit(vec![Change::AddTasks { tasks, flow: Arc::clone(&bench.flow) }]).await;
    assert_eq!(message(twins), "id `twin` is already taken");
    assert_eq!(message(bench.change("gone", TaskInput::Finish).await), "unknown task `gone`");
}

pub(crate) async fn a_prefix_is_enough_if_it_is_unique(bench: &Bench) {
    for name in ["k3f9x2aa", "k3f9zzzz", "m0000000"] {
        bench.add(name, titled(name)).await.unwrap();
    }
    assert_eq!(bench.store.find_task("m").await.unwrap().id, id("m0000000"));
    assert_eq!(bench.store.find_task("k3f9x").await.unwrap().id, id("k3f9x2aa"));
    let ambiguous = bench.store.find_task("k3").await;
    assert_eq!(message(ambiguous), "`k3` could be any of these tasks: k3f9x2aa, k3f9zzzz");
    assert_eq!(message(bench.store.find_task("").await), "there is no task ``");
    assert_eq!(message(bench.store.find_task("k3%").await), "there is no task `k3%`");
}

pub(crate) async fn a_whole_id_wins_over_longer_ones(bench: &Bench) {
    bench.add("greet-2", titled("two")).await.unwrap();
    bench.add("greet", titled("one")).await.unwrap();
    assert_eq!(bench.store.find_task("greet").await.unwrap().title, "one");
}

pub(crate) async fn an_id_with_a_slip_is_answered_with_the_id(bench: &Bench) {
    bench.add("k3f9x2aa", titled("one")).await.unwrap();
    let near = async |prefix: &str| match bench.store.find_task(prefix).await {
        Err(FindError::NotFound { near, .. }) => near,
        other => panic!("{other:?}"),
    };
    assert_eq!(near("k3f8").await.as_deref(), Some("k3f9x2aa"));
    assert_eq!(near("k3f9x2ab").await.as_deref(), Some("k3f9x2aa"));
    assert_eq!(near("zz").await, None);
    assert_eq!(near("qqqqqqqq").await, None);
}

async fn a_mixed_list(bench: &Bench) {
    bench.commit(vec![new_session("alpha")]).await.unwrap();
    let alpha = Some(session_name("alpha"));
    let labels = vec!["docs".to_owned()];
    bench.add("low", NewTask { priority: Priority::Low, ..titled("tidy up") }).await.unwrap();
    bench.add("ready", NewTask { session: alpha.clone(), ..titled("Fix the Parser") }).await.unwrap();
    bench.add("done", NewTask { labels, ..titled("write docs") }).await.unwrap();
    bench
        .add("stuck", NewTask { session: alpha, body: "the parser again".into(), ..titled("t") })
        .await
        .unwrap();
    bench.add("busy", titled("busy")).await.unwrap();
    bench.add("urgent", NewTask { priority: Priority::Urgent, ..titled("now") }).await.unwrap();
    bench.change("done", TaskInput::Finish).await.unwrap();
    bench.change("stuck", TaskInput::Block { reason: "a key".into() }).await.unwrap();
    bench.claim("busy", "run-1").await.unwrap();
}

pub(crate) async fn lists_can_be_narrowed_down(bench: &Bench) {
    a_mixed_list(bench).await;
    let status = |status: StatusFilter| TaskQuery { status, ..TaskQuery::default() };
    let words =
        |words: &[&str]| status(StatusFilter::Words(words.iter().map(|&word| word.to_owned()).collect()));
    let label = |label: &str| TaskQuery { label: Some(label.into()), ..TaskQuery::default() };
    let text = |text: &str| TaskQuery { text: Some(text.into()), ..TaskQuery::default() };
    let state = Some(StateName::new("todo").unwrap());
    let of_alpha = TaskQuery { session: Some(session_name("alpha")), ..TaskQuery::default() };
    let cases = [
        (status(StatusFilter::All), "urgent ready done stuck busy low"),
        (status(StatusFilter::Open), "urgent ready stuck busy low"),
        (status(StatusFilter::Ended), "done"),
        (words(&["working", "blocked"]), "stuck busy"),
        (words(&["todo"]), "urgent ready low"),
        (words(&["claimed"]), "busy"),
        (words(&["waiting"]), ""),
        (TaskQuery { state, ..TaskQuery::default() }, "urgent ready stuck busy low"),
        (label("docs"), "done"),
        (label("doc"), ""),
        (text("PARSER"), "ready stuck"),
        (of_alpha.clone(), "ready stuck"),
        (TaskQuery { status: StatusFilter::Open, limit: Some(1), ..of_alpha }, "ready"),
    ];
    for (query, expected) in cases {
        assert_eq!(bench.listed(query.clone()).await.join(" "), expected, "{query:?}");
    }
}

pub(crate) async fn a_list_can_be_read_in_pages(bench: &Bench) {
    a_mixed_list(bench).await;
    let mut seen = Vec::new();
    let mut query = TaskQuery { limit: Some(4), ..TaskQuery::default() };
    loop {
        let page = bench.listed(query.clone()).await;
        let Some(last) = page.last() else { break };
        query.after = Some(id(last));
        seen.extend(page);
    }
    assert_eq!(seen.join(" "), "urgent ready done stuck busy low");
    let edit = TaskEdit { priority: Some(Priority::Urgent), ..TaskEdit::default() };
    bench.change("low", TaskInput::Edit { edit }).await.unwrap();
    assert_eq!(bench.listed(TaskQuery { limit: Some(2), ..TaskQuery::default() }).await, ["low", "urgent"]);
}

pub(crate) async fn counts_use_the_words_of_listings(bench: &Bench) {
    a_mixed_list(bench).await;
    let counts = bench.store.count_tasks(None).await.unwrap();
    let words: Vec<(&str, u64)> =
        counts.by_status.iter().map(|(word, count)| (word.as_str(), *count)).collect();
    assert_eq!(words, [("blocked", 1), ("done", 1), ("todo", 3), ("working", 1)]);
    assert_eq!((counts.open, counts.done, counts.total), (5, 1, 6));
    let alpha = bench.store.count_tasks(Some(&session_name("alpha"))).await.unwrap();
    assert_eq!((alpha.open, alpha.total), (2, 2));
}

use std::collections::BTreeSet;
use std::sync::Arc;

use rehearsal_core::transition::{Refusal, TaskInput};
use rehearsal_core::{Actor, EventKind, Outcome, SessionEdit, Timestamp};
use rehearsal_store::{Change, CommitError, EventQuery, TaskQuery};

use crate::bench::{Bench, id, message, new_session, run_id, session_name, titled};

pub(crate) async fn all_changes_are_made_or_none(bench: &Bench) {
    bench.add("first", titled("first")).await.unwrap();
    let before = bench.event_names().await;
    let changes = vec![
        new_session("alpha"),
        bench.adding("second", titled("second")),
        Change::ChangeTask { id: id("first"), input: TaskInput::Finish },
        Change::ChangeTask { id: id("second"), input: TaskInput::Unblock },
    ];
    match bench.commit(changes).await {
        Err(CommitError::Refused { index: 3, refusal: Refusal::NotBlocked { .. } }) => {}
        other => panic!("{other:?}"),
    }
    assert!(bench.store.sessions().await.unwrap().is_empty());
    assert_eq!(bench.listed(TaskQuery::default()).await, ["first"]);
    assert_eq!(bench.task("first").await.status(), "todo");
    assert_eq!(bench.event_names().await, before);
}

pub(crate) async fn a_later_change_sees_the_earlier_ones(bench: &Bench) {
    let in_session = rehearsal_core::NewTask { session: Some(session_name("alpha")), ..titled("first") };
    let changes = vec![
        new_session("alpha"),
        bench.adding("first", in_session),
        Change::ChangeTask { id: id("first"), input: TaskInput::Block { reason: "a key is missing".into() } },
    ];
    let last = bench.commit(changes).await.unwrap().pop().unwrap().task().unwrap();
    assert_eq!(last.status(), "blocked");
    assert_eq!(last, bench.task("first").await);
}

/// The last write of a commit goes another way than others: as text, within a text.
pub(crate) async fn no_word_is_taken_for_a_command(bench: &Bench) {
    bench.add("first", titled("first")).await.unwrap();
    let words = "it's \\' $1 $$ '); DROP TABLE tasks; -- \u{0} \n \u{e9} \u{1f600} '' \\";
    for reason in [words, "'", "\\"] {
        let input = TaskInput::Block { reason: reason.to_owned() };
        let change = Change::ChangeTask { id: id("first"), input: input.clone() };
        let task = bench.commit(vec![change]).await.unwrap().pop().unwrap().task().unwrap();
        assert_eq!(task, bench.task("first").await);
        let last = bench.store.events(&EventQuery::default()).await.unwrap().pop().unwrap();
        assert!(
            matches!(&last.kind, EventKind::TaskChanged { input: told, .. } if *told == input),
            "{last:?}"
        );
        let change = Change::ChangeTask { id: id("first"), input: TaskInput::Unblock };
        bench.commit(vec![change]).await.unwrap();
    }
}

pub(crate) async fn every_change_leaves_one_event(bench: &Bench) {
    bench.commit(vec![new_session("alpha")]).await.unwrap();
    let edit = SessionEdit { context: Some("be quick".into()), ..SessionEdit::default() };
    let name = session_name("alpha");
    let text = "half of it is done".to_owned();
    bench
        .commit(vec![
            Change::EditSession { name: name.clone(), edit },
            Change::AddProgress { session: name, run: None, text },
            Change::AddTasks {
                tasks: vec![(id("one"), titled("one")), (id("two"), titled("two"))],
                flow: Arc::clone(&bench.flow),
            },
        ])
        .await
        .unwrap();
    let run = bench.claim("one", "run-1").await.unwrap();
    bench.end(&run, Outcome::Done).await.unwrap();
    assert_eq!(
        bench.event_names().await,
        [
            "session_added",
            "session_edited",
            "progress_added",
            "task_added",
            "task_added",
            "task_changed",
            "run_started",
            "run_ended",
            "task_changed",
        ]
    );
    let events = bench.store.events(&EventQuery::default()).await.unwrap();
    assert!(events.windows(2).all(|pair| pair[0].seq < pair[1].seq));
    match &events[8].kind {
        EventKind::TaskChanged { from, to, .. } => {
            assert_eq!((from.as_str(), to.as_str()), ("todo", "done"));
        }
        other => panic!("{other:?}"),
    }
}

pub(crate) async fn the_log_can_be_read_by_whom_it_is_about(bench: &Bench) {
    let alpha = session_name("alpha");
    let in_alpha = rehearsal_core::NewTask { session: Some(alpha.clone()), ..titled("one") };
    bench.commit(vec![new_session("alpha"), bench.adding("one", in_alpha)]).await.unwrap();
    bench.add("two", titled("two")).await.unwrap();
    let run = bench.claim("one", "run-1").await.unwrap();
    bench.end(&run, Outcome::Done).await.unwrap();
    let by_agent = Change::ChangeTask { id: id("two"), input: TaskInput::Finish };
    bench.store.commit(Actor::Run(run_id("run-1")), Timestamp(5_000), vec![by_agent]).await.unwrap();

    let names = async |query: EventQuery| -> Vec<&'static str> {
        bench.store.events(&query).await.unwrap().iter().map(|event| event.kind.name()).collect()
    };
    let of_task = EventQuery { task: Some(id("two")), ..EventQuery::default() };
    assert_eq!(names(of_task).await, ["task_added", "task_changed"]);
    let of_session = EventQuery { session: Some(alpha), ..EventQuery::default() };
    assert_eq!(
        names(of_session).await,
        ["session_added", "task_added", "task_changed", "run_started", "run_ended", "task_changed"]
    );
    let of_run = EventQuery { run: Some(run_id("run-1")), ..EventQuery::default() };
    let run_events = bench.store.events(&of_run).await.unwrap();
    assert_eq!(
        run_events.len(),
        5,
        "its claim, its start, its end, the end of the claim, and what it did itself"
    );
    assert_eq!(run_events[4].actor, Actor::Run(run_id("run-1")));
    assert_eq!(run_events[4].at, Timestamp(5_000));
    let page = EventQuery { after: run_events[0].seq, limit: Some(2), ..of_run };
    assert_eq!(bench.store.events(&page).await.unwrap(), run_events[1..3]);
}

pub(crate) async fn many_writers_queue_up(bench: &Bench) {
    bench.add("wanted", titled("wanted")).await.unwrap();
    let mut writers = tokio::task::JoinSet::new();
    for number in 0..20 {
        let store = Arc::clone(&bench.store);
        let claim = Change::ChangeTask {
            id: id("wanted"),
            input: TaskInput::Claim {
                worker: rehearsal_core::WorkerId::new(format!("worker-{number}")).unwrap(),
                run: run_id(&format!("run-{number}")),
            },
        };
        writers.spawn(async move { store.commit(Actor::User, Timestamp(2_000), vec![claim]).await });
    }
    let results = writers.join_all().await;
    let (won, lost): (Vec<_>, Vec<_>) = results.into_iter().partition(Result::is_ok);
    assert_eq!((won.len(), lost.len()), (1, 19));
    let reasons: BTreeSet<String> = lost.into_iter().map(message).collect();
    assert_eq!(reasons.len(), 1, "all lost to the same run: {reasons:?}");
}

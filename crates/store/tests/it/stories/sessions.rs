use rehearsal_core::transition::TaskInput;
use rehearsal_core::{NewTask, SessionEdit};
use rehearsal_store::{Change, CommitError, FindError};

use crate::bench::{Bench, message, new_session, run_id, session_name, titled};

pub(crate) async fn a_name_is_used_once(bench: &Bench) {
    bench.commit(vec![new_session("alpha")]).await.unwrap();
    let again = bench.commit(vec![new_session("alpha")]).await;
    assert_eq!(message(again), "session `alpha` already exists");
}

pub(crate) async fn a_slip_in_a_name_is_answered_with_the_name(bench: &Bench) {
    bench.commit(vec![new_session("alpha"), new_session("zeta")]).await.unwrap();
    let task = NewTask { session: Some(session_name("alphq")), ..titled("t") };
    let refused = bench.add("t", task).await;
    match &refused {
        Err(CommitError::UnknownSession { near, .. }) => assert_eq!(near.as_deref(), Some("alpha")),
        other => panic!("{other:?}"),
    }
    assert_eq!(message(refused), "unknown session `alphq`");
    let not_found = bench.store.session(&session_name("alph")).await;
    match &not_found {
        Err(FindError::NotFound { near, .. }) => assert_eq!(near.as_deref(), Some("alpha")),
        other => panic!("{other:?}"),
    }
    assert_eq!(message(not_found), "there is no session `alph`");
    match bench.store.session(&session_name("nothing-like-it")).await {
        Err(FindError::NotFound { near: None, .. }) => {}
        other => panic!("{other:?}"),
    }
}

pub(crate) async fn an_edit_changes_only_what_it_names(bench: &Bench) {
    bench.commit(vec![new_session("alpha")]).await.unwrap();
    let before = bench.store.session(&session_name("alpha")).await.unwrap();
    let edit = SessionEdit { description: Some("another".into()), ..SessionEdit::default() };
    bench.commit(vec![Change::EditSession { name: session_name("alpha"), edit }]).await.unwrap();
    let after = bench.store.session(&session_name("alpha")).await.unwrap();
    assert_eq!(after.description, "another");
    assert_eq!(
        (after.context, after.criteria, after.created_at),
        (before.context, before.criteria, before.created_at)
    );
}

pub(crate) async fn sessions_come_oldest_first_with_their_tasks_counted(bench: &Bench) {
    bench.commit(vec![new_session("zeta")]).await.unwrap();
    bench.commit(vec![new_session("alpha")]).await.unwrap();
    for (name, input) in [("a", None), ("b", Some(TaskInput::Finish)), ("c", Some(TaskInput::Cancel))] {
        bench.add(name, NewTask { session: Some(session_name("zeta")), ..titled("t") }).await.unwrap();
        if let Some(input) = input {
            bench.change(name, input).await.unwrap();
        }
    }
    let sessions = bench.store.sessions().await.unwrap();
    let names: Vec<&str> = sessions.iter().map(|summary| summary.session.name.as_str()).collect();
    assert_eq!(names, ["zeta", "alpha"]);
    let zeta = &sessions[0].counts;
    let words: Vec<(&str, u64)> =
        zeta.by_status.iter().map(|(word, count)| (word.as_str(), *count)).collect();
    assert_eq!(words, [("cancelled", 1), ("done", 1), ("todo", 1)]);
    assert_eq!((zeta.open, zeta.done, zeta.total), (1, 1, 3));
    assert_eq!(sessions[1].counts.total, 0);
}

pub(crate) async fn a_journal_is_read_from_its_end(bench: &Bench) {
    bench.commit(vec![new_session("alpha")]).await.unwrap();
    for number in 0..5 {
        let run = (number == 4).then(|| run_id("run-1"));
        let text = format!("line {number}");
        bench.commit(vec![Change::AddProgress { session: session_name("alpha"), run, text }]).await.unwrap();
    }
    let last = bench.store.progress(&session_name("alpha"), 2).await.unwrap();
    let lines: Vec<(&str, bool)> =
        last.iter().map(|entry| (entry.text.as_str(), entry.run.is_some())).collect();
    assert_eq!(lines, [("line 3", false), ("line 4", true)]);
    let unknown = Change::AddProgress { session: session_name("beta"), run: None, text: "lost".into() };
    assert_eq!(message(bench.commit(vec![unknown]).await), "unknown session `beta`");
}

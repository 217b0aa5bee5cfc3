//! Running, stopping and going on.

use std::sync::Arc;

use rehearsal_eval::grade::Verdict;
use rehearsal_eval::run::{Ended, Journal, JournalError, Limits, RunEvent, run};
use tokio_util::sync::CancellationToken;

use crate::coin::{Coin, cases};

const TWO: Limits = Limits { jobs: 2, budget_usd: None };

#[tokio::test]
async fn what_was_made_is_not_made_again() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("trials.jsonl");
    let eval = cases(10, 3, &["agent"]);
    let stop = CancellationToken::new();
    let mut journal = Journal::open(&file).unwrap();
    let first = Arc::new(Coin::new(&[("agent", 0.5)], 1));
    let mut watch = |event: RunEvent<'_>| {
        if let RunEvent::Over(_, progress) = event
            && progress.made == 7
        {
            stop.cancel();
        }
    };
    let ended = run(&eval, first, &mut journal, TWO, &mut watch, &stop).await;
    assert_eq!(ended.unwrap(), Ended::Cancelled);
    drop(journal);
    let mut journal = Journal::open(&file).unwrap();
    let kept = journal.records().len();
    assert!((7..=9).contains(&kept), "{kept}");
    let second = Arc::new(Coin::new(&[("agent", 0.5)], 1));
    let never = CancellationToken::new();
    let ended = run(&eval, second.clone(), &mut journal, TWO, &mut |_| {}, &never).await;
    assert_eq!(ended.unwrap(), Ended::Complete);
    assert_eq!(second.asked.lock().unwrap().len(), 30 - kept);
    assert_eq!(journal.records().len(), 30);
}

#[tokio::test]
async fn no_trial_begins_when_the_money_is_spent() {
    let directory = tempfile::tempdir().unwrap();
    let mut journal = Journal::open(&directory.path().join("trials.jsonl")).unwrap();
    let eval = cases(10, 1, &["agent"]);
    let coin = Arc::new(Coin { cost: Some(0.4), ..Coin::new(&[("agent", 1.0)], 1) });
    let limits = Limits { jobs: 1, budget_usd: Some(1.0) };
    let ended = run(&eval, coin, &mut journal, limits, &mut |_| {}, &CancellationToken::new()).await;
    assert_eq!(ended.unwrap(), Ended::OverBudget);
    assert_eq!(journal.records().len(), 3, "the third was begun with $0.80 spent");
}

#[tokio::test]
async fn an_error_is_tried_again_and_a_failure_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("trials.jsonl");
    let eval = cases(4, 1, &["agent"]);
    let mut journal = Journal::open(&file).unwrap();
    let never = Arc::new(Coin::new(&[("agent", 0.0)], 1));
    run(&eval, never.clone(), &mut journal, TWO, &mut |_| {}, &CancellationToken::new()).await.unwrap();
    let mut lost = journal.records()[0].clone();
    assert_eq!(lost.verdict, Verdict::Fail);
    lost.verdict = Verdict::Error;
    journal.add(&lost).unwrap();
    never.asked.lock().unwrap().clear();
    run(&eval, never.clone(), &mut journal, TWO, &mut |_| {}, &CancellationToken::new()).await.unwrap();
    assert_eq!(*never.asked.lock().unwrap(), [lost.id]);
}

#[test]
fn a_journal_has_one_writer_and_knows_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("trials.jsonl");
    let first = Journal::open(&file).unwrap();
    let second = Journal::open(&file).unwrap_err();
    assert!(matches!(second, JournalError::InUse { .. }), "{second}");
    drop(first);
    std::fs::write(&file, "{\"not\": \"a trial\"}\n").unwrap();
    let damaged = Journal::open(&file).unwrap_err();
    assert_eq!(damaged.to_string(), format!("`{}` has a line that is no trial: line 1", file.display()));
}

//! Killed at any moment, an eval goes on where it was.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use std::sync::Arc;

use rehearsal_core::seed::mix;
use rehearsal_eval::run::{Ended, Journal, Limits, run};
use rehearsal_eval::summary::Summary;
use tokio_util::sync::CancellationToken;

use crate::coin::{Coin, cases};

const CASES: usize = 1000;
const KILLS: u64 = 12;
const MANY: Limits = Limits { jobs: 8, budget_usd: None };

async fn go_on(file: &std::path::Path) -> Ended {
    let mut journal = Journal::open(file).unwrap();
    let coin = Arc::new(Coin::new(&[("agent", 0.6)], 9));
    run(&cases(CASES, 1, &["agent"]), coin, &mut journal, MANY, &mut |_| {}, &CancellationToken::new())
        .await
        .unwrap()
}

/// What the test below starts and kills: this test binary again. Alone, there is nothing to do.
#[tokio::test]
async fn victim() {
    let Some(file) = std::env::var_os("EVAL_TO_BE_KILLED") else { return };
    go_on(file.as_ref()).await;
}

#[tokio::test]
async fn a_thousand_cases_killed_at_random_are_all_there_and_none_twice() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("trials.jsonl");
    let mut grown = 0;
    for kill in 0..KILLS {
        let mut victim = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "killed::victim"])
            .env("EVAL_TO_BE_KILLED", &file)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        // Killed when the journal has grown by a drawn number of bytes, or at its own end.
        let wanted = grown + mix(kill) % 40_000;
        while victim.try_wait().unwrap().is_none() {
            if std::fs::metadata(&file).is_ok_and(|file| file.len() >= wanted) {
                victim.kill().unwrap();
                victim.wait().unwrap();
                break;
            }
            std::thread::yield_now();
        }
        grown = std::fs::metadata(&file).map_or(0, |file| file.len());
    }
    let interrupted = std::fs::read_to_string(&file).unwrap().lines().count();
    assert!(interrupted > 0);
    assert_eq!(go_on(&file).await, Ended::Complete);
    let journal = Journal::open(&file).unwrap();
    let ids: BTreeSet<_> = journal.records().iter().map(|record| &record.id).collect();
    assert_eq!((journal.records().len(), ids.len()), (CASES, CASES));
    let summary = Summary::of(&cases(CASES, 1, &["agent"]), journal.records());
    assert!(summary.variants[0].interval.unwrap().contains(0.6), "{:?}", summary.variants);
}

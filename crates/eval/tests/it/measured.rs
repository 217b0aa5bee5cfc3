//! The eval of `eval`: what is known beforehand is measured.

use std::sync::Arc;

use rehearsal_eval::run::{Journal, Limits, run};
use rehearsal_eval::statistics::{Method, wilson};
use rehearsal_eval::summary::Summary;
use tokio_util::sync::CancellationToken;

use crate::coin::{Coin, cases};

const EIGHT: Limits = Limits { jobs: 8, budget_usd: None };

async fn measured(count: usize, repeat: u32, chances: &[(&str, f64)], seed: u64) -> Summary {
    let directory = tempfile::tempdir().unwrap();
    let mut journal = Journal::open(&directory.path().join("trials.jsonl")).unwrap();
    let agents: Vec<&str> = chances.iter().map(|(name, _)| *name).collect();
    let eval = cases(count, repeat, &agents);
    let coin = Arc::new(Coin::new(chances, seed));
    run(&eval, coin, &mut journal, EIGHT, &mut |_| {}, &CancellationToken::new()).await.unwrap();
    Summary::of(&eval, journal.records())
}

#[tokio::test]
async fn known_success_rates_are_within_their_intervals_as_often_as_is_promised() {
    let (mut inside, mut all) = (0, 0);
    for seed in 0..20 {
        for chance in [0.1, 0.5, 0.8] {
            let summary = measured(40, 5, &[("agent", chance)], seed).await;
            let one = &summary.variants[0];
            all += 1;
            inside += u32::from(one.interval.unwrap().contains(chance));
        }
    }
    // 95 of 100 are promised; of 60, fewer than 50 would be far off (one in a hundred thousand).
    assert!(inside >= 50, "{inside} of {all}");
}

/// How often Wilson's interval of so many trials holds the true rate, over all results that can be.
fn promised(trials: u32, chance: f64) -> f64 {
    let mut likely = (1.0 - chance).powi(i32::try_from(trials).unwrap());
    let mut covered = 0.0;
    for passed in 0..=trials {
        if wilson(trials.into(), passed.into()).unwrap().contains(chance) {
            covered += likely;
        }
        likely *= f64::from(trials - passed) / f64::from(passed + 1) * chance / (1.0 - chance);
    }
    covered
}

#[tokio::test]
async fn the_interval_of_a_case_holds_its_rate_as_often_as_it_promises() {
    const CASES: u32 = 100;
    const TRIALS: u32 = 20;
    const SEEDS: u32 = 4;
    for chance in [0.1, 0.5, 0.8] {
        let mut inside = 0;
        for seed in 0..SEEDS {
            let summary = measured(CASES as usize, TRIALS, &[("agent", chance)], seed.into()).await;
            let holds = summary.cells.iter().filter(|cell| cell.interval.unwrap().contains(chance));
            inside += u32::try_from(holds.count()).unwrap();
        }
        let (all, expected) = (f64::from(CASES * SEEDS), promised(TRIALS, chance));
        // Four standard errors to each side: one in fifteen thousand.
        let tolerance = 4.0 * (expected * (1.0 - expected) / all).sqrt();
        let seen = f64::from(inside) / all;
        assert!((seen - expected).abs() < tolerance, "{chance}: {seen}, {expected:.3} promised");
    }
}

#[tokio::test]
async fn who_always_succeeds_and_who_never_does_are_told_apart() {
    let summary = measured(12, 2, &[("oracle", 1.0), ("no-op", 0.0)], 1).await;
    assert_eq!(summary.variants[0].pass_rate, Some(1.0));
    assert_eq!(summary.variants[1].pass_rate, Some(0.0));
    let told: Vec<_> = summary.requirements.iter().map(|one| (one.what.as_str(), one.holds)).collect();
    assert_eq!(told, [("no-op: pass rate 1", false), ("oracle: pass rate 1", true)]);
    let (a, b) = (&summary.variants[0].variant, &summary.variants[1].variant);
    let comparison = summary.compare(a, &summary, b, 0).unwrap();
    assert_eq!((comparison.better, comparison.method), (12, Method::Exact));
    assert!((comparison.p_value - 2.0 / 4096.0).abs() < 1e-12, "{comparison:?}");
}

#[tokio::test]
async fn two_that_are_the_same_are_seldom_told_apart() {
    let mut apart = 0;
    for seed in 0..40 {
        let summary = measured(30, 3, &[("one", 0.5), ("other", 0.5)], seed).await;
        let (a, b) = (&summary.variants[0].variant, &summary.variants[1].variant);
        apart += u32::from(summary.compare(a, &summary, b, 0).unwrap().p_value < 0.05);
    }
    // 1 in 20 by its nature; 8 of 40 would be one in two thousand.
    assert!(apart < 8, "{apart} of 40");
}

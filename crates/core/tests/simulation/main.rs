//! The whole machine in miniature, lived ten thousand times.
//!
//! The rules are the real ones: `transition` moves tasks, `guard` lets them be claimed, the flows are those that ship
//! and generated ones. Around them is a model of everything else: a store with leases and one log, workers on
//! machines that sleep, agents under shims, a forge, people. A seed decides who crashes, what is lost on its way,
//! which answer comes late or twice. After every event the promises are checked (`invariant.rs`).
//!
//! That the checks see something is shown by known mistakes (`defect.rs`): each is switched on in the model, and
//! must be caught.
//!
//! A failing seed prints the command that lives it again, with everything that happened.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod agent;
mod check;
mod defect;
mod faults;
mod flows;
mod forge;
mod invariant;
mod network;
mod process;
mod repository;
mod rng;
mod simulation;
mod slot;
mod steps;
mod store;
mod stuck;

use std::env;
use std::thread;

use crate::defect::Defect;
use crate::invariant::Violation;
use crate::simulation::{Report, live};

const SEEDS: u64 = 10_000;

/// One seed again, as `REHEARSAL_SEED` asks: its story is told by failing, whatever its end. Else ten thousand.
#[test]
fn ten_thousand_lives_break_no_promise() {
    if let Ok(seed) = env::var("REHEARSAL_SEED") {
        let report = live(seed.parse().unwrap(), None, true);
        let story = report.trace.join("\n");
        let end = report.violation.map_or_else(|| "no promise was broken".to_owned(), |it| it.to_string());
        panic!("{story}\nSEED={seed} {end}");
    }
    let lives = live_all(SEEDS, &|seed| live(seed, None, false));
    if let Some((seed, violation)) = first_violation(&lives) {
        let repro = format!("REHEARSAL_SEED={seed} cargo test -p rehearsal-core --test simulation");
        panic!("{violation}\nSEED={seed} repro: {repro}");
    }
    let done: u32 = lives.iter().map(|life| life.done).sum();
    let stale: u32 = lives.iter().map(|life| life.stale_writes).sum();
    assert!(done > 10_000, "most tasks must be done for this to mean anything: {done}");
    assert!(stale > 1_000, "late writes must come for their refusal to mean anything: {stale}");
}

/// Lives seeds from 0 on, on all cores; in the order of the seeds.
fn live_all(seeds: u64, life: &(impl Fn(u64) -> Report + Sync)) -> Vec<Report> {
    let cores = thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
    let share = seeds.div_ceil(cores);
    thread::scope(|scope| {
        let shares = (0..cores).map(|core| (core * share)..((core + 1) * share).min(seeds));
        let lives: Vec<_> =
            shares.map(|share| scope.spawn(move || share.map(life).collect::<Vec<_>>())).collect();
        lives.into_iter().flat_map(|lives| lives.join().unwrap()).collect()
    })
}

fn first_violation(lives: &[Report]) -> Option<(usize, &Violation)> {
    lives.iter().enumerate().find_map(|(seed, life)| Some((seed, life.violation.as_ref()?)))
}

#[test]
fn the_same_seed_lives_the_same_life() {
    for seed in (0..SEEDS).step_by(499) {
        let (first, second) = (live(seed, None, true), live(seed, None, true));
        assert_eq!(first.trace, second.trace, "SEED={seed}");
        assert_eq!(first.hash, live(seed, None, false).hash, "SEED={seed}: telling the story changes it");
    }
}

#[test]
fn every_known_mistake_is_caught_by_the_promise_that_it_breaks() {
    let told: Vec<String> = Defect::ALL.iter().filter_map(|defect| miss(*defect)).collect();
    assert!(told.is_empty(), "{}", told.join("\n"));
}

/// What is wrong with how a mistake is caught; nothing if it is, by what it breaks, within the ten thousand seeds.
fn miss(defect: Defect) -> Option<String> {
    let mut lived = 0;
    for seeds in [200, 1_000, SEEDS] {
        let lives = live_all(seeds - lived, &|seed| live(lived + seed, Some(defect), false));
        if let Some((seed, Violation { invariant, .. })) = first_violation(&lives) {
            let expected = defect.breaks().contains(invariant);
            return (!expected)
                .then(|| format!("{defect:?} broke {invariant:?} with seed {}", lived + seed as u64));
        }
        lived = seeds;
    }
    Some(format!("{defect:?} was not caught by {SEEDS} seeds"))
}

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

use std::collections::BTreeMap;
use std::env;

use crate::defect::Defect;
use crate::invariant::Invariant;
use crate::simulation::live;

const SEEDS: u64 = 10_000;

/// One seed again with its story, as `REHEARSAL_SEED` asks; else ten thousand.
#[test]
fn ten_thousand_lives_break_no_promise() {
    if let Ok(seed) = env::var("REHEARSAL_SEED") {
        let report = live(seed.parse().unwrap(), None, true);
        let story = report.trace.join("\n");
        let end = report.violation.map_or_else(|| "no promise was broken".to_owned(), |it| it.to_string());
        panic!("{story}\nSEED={seed} {end}");
    }
    let (mut done, mut stale) = (0, 0);
    for seed in 0..SEEDS {
        let report = live(seed, None, false);
        if let Some(violation) = report.violation {
            panic!("{violation}\nSEED={seed} repro: {}", repro(seed));
        }
        done += report.done;
        stale += report.stale_writes;
    }
    assert!(done > 10_000, "most tasks must be done for this to mean anything: {done}");
    assert!(stale > 100, "late writes must come for their refusal to mean anything: {stale}");
}

fn repro(seed: u64) -> String {
    format!("REHEARSAL_SEED={seed} cargo test -p rehearsal-core --test simulation ten_thousand")
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
fn every_known_mistake_is_caught() {
    let mut told = Vec::new();
    for defect in Defect::ALL {
        let caught = catch(*defect);
        let unexpected = caught.iter().find(|(invariant, _)| !defect.breaks().contains(invariant));
        if caught.is_empty() {
            told.push(format!("{defect:?} was never caught"));
        } else if let Some((invariant, seed)) = unexpected {
            told.push(format!("{defect:?} broke {invariant:?} with seed {seed}, expected {:?}", defect.breaks()));
        }
    }
    assert!(told.is_empty(), "{}", told.join("\n"));
}

/// The promises that a mistake breaks, and a seed for each; looks no further than it must.
fn catch(defect: Defect) -> BTreeMap<Invariant, u64> {
    let mut caught = BTreeMap::new();
    let mut times = 0;
    for seed in 0..SEEDS {
        if let Some(violation) = live(seed, Some(defect), false).violation {
            caught.entry(violation.invariant).or_insert(seed);
            times += 1;
            if times == 5 {
                break;
            }
        }
    }
    caught
}

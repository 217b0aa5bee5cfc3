//! Randomness that can be thrown again.

use std::time::{Duration, SystemTime};

/// Names a seed, to see again what was seen.
const SEED_VARIABLE: &str = "REHEARSAL_TEST_SEED";

/// The seed of this test run, printed.
pub(crate) fn seed() -> u64 {
    let told = std::env::var(SEED_VARIABLE).ok().and_then(|seed| seed.parse().ok());
    let drawn = || SystemTime::UNIX_EPOCH.elapsed().unwrap().subsec_nanos().into();
    let seed = told.unwrap_or_else(drawn);
    println!("SEED={seed} (again with {SEED_VARIABLE}={seed})");
    seed
}

/// `SplitMix64`.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `sides`.
    pub(crate) fn below(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides
    }

    /// A time up to a limit.
    pub(crate) fn up_to(&mut self, limit: Duration) -> Duration {
        let micros = u64::try_from(limit.as_micros()).unwrap();
        Duration::from_micros(self.below(micros + 1))
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[usize::try_from(self.below(from.len() as u64)).unwrap()]
    }
}

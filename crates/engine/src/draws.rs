//! Randomness for ids; in a rehearsal the same each time.

use std::sync::atomic::{AtomicU64, Ordering};

/// What ids are drawn from.
#[derive(Debug, Default)]
pub struct Draws(Option<AtomicU64>);

impl Draws {
    /// From the system.
    pub fn random() -> Self {
        Self(None)
    }

    /// The same row of draws for the same seed.
    pub fn of_seed(seed: u64) -> Self {
        Self(Some(AtomicU64::new(seed)))
    }

    /// The next draw.
    pub fn next(&self) -> u64 {
        let Some(state) = &self.0 else { return crate::random_bits() };
        // splitmix64: enough for names.
        let step = 0x9e37_79b9_7f4a_7c15_u64;
        let mut bits = state.fetch_add(step, Ordering::SeqCst).wrapping_add(step);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }
}

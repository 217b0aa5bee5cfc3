//! Randomness for ids; in a rehearsal the same each time.

use std::sync::atomic::{AtomicU64, Ordering};

use rehearsal_core::seed;

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
        seed::mix(state.fetch_add(seed::STEP, Ordering::SeqCst))
    }
}

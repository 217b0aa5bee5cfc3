//! Ids and pauses that look random and follow from a seed.

use rehearsal_core::seed;

/// A row of numbers.
#[derive(Debug, Clone)]
pub(crate) struct Seeded(u64);

impl Seeded {
    /// What follows from a seed, a lane, and the number of a request in that lane: so that parallel lanes do not change each
    /// other's ids.
    pub(crate) fn new(seed: u64, lane: &str, number: u64) -> Self {
        Self(seed::mix(seed ^ seed::of_text(lane)).wrapping_add(number))
    }

    pub(crate) fn next(&mut self) -> u64 {
        seed::mix(self.advance())
    }

    /// From 0 to 1.
    pub(crate) fn fraction(&mut self) -> f64 {
        seed::fraction(self.advance())
    }

    fn advance(&mut self) -> u64 {
        let now = self.0;
        self.0 = now.wrapping_add(seed::STEP);
        now
    }

    /// `msg_` and 24 digits.
    pub(crate) fn id(&mut self, prefix: &str) -> String {
        format!("{prefix}_{:016x}{:08x}", self.next(), self.next() >> 32)
    }
}

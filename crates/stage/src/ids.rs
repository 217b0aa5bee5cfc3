//! Ids and pauses that look random and follow from a seed.

/// A sequence of numbers (`SplitMix64`).
#[derive(Debug, Clone)]
pub(crate) struct Seeded(u64);

impl Seeded {
    /// What follows from a seed, a lane, and the number of a request in that lane: so that parallel lanes do not change each
    /// other's ids.
    pub(crate) fn new(seed: u64, lane: &str, number: u64) -> Self {
        // FNV-1a: any hash that stays the same in the next version will do.
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in lane.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        let mut this = Self(seed ^ hash);
        this.0 = this.next().wrapping_add(number);
        this
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 up to, and without, 1.
    pub(crate) fn fraction(&mut self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "32 bits fit exactly")]
        let number = (self.next() >> 32) as f64;
        number / f64::from(u32::MAX)
    }

    /// `msg_` and 24 digits.
    pub(crate) fn id(&mut self, prefix: &str) -> String {
        format!("{prefix}_{:016x}{:08x}", self.next(), self.next() >> 32)
    }
}

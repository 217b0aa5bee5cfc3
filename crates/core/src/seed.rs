//! Chance that follows from a seed.

/// A number that looks random and follows from another (the finalizer of `SplitMix64`).
pub fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// The same as a fraction of one.
pub fn fraction(value: u64) -> f64 {
    f64::from(u32::try_from(mix(value) >> 32).unwrap_or(0)) / f64::from(u32::MAX)
}

//! Chance that follows from a seed.

/// How far apart two neighbours of a row are before they are mixed.
pub const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// A number that looks random and follows from another. The row of a seed (`SplitMix64`) is the mix of the seed, of the seed
/// and one [`STEP`], of the seed and two, and so on.
pub fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(STEP);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// The same as a fraction of one.
pub fn fraction(value: u64) -> f64 {
    f64::from(u32::try_from(mix(value) >> 32).unwrap_or(0)) / f64::from(u32::MAX)
}

/// A seed from a text (FNV-1a): the same in every version of the program.
pub fn of_text(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

//! What outlives the machine.

/// What a store promises, if the machine fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// What was committed lasts: for work in earnest, and for measuring.
    Full,
    /// What was committed lasts until the machine fails: for rehearsals, which are faster so.
    UntilPowerFails,
}

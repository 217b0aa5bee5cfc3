//! What must never happen, by the name under which it is promised.

use std::fmt;

/// The promises that have a meaning in the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Invariant {
    /// No task vanishes.
    I1,
    /// At most one owner for each fence, fences rise, and nobody is robbed of a claim that holds.
    I2,
    /// No write with a stale fence takes effect, neither in the store nor on a branch.
    I3,
    /// An end is an end, unless a person retries.
    I4,
    /// A row is the fold of its events, and each move is an edge of its flow.
    I5,
    /// One pull request for a branch, one merge, one deployment; the base has only trees that were tested.
    I6,
    /// What is told as done was done.
    I7,
    /// A result that is used is the result of this very claim.
    I8,
    /// Two agents never work on one task at once.
    I9,
    /// After the faults stop, every task ends or waits for something with a name.
    I10,
    /// Failures of the system cost no attempt.
    I11,
    /// Nothing is left over.
    I13,
}

/// A promise that was broken.
#[derive(Debug, Clone)]
pub(crate) struct Violation {
    pub(crate) invariant: Invariant,
    pub(crate) what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} broken: {}", self.invariant, self.what)
    }
}

/// Fails with a violation unless the condition holds.
pub(crate) fn ensure(
    holds: bool,
    invariant: Invariant,
    what: impl FnOnce() -> String,
) -> Result<(), Violation> {
    if holds { Ok(()) } else { Err(Violation { invariant, what: what() }) }
}

//! Whose a failure is, and so what follows from it.

use std::time::Duration;

/// The four kinds of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorClass {
    /// The task's own: the flow has an edge for it.
    Task,
    /// It passes: the same is tried again, and nobody is blamed.
    Transient {
        /// Not before this time has gone by, if the other side said so.
        retry_after: Option<Duration>,
    },
    /// It stands in everyone's way until a hand mends it.
    Systemic,
    /// Nobody can know whether it took effect.
    Unknown,
}

impl ErrorClass {
    pub(crate) const TRANSIENT: Self = Self::Transient { retry_after: None };
}

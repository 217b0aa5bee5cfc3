//! When to try again, and after how long.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::policy::{MOST_TRIES, PATIENCE, PAUSES};
use crate::{CommitError, FindError, StoreError};

/// The tries of one thing that can be done again.
pub(crate) struct Patience {
    since: Instant,
    tries: u32,
}

impl Patience {
    pub(crate) fn new() -> Self {
        Self { since: Instant::now(), tries: 0 }
    }

    /// Whether to try again after this error, when the pause is over.
    pub(crate) async fn lasts(&mut self, error: &StoreError) -> bool {
        self.tries += 1;
        let lasts = match error {
            StoreError::Unreachable { .. } => self.since.elapsed() < PATIENCE,
            StoreError::Contended => self.tries < MOST_TRIES,
            _ => false,
        };
        if lasts {
            sleep(pause(self.tries)).await;
        }
        lasts
    }
}

/// Longer each time, and never quite the same: those who met once should not meet again.
fn pause(tries: u32) -> Duration {
    let (first, longest) = PAUSES;
    let most = first.saturating_mul(1 << tries.min(10)).min(longest);
    let dice = u32::try_from(RandomState::new().hash_one(tries) % 1_000).unwrap_or_default();
    most * (dice + 1) / 1_000
}

/// The trouble with the database, of any kind of answer.
pub(crate) trait Trouble {
    fn trouble(&self) -> Option<&StoreError>;
}

impl Trouble for StoreError {
    fn trouble(&self) -> Option<&StoreError> {
        Some(self)
    }
}

impl Trouble for FindError {
    fn trouble(&self) -> Option<&StoreError> {
        match self {
            Self::Store(error) => Some(error),
            Self::NotFound { .. } | Self::Ambiguous { .. } => None,
        }
    }
}

impl Trouble for CommitError {
    fn trouble(&self) -> Option<&StoreError> {
        match self {
            Self::Store(error) => Some(error),
            _ => None,
        }
    }
}

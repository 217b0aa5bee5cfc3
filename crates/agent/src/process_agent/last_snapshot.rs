//! The snapshot after one run serves as the one before the next, if the next follows at once.

use std::sync::{Mutex, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};
use tokio::time::Instant;

use crate::git::{GitError, Snapshot};
use crate::policy::SNAPSHOT_FRESH;

/// The last snapshot that was taken after a run.
#[derive(Debug, Default)]
pub(super) struct LastSnapshot(Mutex<Option<Kept>>);

#[derive(Debug)]
struct Kept {
    dir: Utf8PathBuf,
    snapshot: Snapshot,
    at: Instant,
}

impl LastSnapshot {
    pub(super) fn keep(&self, dir: &Utf8Path, snapshot: Snapshot) {
        let kept = Kept { dir: dir.to_owned(), snapshot, at: Instant::now() };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(kept);
    }

    /// The kept one if it is of this directory and fresh; a new one otherwise.
    pub(super) async fn before(&self, dir: &Utf8Path) -> Result<Option<Snapshot>, GitError> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        match kept {
            Some(kept) if kept.dir == dir && kept.at.elapsed() < SNAPSHOT_FRESH => Ok(Some(kept.snapshot)),
            _ => Snapshot::take(dir).await,
        }
    }
}

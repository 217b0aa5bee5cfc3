//! A lock between processes that the kernel releases with its holder, however that ends.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use camino::Utf8Path;
use rustix::fs::{FlockOperation, flock};
use tokio::time::Instant;

use crate::policy::LOCK_PAUSE;

/// Held while it lives. The file stays: to delete it would let two processes hold two files of one name.
#[derive(Debug)]
pub(crate) struct FileLock {
    file: Arc<File>,
}

impl FileLock {
    /// Takes it if nobody has it.
    pub(crate) fn try_take(path: &Utf8Path) -> io::Result<Option<Self>> {
        let file = fs_err::OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
        match flock(file.file(), FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Self { file: Arc::new(file.into_file()) })),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// What holds the lock: it is released when the last copy is closed.
    pub(crate) fn file(&self) -> Arc<File> {
        Arc::clone(&self.file)
    }

    /// Waits for it; none if the limit passed.
    pub(crate) async fn take(path: &Utf8Path, limit: Duration) -> io::Result<Option<Self>> {
        let deadline = Instant::now() + limit;
        loop {
            if let Some(lock) = Self::try_take(path)? {
                return Ok(Some(lock));
            }
            if Instant::now() >= deadline {
                return Ok(None);
            }
            tokio::time::sleep(LOCK_PAUSE).await;
        }
    }
}

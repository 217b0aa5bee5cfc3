//! One loop at a time in a checkout: two agents in one working directory would trample on each other.

use std::io::{Read, Seek, Write};

use camino::Utf8Path;
use rustix::fs::{FlockOperation, flock};

/// Held while a loop runs. The kernel releases it with the process, however that ends.
#[derive(Debug)]
pub struct LoopLock {
    _file: fs_err::File,
}

/// Why the lock is not to be had.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another loop works here.
    #[error("another loop works in this checkout (process {holder})")]
    Held {
        /// Its process.
        holder: String,
    },
    /// The lock file cannot be used.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

impl LoopLock {
    /// Takes the lock, or says who has it.
    pub fn take(state_dir: &Utf8Path) -> Result<Self, LockError> {
        let path = state_dir.join("loop.lock");
        let mut file =
            fs_err::OpenOptions::new().create(true).truncate(false).read(true).write(true).open(path)?;
        if flock(file.file(), FlockOperation::NonBlockingLockExclusive).is_err() {
            let mut holder = String::new();
            Read::by_ref(&mut file).take(32).read_to_string(&mut holder)?;
            return Err(LockError::Held { holder: holder.trim().to_owned() });
        }
        file.set_len(0)?;
        file.rewind()?;
        writeln!(file, "{}", std::process::id())?;
        Ok(Self { _file: file })
    }

    /// Whether some loop works here now, and as which process.
    pub fn holder(state_dir: &Utf8Path) -> Option<String> {
        if !state_dir.join("loop.lock").exists() {
            return None;
        }
        match Self::take(state_dir) {
            Err(LockError::Held { holder }) => Some(holder),
            Ok(_) | Err(LockError::Io(_)) => None,
        }
    }
}

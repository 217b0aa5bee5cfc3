//! The shim of the next run gets ready while this agent works: a start less on the way from task to task.

use std::sync::{Mutex, PoisonError};

use crate::process::{IdleShim, Launcher, SpawnError};

/// A shim that nobody needs yet. It ends with us.
#[derive(Debug, Default)]
pub(super) struct SpareShim(Mutex<Option<IdleShim>>);

impl SpareShim {
    /// The spare one, or a new one.
    pub(super) fn take(&self, launcher: &Launcher) -> Result<IdleShim, SpawnError> {
        let spare = self.slot().take();
        if let Some(mut spare) = spare
            && spare.is_waiting()
        {
            return Ok(spare);
        }
        launcher.start()
    }

    /// Makes one ready. Should that fail, the next run finds out by itself.
    pub(super) fn refill(&self, launcher: &Launcher) {
        let spare = launcher.start().ok();
        *self.slot() = spare;
    }

    fn slot(&self) -> std::sync::MutexGuard<'_, Option<IdleShim>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

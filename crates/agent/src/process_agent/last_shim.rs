//! The shim of one run serves the next: a start of a process less on the way from task to task.

use std::sync::{Mutex, PoisonError};

use crate::process::{IdleShim, Launcher, SpawnError};

/// A shim that nobody needs now. It ends with us.
#[derive(Debug, Default)]
pub(super) struct LastShim(Mutex<Option<IdleShim>>);

impl LastShim {
    /// The kept one, or a new one.
    pub(super) fn take(&self, launcher: &Launcher) -> Result<IdleShim, SpawnError> {
        let kept = self.slot().take();
        if let Some(mut kept) = kept
            && kept.is_waiting()
        {
            return Ok(kept);
        }
        launcher.start()
    }

    pub(super) fn keep(&self, shim: Option<IdleShim>) {
        *self.slot() = shim;
    }

    fn slot(&self) -> std::sync::MutexGuard<'_, Option<IdleShim>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

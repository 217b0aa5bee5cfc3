//! Inits that have said their last word, and only fold up their namespaces: nobody waits for that, but somebody must
//! take note of their end, or they stay in the table of processes.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

use rustix::process::{WaitId, WaitIdOptions, waitid};

static ENDING: Mutex<Vec<OwnedFd>> = Mutex::new(Vec::new());

/// Takes note of a child's end when it comes: at the latest when the next one is handed in.
pub(crate) fn when_it_ends(child: OwnedFd) {
    let mut ending = ENDING.lock().unwrap_or_else(PoisonError::into_inner);
    ending.push(child);
    let still_runs = |child: &OwnedFd| {
        matches!(
            waitid(WaitId::PidFd(child.as_fd()), WaitIdOptions::EXITED | WaitIdOptions::NOHANG),
            Ok(None)
        )
    };
    ending.retain(still_runs);
}

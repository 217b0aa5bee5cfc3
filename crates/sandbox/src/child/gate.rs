//! Where the target waits until all is laid out.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::sys;

#[derive(Default)]
pub(super) struct Gate(AtomicU32);

const SHUT: u32 = 0;
const OPEN: u32 = 1;
const IN_VAIN: u32 = 2;

impl Gate {
    pub(super) fn open(&self) {
        sys::set_and_wake(&self.0, OPEN);
    }

    /// There is nothing to wait for any more.
    pub(super) fn give_up(&self) {
        sys::set_and_wake(&self.0, IN_VAIN);
    }

    /// Waits; whether it was opened.
    pub(super) fn pass(&self) -> bool {
        sys::wait_while(&self.0, SHUT);
        self.0.load(Ordering::Acquire) == OPEN
    }
}

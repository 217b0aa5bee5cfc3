//! Names that a real agent draws at random. In a rehearsal they are the same each time.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use uuid::Uuid;

use super::stage_time::StageTime;

static DRAWN: OnceLock<AtomicU64> = OnceLock::new();

/// From now on names follow from the run. For the life of this process, which is one run.
pub(super) fn follow(stage: &StageTime) {
    // It is called once.
    let _ = DRAWN.set(AtomicU64::new(stage.seed()));
}

pub(crate) fn uuid() -> Uuid {
    match DRAWN.get() {
        None => Uuid::new_v4(),
        Some(state) => {
            let bits = state.fetch_add(1, Ordering::Relaxed);
            uuid::Builder::from_random_bytes(Uuid::from_u64_pair(bits, !bits).into_bytes()).into_uuid()
        }
    }
}

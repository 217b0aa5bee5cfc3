//! The heartbeat: prolongs all leases of a worker in one statement, and finds out which are lost.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use rehearsal_core::{Fence, TaskId};
use tokio_util::sync::CancellationToken;

/// The claims that a worker holds.
#[derive(Debug, Clone, Default)]
pub(super) struct Held(Arc<Mutex<BTreeMap<TaskId, (Fence, CancellationToken)>>>);

/// A claim that is kept alive until this is dropped.
#[derive(Debug)]
pub(super) struct Kept {
    held: Held,
    task: TaskId,
    fence: Fence,
    /// Cancelled when the claim is lost.
    pub(super) lost: CancellationToken,
}

impl Held {
    /// From now on the heartbeat prolongs this claim.
    pub(super) fn keep(&self, task: &TaskId, fence: Fence) -> Kept {
        let lost = CancellationToken::new();
        self.with(|claims| claims.insert(task.clone(), (fence, lost.clone())));
        Kept { held: self.clone(), task: task.clone(), fence, lost }
    }

    pub(super) fn claims(&self) -> Vec<(TaskId, Fence)> {
        self.with(|claims| claims.iter().map(|(task, (fence, _))| (task.clone(), *fence)).collect())
    }

    /// Tells those that do not hold any more; `asked` is what the store was asked about.
    pub(super) fn tell_lost(&self, asked: &[(TaskId, Fence)], still_held: &[TaskId]) {
        self.with(|claims| {
            for (task, fence) in asked.iter().filter(|(task, _)| !still_held.contains(task)) {
                if let Some((_, lost)) = claims.get(task).filter(|(held, _)| held == fence) {
                    lost.cancel();
                }
            }
        });
    }

    fn with<T>(&self, what: impl FnOnce(&mut BTreeMap<TaskId, (Fence, CancellationToken)>) -> T) -> T {
        what(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.held.with(|claims| {
            if claims.get(&self.task).is_some_and(|(fence, _)| *fence == self.fence) {
                claims.remove(&self.task);
            }
        });
    }
}

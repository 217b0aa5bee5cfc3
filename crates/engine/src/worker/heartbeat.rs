//! The heartbeat: prolongs all leases of a worker in one statement, and finds out which are lost.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rehearsal_agent::{BootInstant, Lease, LeaseKeeper};
use rehearsal_core::{Fence, Notice, Task, TaskId};
use tokio_util::sync::CancellationToken;

use super::WorkerState;

impl WorkerState {
    /// Prolongs the leases for as long as it is polled.
    pub(super) async fn beat(self: Arc<Self>) {
        let third = self.worker.options.lease / 3;
        loop {
            self.worker.clock.sleep_until(self.now().plus(third)).await;
            let _turn = self.worker.clock.turn().await;
            let claims = self.claims.claims();
            let (asked_at, since_boot, lease) = (self.now(), BootInstant::now(), self.worker.options.lease);
            if claims.is_empty() {
                self.last_beat.store(asked_at.0, Ordering::SeqCst);
                continue;
            }
            match self.worker.store.renew(&claims, lease, asked_at).await {
                Ok(still_held) => {
                    self.last_beat.store(asked_at.0, Ordering::SeqCst);
                    self.claims.beaten(&claims, &still_held, since_boot, lease);
                }
                Err(error) => self.warn(Notice::LeasesNotRenewed { error: error.to_string() }),
            }
        }
    }
}

/// The claims that a worker holds.
#[derive(Debug, Clone, Default)]
pub(super) struct ClaimRegistry(Arc<Mutex<BTreeMap<TaskId, Claim>>>);

#[derive(Debug)]
struct Claim {
    fence: Fence,
    lost: CancellationToken,
    /// Tells the agent's supervisor.
    keeper: LeaseKeeper,
}

/// A claim that is kept alive until this is dropped.
#[derive(Debug)]
pub(super) struct ClaimGuard {
    registry: ClaimRegistry,
    task: TaskId,
    fence: Fence,
    /// Cancelled when the claim is lost.
    pub(super) lost: CancellationToken,
    /// For whoever supervises the agent.
    pub(super) lease: Lease,
}

impl ClaimRegistry {
    /// From now on the heartbeat prolongs this claim, which was asked for at a moment, for so long.
    pub(super) fn keep(&self, task: &Task, asked_at: BootInstant, length: Duration) -> ClaimGuard {
        let (task, fence) = (&task.id, task.fence);
        let lost = CancellationToken::new();
        let (keeper, lease) = Lease::new(asked_at, length);
        let claim = Claim { fence, lost: lost.clone(), keeper };
        self.with(|claims| claims.insert(task.clone(), claim));
        ClaimGuard { registry: self.clone(), task: task.clone(), fence, lost, lease }
    }

    pub(super) fn has(&self, task: &TaskId) -> bool {
        self.with(|claims| claims.contains_key(task))
    }

    pub(super) fn claims(&self) -> Vec<(TaskId, Fence)> {
        self.with(|claims| claims.iter().map(|(task, claim)| (task.clone(), claim.fence)).collect())
    }

    /// What the store said when it was asked to prolong these claims: the ones that hold, hold for so long since then;
    /// the others are lost.
    pub(super) fn beaten(
        &self,
        asked: &[(TaskId, Fence)],
        still_held: &[TaskId],
        asked_at: BootInstant,
        length: Duration,
    ) {
        self.with(|claims| {
            for (task, fence) in asked {
                let Some(claim) = claims.get(task).filter(|claim| claim.fence == *fence) else { continue };
                if still_held.contains(task) {
                    claim.keeper.prolonged(asked_at, length);
                } else {
                    claim.lost.cancel();
                }
            }
        });
    }

    /// What the store said when it was asked which of these claims still hold.
    pub(super) fn seen(&self, asked: &[(TaskId, Fence)], still_held: &[TaskId]) {
        self.with(|claims| {
            for (task, fence) in asked.iter().filter(|(task, _)| !still_held.contains(task)) {
                if let Some(claim) = claims.get(task).filter(|claim| claim.fence == *fence) {
                    claim.lost.cancel();
                }
            }
        });
    }

    fn with<T>(&self, what: impl FnOnce(&mut BTreeMap<TaskId, Claim>) -> T) -> T {
        what(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for ClaimGuard {
    fn drop(&mut self) {
        self.registry.with(|claims| {
            if claims.get(&self.task).is_some_and(|claim| claim.fence == self.fence) {
                claims.remove(&self.task);
            }
        });
    }
}

//! A run whose worker died while its agent went on: the next worker on the machine goes on with both.
//!
//! The agent's supervisor is found first, which lets in one at a time; then the store decides, by who held the claim
//! until now; then the lease is prolonged. Run, fence and attempt stay what they were.

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_agent::process::AdoptError;
use rehearsal_agent::{BootInstant, Orphan, Rendezvous};
use rehearsal_core::transition::TaskInput;
use rehearsal_core::{Claim, RunId, RunStart, Standing, StepFailure, Task, Timestamp, WorkerId};
use rehearsal_forge::{CheckoutPrint, Oid, Worktree};
use rehearsal_store::{Change, Committed, FindError};
use serde::{Deserialize, Serialize};

use super::attempt::{outcome_of, report_of};
use super::heart::Kept;
use super::slot::{Begin, Early, Slot, of_worktree, work_in};
use super::{Desk, Role, WorkError, WorkEvent};

/// Where the agents of a machine are to be found whose workers may have died: away from the directories of their runs,
/// which they can write.
const PLACES: &str = "shims";

fn place_of(state_dir: &Utf8Path, run: &RunId) -> Utf8PathBuf {
    state_dir.join(PLACES).join(run.as_str())
}

/// Whether the agent of a run is there, or what it left.
pub(crate) fn is_to_be_found(state_dir: &Utf8Path, run: &RunId) -> bool {
    Orphan::is_at(&place_of(state_dir, run))
}

/// The runs that have a place where they can be found.
pub(super) fn agents_to_be_found(state_dir: &Utf8Path) -> Vec<(RunId, Utf8PathBuf)> {
    let Ok(entries) = state_dir.join(PLACES).read_dir_utf8() else { return Vec::new() };
    let run = |name: &str| RunId::new(name).ok();
    entries.flatten().filter_map(|entry| Some((run(entry.file_name())?, entry.into_path()))).collect()
}

/// Ends agents whose task was taken from them after their worker had died.
pub(super) async fn end_without_a_claim(agents: Vec<(RunId, Utf8PathBuf)>, leases: &[(Task, Timestamp)]) {
    let has_claim = |run: &RunId| {
        leases.iter().any(|(task, _)| matches!(&task.standing, Standing::Claimed(claim) if claim.run == *run))
    };
    for (run, place) in agents.iter().filter(|(run, _)| !has_claim(run)) {
        Orphan::end_at(place, run).await;
    }
}

/// What a worker knew of the place when the agent began, for whoever comes after it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Surroundings {
    /// The commit that was checked out in its worktree.
    pub(super) head: Oid,
    /// The main checkout, which the agent has to leave alone.
    pub(super) checkout: Option<CheckoutPrint>,
}

/// An agent that goes on with us.
pub(super) struct Foster {
    orphan: Orphan,
    role: Role,
    start: RunStart,
    scene: Surroundings,
}

/// A claim that was adopted with its agent, and is kept alive.
pub(super) struct Adopted {
    task: Task,
    from: WorkerId,
    kept: Kept,
    foster: Foster,
}

/// What came of a try.
pub(super) enum Adoption {
    Done,
    /// Another worker has its agent.
    InOtherHands,
    /// There is no agent, or none that we could go on with.
    NotPossible,
}

/// Works on an adopted task until its claim is over.
pub(super) async fn work(desk: &Desk, adopted: Adopted) -> Result<(), WorkError> {
    let Adopted { task, from, kept, foster } = adopted;
    let run = foster.start.id.clone();
    desk.tell(WorkEvent::Adopted {
        task: task.id.clone(),
        title: task.title.clone(),
        state: task.state.clone(),
        agent: task.next_agent().cloned(),
        run: run.clone(),
        from,
    });
    let slot = Slot::new(desk, task, run, kept).await?;
    Box::pin(work_in(slot, Begin::With(Box::new(foster)))).await
}

impl Desk {
    /// Goes on with a claim of a dead worker, if its agent is still there.
    pub(super) async fn adopt(&self, task: &Task, claim: &Claim) -> Result<Adoption, WorkError> {
        let place = place_of(&self.worker.state_dir, &claim.run);
        // A claim of our own that we do not know of has no agent; a run that is over needs none.
        if claim.worker == self.id || task.pending.is_some() || !place.exists() {
            return Ok(Adoption::NotPossible);
        }
        let (Some(role), Some(start)) = (self.role_of(task).await, self.start_of(claim).await?) else {
            return Ok(Adoption::NotPossible);
        };
        let orphan = match Orphan::find(&place, &claim.run).await {
            Ok(orphan) => orphan,
            Err(AdoptError::HasWorker) => return Ok(Adoption::InOtherHands),
            Err(AdoptError::Gone) => return Ok(Adoption::NotPossible),
            Err(error @ AdoptError::NotUnderstood { .. }) => {
                self.warn(format!("run {} cannot be gone on with: {error}", claim.run));
                return Ok(Adoption::NotPossible);
            }
        };
        let scene = orphan.request().rendezvous.as_ref().map(|place| serde_json::from_str(&place.memo));
        let Some(Ok(scene)) = scene.filter(|_| orphan.driver() == role.agent.driver()) else {
            orphan.end().await;
            return Ok(Adoption::NotPossible);
        };
        self.take_on(task, claim, Foster { orphan, role, start, scene }).await
    }

    /// Makes the claim ours. Whoever was faster has it; then its agent is not ours to keep.
    async fn take_on(&self, task: &Task, claim: &Claim, foster: Foster) -> Result<Adoption, WorkError> {
        let (fence, from, by) = (task.fence, claim.worker.clone(), self.id.clone());
        let input = TaskInput::Adopt { fence, from: from.clone(), by };
        let committed = match self.commit(vec![Change::ChangeTask { id: task.id.clone(), input }]).await {
            Ok(committed) => committed,
            Err(error) => {
                foster.orphan.end().await;
                return Err(error.into());
            }
        };
        let Some(task) = committed.into_iter().find_map(Committed::task) else {
            return Ok(Adoption::NotPossible);
        };
        let (asked_at, lease) = (BootInstant::now(), self.worker.options.lease);
        let claims = [(task.id.clone(), fence)];
        match self.worker.store.renew(&claims, lease, self.now()).await {
            Ok(held) if held.contains(&task.id) => {}
            Ok(_) => {
                foster.orphan.end().await;
                return Ok(Adoption::InOtherHands);
            }
            Err(error) => {
                foster.orphan.end().await;
                return Err(error.into());
            }
        }
        let kept = self.held.keep(&task, asked_at, lease);
        let adopted = Adopted { task, from, kept, foster };
        self.fosters.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(adopted);
        Ok(Adoption::Done)
    }

    async fn role_of(&self, task: &Task) -> Option<Role> {
        self.worker.roles.role(task.next_agent()?).await?.ok()
    }

    async fn start_of(&self, claim: &Claim) -> Result<Option<RunStart>, WorkError> {
        match self.worker.store.find_run(claim.run.as_str()).await {
            Ok(run) if run.start.id == claim.run && run.end.is_none() => Ok(Some(run.start)),
            Ok(_) | Err(FindError::NotFound { .. } | FindError::Ambiguous { .. }) => Ok(None),
            Err(FindError::Store(error)) => Err(error.into()),
        }
    }
}

impl Slot<'_> {
    /// Where the run can be found, should we die, and what its next worker has to know.
    pub(super) fn rendezvous(&self, run: &RunId, scene: &Surroundings) -> Option<Rendezvous> {
        let memo = serde_json::to_string(scene).ok()?;
        Some(Rendezvous::new(place_of(&self.desk.worker.state_dir, run), memo))
    }

    /// Stays with an adopted agent to its end, and writes down what came of it.
    pub(super) async fn go_on_with(&mut self, foster: Foster) -> Result<(), Early> {
        let Foster { orphan, role, start, scene } = foster;
        let report = match self.join(scene.head.clone()).await {
            Ok(worktree) => {
                let lease = self.kept.lease.clone();
                let adopted = role.agent.adopt(orphan, lease, self.watch(), self.cancel.clone()).await;
                // One that is not of its kind after all was ended: what is left is put in order.
                let Some(mut report) = adopted else { return Err(Early::Unsure) };
                self.look_around(&scene, worktree, &mut report).await;
                report
            }
            Err(failure) => {
                orphan.end().await;
                report_of(outcome_of(failure))
            }
        };
        self.settle(&start, &report).await
    }

    /// The place in which the agent is at work. Nothing in it is touched.
    async fn join(&self, head: Oid) -> Result<&Worktree, StepFailure> {
        let place = self.place.get_or_try_init(async || {
            let worktrees = &self.desk.worker.worktrees;
            let at_work = worktrees.at_work(&self.task.id, self.task.fence, head);
            let worktree = at_work.map_err(|error| of_worktree(&error))?.ok_or_else(|| {
                StepFailure::Transient { reason: "the worktree of its agent is gone".to_owned() }
            })?;
            let occupied = worktrees.occupy(&worktree).await.map_err(|error| of_worktree(&error))?;
            Ok((worktree, occupied))
        });
        Ok(&place.await?.0)
    }
}

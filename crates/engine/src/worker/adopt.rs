//! A run whose worker died: the next worker on the machine goes on with its agent, if that lives, or with its steps, for which
//! the work is there.
//!
//! The agent's supervisor is found first, which lets in one at a time; then the store decides, by who held the claim
//! until now; then the lease is prolonged. Run, fence and attempt stay what they were.

use std::sync::PoisonError;

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_agent::{BootInstant, Orphan, Rendezvous};
use rehearsal_core::transition::TaskInput;
use rehearsal_core::{Claim, Notice, RunId, RunStart, Standing, StepFailure, Task, Timestamp, WorkerId};
use rehearsal_forge::{CheckoutPrint, Checkpoint, Worktree};
use rehearsal_git::Oid;
use rehearsal_process::AdoptError;
use rehearsal_store::{Change, Committed, FindError};
use serde::{Deserialize, Serialize};

use super::attempt::{outcome_of, report_of};
use super::heartbeat::ClaimGuard;
use super::slot::{Begin, ClaimExit, Finished, Slot, work_in};
use super::worktree::of_worktree;
use super::{Role, WorkError, WorkEvent, WorkerState};

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
    /// Its worktree, if it has to leave that alone as well.
    pub(super) place: Option<Checkpoint>,
}

/// An agent that goes on with us.
pub(super) struct Adoptee {
    orphan: Orphan,
    role: Role,
    start: RunStart,
    scene: Surroundings,
}

/// A claim that was adopted, and is kept alive.
pub(super) struct Adopted {
    task: Task,
    run: RunId,
    from: WorkerId,
    guard: ClaimGuard,
    /// With its agent; none: with steps that are to be done.
    adoptee: Option<Adoptee>,
}

/// What came of a try.
#[derive(PartialEq, Eq)]
pub(super) enum Adoption {
    Done,
    /// Another worker has its agent.
    InOtherHands,
    /// There is no agent, or none that we could go on with.
    NotPossible,
}

/// Works on an adopted task until its claim is over.
pub(super) async fn work(state: &WorkerState, adopted: Adopted) -> Result<Option<Finished>, WorkError> {
    let Adopted { task, run, from, guard, adoptee } = adopted;
    state.tell(WorkEvent::Adopted {
        task: task.id.clone(),
        title: task.title.clone(),
        state: task.state.clone(),
        agent: task.next_agent().cloned(),
        run: run.clone(),
        from,
    });
    let slot = Slot::new(state, task, run, guard).await?;
    let begin = adoptee.map_or(Begin::Anew, |adoptee| Begin::With(Box::new(adoptee)));
    Box::pin(work_in(slot, begin)).await
}

impl WorkerState {
    /// Goes on with a claim of a dead worker, if its agent is still there, or only steps are left to do.
    pub(super) async fn adopt(&self, task: &Task, claim: &Claim) -> Result<Adoption, WorkError> {
        let place = place_of(&self.worker.state_dir, &claim.run);
        // A claim of our own that we do not know of was never worked on.
        if claim.worker == self.id {
            return Ok(Adoption::NotPossible);
        }
        if task.pending.is_some() {
            return self.adopt_steps(task, claim).await;
        }
        if !place.exists() {
            return Ok(Adoption::NotPossible);
        }
        let orphan = match Orphan::find(&place, &claim.run).await {
            Ok(orphan) => orphan,
            Err(AdoptError::HasWorker) => return Ok(Adoption::InOtherHands),
            Err(AdoptError::Gone) => return Ok(Adoption::NotPossible),
            Err(error @ AdoptError::NotUnderstood { .. }) => {
                self.warn(Notice::RunNotAdopted { run: claim.run.clone(), error: error.to_string() });
                return Ok(Adoption::NotPossible);
            }
        };
        match self.adoptee(task, claim, orphan).await? {
            Some(adoptee) => self.take_on(task, claim, adoptee).await,
            None => Ok(Adoption::NotPossible),
        }
    }

    /// Goes on with the steps of a dead worker, unless there is no room for it, or they are not ours to do.
    pub(super) async fn adopt_steps(&self, task: &Task, claim: &Claim) -> Result<Adoption, WorkError> {
        let options = &self.worker.options;
        let is_wanted = options
            .agents()
            .is_none_or(|agents| task.agent.as_ref().is_some_and(|agent| agents.contains(agent)))
            && options.session().is_none_or(|session| task.session.as_ref() == Some(session));
        if !is_wanted || !self.wants_more(self.claims.claims().len(), false) {
            return Ok(Adoption::NotPossible);
        }
        let Some((task, guard)) = self.make_ours(task, claim).await? else {
            return Ok(Adoption::InOtherHands);
        };
        self.goes_on(Adopted {
            task,
            run: claim.run.clone(),
            from: claim.worker.clone(),
            guard,
            adoptee: None,
        });
        Ok(Adoption::Done)
    }

    fn goes_on(&self, adopted: Adopted) {
        self.adopted.lock().unwrap_or_else(PoisonError::into_inner).push(adopted);
    }

    /// An orphan with all that is needed to go on with it. One for which something is missing is ended.
    async fn adoptee(
        &self,
        task: &Task,
        claim: &Claim,
        orphan: Orphan,
    ) -> Result<Option<Adoptee>, WorkError> {
        let role = self.role_of(task).await.filter(|role| role.agent.driver() == orphan.driver());
        let start = self.start_of(claim).await?;
        let memo = orphan.request().rendezvous.as_ref().map(|place| serde_json::from_str(&place.memo));
        let (Some(role), Some(start), Some(Ok(scene))) = (role, start, memo) else {
            orphan.end().await;
            return Ok(None);
        };
        Ok(Some(Adoptee { orphan, role, start, scene }))
    }

    /// Makes the claim ours; an agent whose claim we do not get is not ours to keep.
    async fn take_on(&self, task: &Task, claim: &Claim, adoptee: Adoptee) -> Result<Adoption, WorkError> {
        let (task, guard) = match self.make_ours(task, claim).await {
            Ok(Some(ours)) => ours,
            Ok(None) => {
                adoptee.orphan.end().await;
                return Ok(Adoption::InOtherHands);
            }
            Err(error) => {
                adoptee.orphan.end().await;
                return Err(error);
            }
        };
        let (run, from) = (claim.run.clone(), claim.worker.clone());
        self.goes_on(Adopted { task, run, from, guard, adoptee: Some(adoptee) });
        Ok(Adoption::Done)
    }

    /// The claim of a dead worker, as ours, under a lease that was prolonged; none if that was over, and the task taken.
    async fn make_ours(&self, task: &Task, claim: &Claim) -> Result<Option<(Task, ClaimGuard)>, WorkError> {
        let (from, by) = (claim.worker.clone(), self.id.clone());
        let input = TaskInput::Adopt { fence: task.fence, from, by };
        let committed = self.commit(vec![Change::ChangeTask { id: task.id.clone(), input }]).await?;
        let Some(task) = committed.into_iter().find_map(Committed::task) else { return Ok(None) };
        let (asked_at, lease) = (BootInstant::now(), self.worker.options.lease);
        let held = self.worker.store.renew(&[(task.id.clone(), task.fence)], lease, self.now()).await?;
        Ok(held.contains(&task.id).then(|| {
            let guard = self.claims.keep(&task, asked_at, lease);
            (task, guard)
        }))
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
        Some(Rendezvous::new(place_of(&self.state.worker.state_dir, run), memo))
    }

    /// Stays with an adopted agent to its end, and writes down what came of it.
    pub(super) async fn go_on_with(&mut self, adoptee: Adoptee) -> Result<(), ClaimExit> {
        let Adoptee { orphan, role, start, scene } = adoptee;
        let report = match self.join(scene.head.clone()).await {
            Ok(_) => {
                let lease = self.guard.lease.clone();
                let adopted = role.agent.adopt(orphan, lease, self.watch(), self.cancel.clone()).await;
                // One that is not of its kind after all was ended: what is left is put in order.
                let Some(mut report) = adopted else { return Err(ClaimExit::Unsure) };
                self.look_around(&scene, &role, &mut report).await;
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
            let (worktrees, _) = self.worktrees()?;
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

//! What a worker that died on this machine has left: gone on with, finished or given back, each exactly once.
//!
//! An agent that outlived its worker is adopted, and so are its steps. A result that the agent came to before its worker died counts.
//! Whatever else the worker was doing is begun again by whoever claims the task next: worktrees are healed, steps
//! look first.

use std::time::Duration;

use camino::Utf8Path;
use rehearsal_agent::{RunReport, release_git_locks};
use rehearsal_core::flow::End;
use rehearsal_core::transition::{Refusal, TaskInput};
use rehearsal_core::{
    Actor, Claim, Notice, Outcome, Run, RunEnd, RunId, Standing, Task, TaskId, Timestamp, WorkerId,
};
use rehearsal_forge::GcMode;
use rehearsal_store::{Change, CommitError, FindError, Store, StoreError};

use super::adopt::{Adoption, agents_to_be_found, end_without_a_claim};
use super::presence::{Alive, Presence, WorkerKind};
use super::{WorkError, WorkEvent, WorkerState};
use crate::ledger::{Ledger, Meaning, Reported};
use crate::outcome_file::{self, end_of};
use crate::steps::{clear_gate_of, task_of_gate};

/// What is written of a run that never came to an end.
const DIED: &str = "the process that ran it died before it ended";

impl WorkerState {
    /// Puts in order what dead workers of this machine have left; how many tasks that were.
    pub(super) async fn recover(&self) -> Result<usize, WorkError> {
        // Looked for before the leases: a claim is older than its agent, so who has none now lost it.
        let agents = agents_to_be_found(&self.worker.state_dir);
        let leases = self.worker.store.leases().await?;
        end_without_a_claim(agents, &leases).await;
        let mut recovered = 0;
        let mut needed: Vec<&WorkerId> = Vec::new();
        for (task, _) in &leases {
            let Standing::Claimed(claim) = &task.standing else { continue };
            if !self.is_ours_to_recover(task, claim) {
                needed.push(&claim.worker);
                continue;
            }
            match self.take_care_of(task, claim).await {
                Ok(Care::PutInOrder(outcome)) => {
                    recovered += 1;
                    let (task, run) = (task.id.clone(), claim.run.clone());
                    self.tell(WorkEvent::Recovered { task, run, outcome });
                }
                Ok(Care::Adopted) => recovered += 1,
                Ok(Care::InOtherHands) => needed.push(&claim.worker),
                // Another worker was faster; or nobody knows, and the next look will tell.
                Err(error) if was_faster(&error) => {}
                Err(error) => return Err(error),
            }
        }
        self.end_runs_without_a_claim(&leases).await?;
        Presence::forget(&self.worker.state_dir, &needed);
        Ok(recovered)
    }

    /// Whether nobody works on a claim any more, and it is for us to see to it.
    fn is_ours_to_recover(&self, task: &Task, claim: &Claim) -> bool {
        // Of our own, one that we do not know of: the answer to its claim was lost.
        if claim.worker == self.id {
            return !self.claims.has(&task.id);
        }
        // The agents of a `work` may be alive in their worktrees: the next `work` goes on with them.
        let is_left_to_others =
            self.kind() == WorkerKind::Run && self.kind_of(&claim.worker) == WorkerKind::Work;
        !is_left_to_others && Presence::of(&self.worker.state_dir, &claim.worker) == Alive::No
    }

    fn kind_of(&self, worker: &WorkerId) -> WorkerKind {
        if *worker == self.id { self.kind() } else { Presence::kind_of(&self.worker.state_dir, worker) }
    }

    /// A run whose task was taken from it is ended by its worker, unless that died as well. After a lease there is no agent left.
    async fn end_runs_without_a_claim(&self, leases: &[(Task, Timestamp)]) -> Result<(), WorkError> {
        let store = &self.worker.store;
        let is_run = |task: &Task, run: &Run| matches!(&task.standing, Standing::Claimed(claim) if claim.run == run.start.id);
        for run in store.unfinished_runs().await? {
            if leases.iter().any(|(task, _)| is_run(task, &run)) {
                continue;
            }
            let Some(task) = store.task(&run.start.task).await? else { continue };
            if is_run(&task, &run) {
                continue;
            }
            let of_dead_loop = Presence::of(&self.worker.state_dir, &run.start.worker) == Alive::No
                && self.kind_of(&run.start.worker) == WorkerKind::Run;
            let ended = if of_dead_loop {
                let outcome = self.finish_left_run_of_loop(&run).await;
                outcome.map(|outcome| {
                    let (task, run) = (run.start.task, run.start.id);
                    self.tell(WorkEvent::Recovered { task, run, outcome });
                })
            } else if task.updated_at.plus(self.worker.options.lease) <= self.now() {
                let because = "its task was taken from it, and its worker is gone".to_owned();
                let end = Box::new(RunEnd::without_blame(because, self.now()));
                self.commit(vec![Change::EndRun { run: run.start.id, end }])
                    .await
                    .map(drop)
                    .map_err(WorkError::from)
            } else {
                Ok(())
            };
            match ended {
                Err(error) if !was_faster(&error) => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }

    async fn take_care_of(&self, task: &Task, claim: &Claim) -> Result<Care, WorkError> {
        match self.adopt(task, claim).await? {
            Adoption::Done => Ok(Care::Adopted),
            Adoption::InOtherHands => Ok(Care::InOtherHands),
            Adoption::NotPossible => Ok(Care::PutInOrder(self.put_in_order(task, claim).await?)),
        }
    }

    /// Gives back the worktrees of tasks whose way is over: whoever ended them died before it could.
    pub(super) async fn give_back_what_is_over(&self) {
        let Some((worktrees, _)) = self.worker.workspace.worktrees() else { return };
        for owner in worktrees.owners() {
            if let Some(task) = self.task_that_is_left(&owner).await {
                self.give_worktree_back(&task).await;
            } else if let Some(of) = task_of_gate(&owner)
                && let Some(task) = self.task_that_is_left(&of).await
                && let Err(error) = clear_gate_of(&task, worktrees).await
            {
                self.warn(Notice::GateCheckoutKept { error: error.to_string() });
            }
        }
    }

    async fn task_that_is_left(&self, id: &TaskId) -> Option<Task> {
        let task = self.worker.store.task(id).await.ok().flatten();
        task.filter(|task| is_left(task, self.now(), self.worker.options.lease))
    }

    async fn put_in_order(&self, task: &Task, claim: &Claim) -> Result<Outcome, WorkError> {
        let run = match self.worker.store.find_run(claim.run.as_str()).await {
            Ok(run) if run.start.id == claim.run && run.end.is_none() => Some(run),
            Ok(_) | Err(FindError::NotFound { .. } | FindError::Ambiguous { .. }) => None,
            Err(FindError::Store(error)) => return Err(error.into()),
        };
        if let (Some(run), WorkerKind::Run) = (&run, self.kind_of(&claim.worker)) {
            return self.finish_left_run_of_loop(run).await;
        }
        self.end_processes_of(&claim.run);
        match (run, outcome_file::read(&self.run_dir(&claim.run))) {
            (Some(run), Some(report)) => {
                let outcome = report.verdict.outcome.clone();
                let own = self.finish_left_run(&run, Some(&report), Meaning::TheWholeState).await?;
                // Its steps are still to be done: by us, or by whoever takes it now.
                if let Some(own) = own
                    && let Standing::Claimed(claim) = &own.standing
                    && self.adopt_steps(&own, claim).await? == Adoption::NotPossible
                {
                    self.commit(vec![self.give_back(&own, claim)]).await?;
                }
                Ok(outcome)
            }
            (run, _) => {
                let mut changes = Vec::new();
                if let Some(run) = run {
                    let end = Box::new(RunEnd::without_blame(DIED.to_owned(), self.now()));
                    changes.push(Change::EndRun { run: run.start.id, end });
                }
                changes.push(self.give_back(task, claim));
                self.commit(changes).await?;
                Ok(Outcome::Cancelled)
            }
        }
    }

    fn end_processes_of(&self, run: &RunId) {
        let rehearsal_process::Escaped { count, names } =
            rehearsal_process::kill_processes_in(&self.run_dir(run));
        if count > 0 {
            self.warn(Notice::LeftRunKilled { run: run.clone(), count, names });
        }
    }

    /// A run in the user's checkout, which ended with its worker. That it was killed costs its task nothing.
    async fn finish_left_run_of_loop(&self, run: &Run) -> Result<Outcome, WorkError> {
        let run_dir = self.run_dir(&run.start.id);
        self.end_processes_of(&run.start.id);
        if let Some(notice) = release_git_locks(self.worker.workspace.root(), &run_dir).await {
            self.warn(notice);
        }
        let report = outcome_file::read(&run_dir);
        let own = self.finish_left_run(run, report.as_ref(), Meaning::OneIteration).await?;
        // Its steps are still to be done, by whoever claims it next.
        if let Some(own) = own
            && let Standing::Claimed(claim) = &own.standing
        {
            self.commit(vec![self.give_back(&own, claim)]).await?;
        }
        Ok(report.map_or(Outcome::Cancelled, |report| report.verdict.outcome))
    }

    /// Writes the end of a run whose worker died: with its report, if it had come to one. Its task as it is then.
    async fn finish_left_run(
        &self,
        run: &Run,
        report: Option<&RunReport>,
        meaning: Meaning,
    ) -> Result<Option<Task>, WorkError> {
        let warn = |notice| self.warn(notice);
        let ledger = Ledger { store: &*self.worker.store, now: self.now(), warn: &warn };
        let (end, reported) = match report {
            Some(report) => (end_of(report, self.now()), Reported::of(report, &run.start.task)),
            None => {
                let notices = self.after_a_kill(run).await;
                let end = RunEnd::without_blame(DIED.to_owned(), self.now());
                (RunEnd { notices, ..end }, Reported::default())
            }
        };
        for notice in end.notices.iter().filter(|_| report.is_none()) {
            // What it left is said when all that is in the checkout is.
            if !matches!(notice, Notice::LeftUncommitted { .. }) {
                self.warn(notice.clone());
            }
        }
        let actor = Actor::Worker(self.id.clone());
        let own = ledger.write(actor, &run.start, &end, reported, meaning).await?.own;
        if let Some(task) = &own {
            self.after_run(&run.start.agent, &end.verdict.outcome, task).await?;
        }
        Ok(own)
    }

    /// A claim is taken from a dead worker; one of our own that we do not know of was never worked on.
    fn give_back(&self, task: &Task, claim: &Claim) -> Change {
        let input = if claim.worker == self.id || self.kind_of(&claim.worker) == WorkerKind::Run {
            TaskInput::Release { fence: task.fence }
        } else {
            TaskInput::Lose { stale: task.fence, of: claim.worker.clone() }
        };
        Change::ChangeTask { id: task.id.clone(), input }
    }
}

/// A worker that left its trace on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalWorker {
    /// Which.
    pub id: WorkerId,
    /// Whether it works through a session in the user's checkout.
    pub is_loop: bool,
    /// Whether it has died.
    pub has_died: bool,
}

/// The workers of this machine that are alive, or whose work nobody has put in order yet.
pub fn workers_here(state_dir: &Utf8Path) -> Vec<LocalWorker> {
    let local = |(id, kind, alive)| LocalWorker {
        id,
        is_loop: kind == WorkerKind::Run,
        has_died: alive == Alive::No,
    };
    Presence::all(state_dir).into_iter().map(local).collect()
}

/// Whether a worker of this machine has died.
pub fn has_died(worker: &WorkerId, state_dir: &Utf8Path) -> bool {
    Presence::of(state_dir, worker) == Alive::No
}

/// Whether a claim is that of a `run` of this machine: an agent in the user's checkout.
pub fn is_in_checkout(claim: &Claim, state_dir: &Utf8Path) -> bool {
    Presence::kind_of(state_dir, &claim.worker) == WorkerKind::Run
}

/// The runs of dead workers of this machine that have no end yet, of `run` only: a `work` has agents that may go on.
pub async fn left_runs(store: &dyn Store, state_dir: &Utf8Path) -> Result<Vec<Run>, StoreError> {
    let is_left = |run: &Run| {
        let worker = &run.start.worker;
        Presence::of(state_dir, worker) == Alive::No
            && Presence::kind_of(state_dir, worker) == WorkerKind::Run
    };
    Ok(store.unfinished_runs().await?.into_iter().filter(is_left).collect())
}

/// Whether another worker was faster, or nobody knows what became of a commit.
fn was_faster(error: &WorkError) -> bool {
    matches!(
        error,
        WorkError::Commit(
            CommitError::Refused { refusal: Refusal::Stale { .. } | Refusal::OtherWorker { .. }, .. }
                | CommitError::RunEnded { .. }
                | CommitError::OutcomeUnknown,
        )
    )
}

/// What was done about a claim that was left.
enum Care {
    /// Its run goes on here.
    Adopted,
    /// Another worker is about to go on with it.
    InOtherHands,
    PutInOrder(Outcome),
}

/// The traces of workers of this machine that died and left nothing to be put in order: removed, or only named. With them
/// go agents that outlived their worker and lost their task.
pub async fn forget_dead_workers(
    store: &dyn Store,
    state_dir: &Utf8Path,
    mode: GcMode,
) -> Result<Vec<WorkerId>, StoreError> {
    let agents = agents_to_be_found(state_dir);
    let leases = store.leases().await?;
    if mode == GcMode::Delete {
        end_without_a_claim(agents, &leases).await;
    }
    let holders = leases.iter().filter_map(|(task, _)| match &task.standing {
        Standing::Claimed(claim) => Some(&claim.worker),
        _ => None,
    });
    let needed: Vec<&WorkerId> = holders.collect();
    let gone = Presence::forgettable(state_dir, &needed);
    if mode == GcMode::Delete {
        Presence::forget(state_dir, &needed);
    }
    Ok(gone)
}

/// Whether nobody can be in the worktree of a task any more. One that was cancelled may have an agent that nobody has
/// told yet.
fn is_left(task: &Task, now: Timestamp, lease: Duration) -> bool {
    match task.standing {
        Standing::Ended { end: End::Cancelled } => task.updated_at.plus(lease) <= now,
        Standing::Ended { end: End::Success | End::Failure } => true,
        Standing::Ready | Standing::Claimed(_) | Standing::Waiting(_) => false,
    }
}

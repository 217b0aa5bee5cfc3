//! What a worker carries from task to task.

use std::sync::atomic::{AtomicBool, AtomicI64};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use camino::Utf8PathBuf;
use rehearsal_core::{Actor, Notice, RunId, Task, TaskId, Timestamp, WorkerId};
use rehearsal_store::{Change, CommitError, Committed};

use super::adopt::Adopted;
use super::heartbeat::ClaimRegistry;
use super::patient::Patient;
use super::presence::WorkerKind;
use super::session::Iterations;
use super::tally::Tally;
use super::{
    Moment, Policy, Reaction, SessionStart, WorkEnd, WorkError, WorkEvent, WorkSummary, Worker, Workspace,
};
use crate::Draws;
use crate::steps::MergeQueue;

/// A worker at work.
pub(crate) struct WorkerState {
    pub(crate) worker: Worker,
    pub(crate) id: WorkerId,
    pub(super) claims: ClaimRegistry,
    pub(crate) merges: MergeQueue,
    draws: Draws,
    /// When the leases were last prolonged: a worker that slept prolongs its own before it takes anyone else's.
    pub(super) last_beat: AtomicI64,
    /// Whether the answer to a commit was lost: what became of it has to be looked at.
    pub(super) unsure: AtomicBool,
    /// Whether it was said that commits run no hooks.
    pub(crate) hooks_skipped: AtomicBool,
    /// Whether it was said that there are no tests.
    pub(crate) nothing_tested: AtomicBool,
    /// Runs of dead workers that go on here, as soon as there is a slot for them.
    pub(super) adopted: Mutex<Vec<Adopted>>,
    pub(super) began: Timestamp,
    /// The same on the monotonic clock.
    began_monotonic: Duration,
    tally: Mutex<Tally>,
    iterations: Mutex<Iterations>,
}

impl WorkerState {
    pub(super) fn new(mut worker: Worker) -> Self {
        let (stop, reporter) = (worker.stop.now.clone(), Arc::clone(&worker.reporter));
        worker.store = Arc::new(Patient::new(worker.store, stop, reporter));
        let seed = worker.options.seed;
        let draws = seed.map_or_else(Draws::random, Draws::of_seed);
        let (began, began_monotonic) = (worker.clock.now(), worker.clock.monotonic());
        let mut state = Self {
            worker,
            id: crate::worker_id(uuid::Uuid::now_v7()),
            claims: ClaimRegistry::default(),
            merges: MergeQueue::default(),
            draws,
            last_beat: AtomicI64::new(began.0),
            unsure: AtomicBool::new(false),
            hooks_skipped: AtomicBool::new(false),
            nothing_tested: AtomicBool::new(false),
            adopted: Mutex::default(),
            began,
            began_monotonic,
            tally: Mutex::default(),
            iterations: Mutex::default(),
        };
        if seed.is_some() {
            state.id = crate::worker_id(uuid::Uuid::from_u64_pair(state.draw(), state.draw()));
        }
        state
    }

    /// Which kind of worker others see in its trace.
    pub(super) fn kind(&self) -> WorkerKind {
        match self.worker.workspace {
            Workspace::Worktrees { .. } => WorkerKind::Work,
            Workspace::Checkout(_) => WorkerKind::Run,
        }
    }

    /// Checks what can be checked, puts in order what dead workers left, and tells what is to be done.
    pub(super) async fn begin(&self) -> Result<(), WorkError> {
        let started = |session| {
            let (worker, at_once) = (self.id.clone(), self.worker.options.at_once());
            self.tell(WorkEvent::WorkStarted { worker, at_once, session });
        };
        match &self.worker.options.policy {
            Policy::Queue(_) => {
                started(None);
                self.recover().await?;
                self.give_back_what_is_over().await;
            }
            Policy::Session(policy) => {
                self.worker.check_session(policy).await?;
                self.recover().await?;
                let counts = self.worker.store.count_tasks(Some(&policy.session)).await?;
                started(Some(SessionStart {
                    session: policy.session.clone(),
                    agent: policy.agent.clone(),
                    open_tasks: counts.open,
                    iterations: policy.iterations,
                }));
                if counts.open > 0 {
                    self.announce_checkout().await?;
                }
            }
        }
        Ok(())
    }

    /// Randomness; in a rehearsal the same each time.
    pub(crate) fn draw(&self) -> u64 {
        self.draws.next()
    }

    /// Commits in the worker's name.
    pub(crate) async fn commit(&self, changes: Vec<Change>) -> Result<Vec<Committed>, CommitError> {
        let actor = Actor::Worker(self.id.clone());
        self.worker.store.commit(actor, self.now(), changes).await
    }

    pub(super) async fn summary(&self, end: WorkEnd) -> Result<WorkSummary, WorkError> {
        let (store, options, now) = (&self.worker.store, &self.worker.options, self.now());
        let touched = self.tally(|tally| tally.touched.clone());
        let mut tasks: Vec<Task> = Vec::new();
        for id in &touched {
            tasks.extend(store.task(id).await?);
        }
        let counts = store.count_tasks(options.session()).await?;
        let situation = store.situation(&options.limits, now).await?;
        let (iterations, all_failed) =
            self.iterations(|iterations| (iterations.count, iterations.all_failed()));
        let is_spent = match &options.policy {
            Policy::Session(policy) => self.is_all_spent(policy).await?,
            Policy::Queue(_) => false,
        };
        let took = self.worker.clock.monotonic().saturating_sub(self.began_monotonic);
        Ok(self.tally(|tally| WorkSummary {
            worker: self.id.clone(),
            session: options.session().cloned(),
            end,
            iterations,
            runs: tally.runs.clone(),
            done_tasks: tasks.iter().filter(|task| task.is_done()).count() as u64,
            tasks,
            open_tasks: counts.open,
            cost_usd: tally.cost_usd,
            runs_without_cost: tally.runs_without_cost,
            tokens: tally.tokens,
            confined_by: tally.confined_by.clone(),
            all_failed,
            is_spent,
            notices: tally.notices.clone(),
            held: situation.holds.into_iter().filter(|(_, hold)| hold.holds_at(now)).collect(),
            duration_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        }))
    }

    pub(super) fn tally<T>(&self, what: impl FnOnce(&mut Tally) -> T) -> T {
        what(&mut self.tally.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn iterations<T>(&self, what: impl FnOnce(&mut Iterations) -> T) -> T {
        what(&mut self.iterations.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What is left of what this worker may spend; none: there is no limit.
    pub(super) fn left(&self) -> Option<f64> {
        let spent = self.tally(|tally| tally.spent());
        self.worker.options.max_cost.map(|most| most - spent)
    }

    /// Whether nothing more may be begun, by what it has cost.
    pub(super) fn is_spent(&self) -> bool {
        self.left().is_some_and(|left| left <= 0.0)
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.worker.clock.now()
    }

    pub(crate) fn tell(&self, event: WorkEvent) {
        (self.worker.reporter)(event);
    }

    pub(crate) fn warn(&self, notice: Notice) {
        if notice.belongs_in_summary() {
            self.tally(|tally| tally.note(notice.clone()));
        }
        self.tell(WorkEvent::Warning { notice });
    }

    /// Lets the listener have its say.
    pub(crate) async fn reach(
        &self,
        moment: Moment,
        task: &TaskId,
        step: Option<&str>,
    ) -> Result<(), WorkError> {
        match self.worker.moments.reached(moment, task, step).await {
            Reaction::GoOn => Ok(()),
            Reaction::Die => Err(WorkError::Died),
        }
    }

    pub(super) fn run_dir(&self, run: &RunId) -> Utf8PathBuf {
        self.worker.run_dir(run)
    }
}

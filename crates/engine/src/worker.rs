//! The worker: claims tasks of any flow and takes each from a worktree to its next state, several at once.
//!
//! One task is one slot: claim, prepare, run the agent, do the steps, move. Everything that lasts goes through the
//! store with the claim's fence, so a worker that lost a task changes nothing more. What a worker that died has
//! left is gone on with or put in order by the next one on the same machine, or taken over by any when its lease has
//! run out.

mod adopt;
mod agents;
mod attempt;
mod circuit_breaker;
mod event;
mod heartbeat;
mod moment;
mod patient;
mod presence;
mod recover;
mod slot;
mod wakeup;
mod worktree;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use camino::Utf8PathBuf;
use rehearsal_agent::BootInstant;
use rehearsal_agent::environment::Variables;
use rehearsal_core::config::TestingSettings;
use rehearsal_core::guard::Limits;
use rehearsal_core::quality::Rules;
use rehearsal_core::{Actor, AgentName, Clock, RunId, SessionName, Task, TaskId, Timestamp, Turn, WorkerId};
use rehearsal_forge::{Forge, Worktrees};
use rehearsal_store::{Change, ClaimRequest, Claimed, CommitError, Committed, Store, StoreError};
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;

use crate::steps::MergeQueue;
use crate::{Draws, StopSwitch};
use adopt::Adopted;
use heartbeat::{ClaimGuard, ClaimRegistry};
use patient::Patient;

pub(crate) use adopt::is_to_be_found;
pub(crate) use presence::{Alive, Presence};

pub use agents::{Role, Roles};
pub use event::{WorkEnd, WorkEvent, WorkSummary};
pub use moment::{Moment, Moments, Reaction, Undisturbed};
pub use patient::open_patiently;
pub use recover::forget_dead_workers;

/// Told of everything that happens in a worker. Must not block.
pub type WorkReporter = Arc<dyn Fn(WorkEvent) + Send + Sync>;

/// What a worker needs.
pub struct Worker {
    /// Where tasks live.
    pub store: Arc<dyn Store>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// The agents.
    pub roles: Arc<dyn Roles>,
    /// Where they work.
    pub worktrees: Arc<Worktrees>,
    /// Where the work goes.
    pub outlet: Outlet,
    /// Where state is kept: run directories, traces of workers.
    pub state_dir: Utf8PathBuf,
    /// How tests run.
    pub testing: TestingSettings,
    /// Which changes need a review.
    pub quality: Rules,
    /// Our environment, as it was when the program began.
    pub variables: Variables,
    /// The rest.
    pub options: WorkOptions,
    /// Who is told.
    pub reporter: WorkReporter,
    /// How it is stopped.
    pub stop: StopSwitch,
    /// Who listens to its moments.
    pub moments: Arc<dyn Moments>,
}

/// Where finished work goes.
#[derive(Clone)]
pub struct Outlet {
    /// The remote that branches are pushed to: its name in the repository, or its address.
    pub remote: String,
    /// The branch that work goes into.
    pub base: String,
    /// Where pull requests live.
    pub forge: Arc<dyn Forge>,
    /// How work gets onto the base.
    pub landing: Landing,
}

/// How work gets onto the base.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Landing {
    /// We move the base ourselves, to the very commit that was tested.
    Ours,
    /// The forge merges; we look afterwards whether it is what was tested.
    Forge,
}

/// What a user can say about a worker.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkOptions {
    /// At most so many tasks at once.
    pub at_once: u32,
    /// Only tasks for these agents.
    pub agents: Option<BTreeSet<AgentName>>,
    /// Only tasks of this session.
    pub session: Option<SessionName>,
    /// End when there is nothing more to do.
    pub until_idle: bool,
    /// End after one task.
    pub once: bool,
    /// Begin nothing more once the runs have cost so much, in dollars.
    pub max_cost: Option<f64>,
    /// For how long a claim holds without a word from its worker.
    pub lease: Duration,
    /// What the configuration allows.
    pub limits: Limits,
    /// How often to look for what other processes changed; none: nobody else writes.
    pub look_every: Option<Duration>,
    /// The seed of what is drawn: run ids, and so the names of run directories.
    pub seed: Option<u64>,
}

/// Why a worker could not go on. Failures of agents and steps are no errors.
#[derive(Debug, thiserror::Error)]
pub enum WorkError {
    /// The store did not take it.
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] StoreError),
    /// A directory or file of ours cannot be used.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// A rehearsal let the worker die here.
    #[error("the worker died")]
    Died,
}

impl From<crate::ledger::LedgerError> for WorkError {
    fn from(error: crate::ledger::LedgerError) -> Self {
        match error {
            crate::ledger::LedgerError::Commit(error) => Self::Commit(error),
            crate::ledger::LedgerError::Read(error) => Self::Read(error),
        }
    }
}

/// What a worker carries from task to task.
pub(crate) struct WorkerState {
    pub(crate) worker: Worker,
    pub(crate) id: WorkerId,
    claims: ClaimRegistry,
    pub(crate) merges: MergeQueue,
    draws: Draws,
    /// When the leases were last prolonged: a worker that slept prolongs its own before it takes anyone else's.
    last_beat: AtomicI64,
    /// Whether the answer to a commit was lost: what became of it has to be looked at.
    unsure: AtomicBool,
    /// Runs of dead workers that go on here, as soon as the worker turns to them.
    adopted: Mutex<Vec<Adopted>>,
    began: Timestamp,
    tally: Mutex<Tally>,
}

#[derive(Debug, Default)]
struct Tally {
    runs: u32,
    cost_usd: f64,
    runs_without_cost: u32,
    touched: Vec<TaskId>,
    /// Failures that only a hand can mend, in a row, by who had them: an agent's name, or the engine's steps.
    hard_setbacks: std::collections::BTreeMap<String, u32>,
}

impl Worker {
    /// Works until it is stopped, or there is nothing more to do.
    pub async fn run(self) -> Result<WorkSummary, WorkError> {
        let began = self.clock.now();
        let state = Arc::new(WorkerState::new(self));
        let presence = Presence::announce(&state.worker.state_dir, &state.id)?;
        {
            let _turn = state.worker.clock.turn().await;
            state.tell(WorkEvent::WorkStarted {
                worker: state.id.clone(),
                at_once: state.worker.options.at_once,
            });
            Box::pin(state.recover()).await?;
            Box::pin(state.give_back_what_is_over()).await;
        }
        // Beats as long as we live, and no longer.
        let _heart = AbortOnDropHandle::new(tokio::spawn(Arc::clone(&state).beat()));
        let end = Box::pin(state.work()).await?;
        let _turn = state.worker.clock.turn().await;
        let summary = Box::pin(state.summary(end, began)).await?;
        presence.leave();
        Ok(summary)
    }
}

impl WorkerState {
    fn new(mut worker: Worker) -> Self {
        let (stop, reporter) = (worker.stop.now.clone(), Arc::clone(&worker.reporter));
        worker.store = Arc::new(Patient::new(worker.store, stop, reporter));
        let seed = worker.options.seed;
        let merges = MergeQueue::default();
        let (draws, tally) = (seed.map_or_else(Draws::random, Draws::of_seed), Mutex::default());
        let began = worker.clock.now();
        let last_beat = AtomicI64::new(began.0);
        let mut state = Self {
            worker,
            id: crate::worker_id(uuid::Uuid::now_v7()),
            claims: ClaimRegistry::default(),
            merges,
            draws,
            last_beat,
            unsure: AtomicBool::new(false),
            adopted: Mutex::default(),
            began,
            tally,
        };
        if seed.is_some() {
            state.id = crate::worker_id(uuid::Uuid::from_u64_pair(state.draw(), state.draw()));
        }
        state
    }

    /// Randomness; in a rehearsal the same each time.
    pub(crate) fn draw(&self) -> u64 {
        self.draws.next()
    }

    async fn work(self: &Arc<Self>) -> Result<WorkEnd, WorkError> {
        let mut slots: JoinSet<Result<(), WorkError>> = JoinSet::new();
        let mut changes = self.worker.store.changes();
        let (mut began_one, mut told_to_wait, mut looked) = (false, None, self.now());
        loop {
            changes.mark_unchanged();
            self.look_after_claims(&mut looked).await;
            if self.unsure.swap(false, Ordering::SeqCst) {
                self.recover().await?;
            }
            began_one |= self.go_on_with_adopted(&mut slots).await;
            let mut idle_until = None;
            while self.wants_more(slots.len(), began_one) {
                let turn = self.worker.clock.turn().await;
                let asked_at = BootInstant::now();
                let Some(claimed) = self.claim().await? else {
                    // What a worker that died here has left is claimable as soon as it is known to be dead.
                    if self.recover().await? > 0 {
                        drop(turn);
                        began_one |= self.go_on_with_adopted(&mut slots).await;
                        continue;
                    }
                    idle_until = self.next_chance().await?;
                    break;
                };
                began_one = true;
                // Before anything else happens: a claim of ours that is not held counts as left behind.
                let guard = self.claims.keep(&claimed.task, asked_at, self.worker.options.lease);
                slots.spawn(Arc::clone(self).work_on(claimed, guard, turn));
            }
            if slots.is_empty() {
                if self.worker.stop.is_thrown() {
                    return Ok(WorkEnd::Interrupted);
                }
                if self.worker.options.once && began_one {
                    return Ok(WorkEnd::Once);
                }
                if self.is_spent() {
                    return Ok(WorkEnd::BudgetReached);
                }
                if idle_until.is_none() && (self.worker.options.until_idle || self.worker.options.once) {
                    return Ok(WorkEnd::Idle);
                }
                if told_to_wait.replace(idle_until) != Some(idle_until) {
                    self.tell(WorkEvent::Waiting { until: idle_until });
                }
            }
            let stopping = self.worker.stop.is_thrown();
            tokio::select! {
                biased;
                Some(ended) = slots.join_next() => ended.map_err(std::io::Error::other)??,
                () = self.worker.stop.thrown(), if !stopping => {}
                () = self.woken(idle_until) => {}
                changed = changes.changed(), if !stopping => changed.map_err(std::io::Error::other)?,
            }
        }
    }

    /// Finds out what was taken from us since the last look, long before the heartbeat would: an agent whose task somebody cancels is
    /// to stop soon.
    async fn look_after_claims(&self, last: &mut Timestamp) {
        let (now, claims) = (self.now(), self.claims.claims());
        let is_due = self.worker.options.look_every.is_some_and(|every| last.plus(every) <= now);
        if !is_due || claims.is_empty() {
            return;
        }
        *last = now;
        // A store that does not answer now is asked by the heartbeat as well, which tells.
        if let Ok(still_held) = self.worker.store.still_held(&claims).await {
            self.claims.seen(&claims, &still_held);
        }
    }

    /// Gives each run that was adopted a slot, also if there are more than may be begun at once; whether there was any.
    async fn go_on_with_adopted(self: &Arc<Self>, slots: &mut JoinSet<Result<(), WorkError>>) -> bool {
        let adopted = std::mem::take(&mut *self.adopted.lock().unwrap_or_else(PoisonError::into_inner));
        let is_any = !adopted.is_empty();
        for adopted in adopted {
            let turn = self.worker.clock.turn().await;
            let state = Arc::clone(self);
            slots.spawn(async move {
                let worked = adopt::work(&state, adopted).await;
                drop(turn);
                worked
            });
        }
        is_any
    }

    fn wants_more(&self, busy: usize, began_one: bool) -> bool {
        let options = &self.worker.options;
        let is_over = self.worker.stop.is_thrown() || self.is_spent() || (options.once && began_one);
        !is_over && busy < options.at_once as usize
    }

    /// Whether nothing more may be begun, by what it has cost.
    fn is_spent(&self) -> bool {
        let spent = self.tally(|tally| tally.cost_usd);
        self.worker.options.max_cost.is_some_and(|most| spent >= most)
    }

    /// Returns when something may have become claimable by itself, or others may have changed something.
    async fn woken(&self, until: Option<Timestamp>) {
        let look = self.worker.options.look_every.map(|every| self.now().plus(every));
        match (until, look) {
            (None, None) => std::future::pending().await,
            (Some(at), None) | (None, Some(at)) => self.worker.clock.sleep_until(at).await,
            (Some(until), Some(look)) => self.worker.clock.sleep_until(until.min(look)).await,
        }
    }

    async fn claim(&self) -> Result<Option<Claimed>, WorkError> {
        let options = &self.worker.options;
        loop {
            let request = ClaimRequest {
                worker: self.id.clone(),
                run: RunId::from_random(self.draw()),
                lease: options.lease,
                agents: options.agents.clone(),
                session: options.session.clone(),
                limits: options.limits.clone(),
                may_take_over: self.may_take_over(),
            };
            match self.commit(vec![Change::ClaimNext(Box::new(request))]).await {
                Ok(committed) => {
                    return Ok(committed.into_iter().find_map(|committed| match committed {
                        Committed::Claimed(claimed) => claimed.map(|claimed| *claimed),
                        _ => None,
                    }));
                }
                // If there is a claim that we do not know of, it is given back.
                Err(CommitError::OutcomeUnknown) => self.recover().await?,
                Err(error) => return Err(error.into()),
            };
        }
    }

    /// A worker that slept prolongs its own claims before it takes anyone else's; and one that has just begun cannot know
    /// whether the whole machine slept, with others on it that are about to prolong theirs.
    fn may_take_over(&self) -> bool {
        let lease = self.worker.options.lease;
        let last_beat = Timestamp(self.last_beat.load(Ordering::SeqCst));
        self.now() >= self.began.plus(lease) && self.now().since(last_beat) <= lease
    }

    /// Commits in the worker's name.
    pub(crate) async fn commit(&self, changes: Vec<Change>) -> Result<Vec<Committed>, CommitError> {
        let actor = Actor::Worker(self.id.clone());
        self.worker.store.commit(actor, self.now(), changes).await
    }

    async fn beat(self: Arc<Self>) {
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
                Err(error) => self.warn(format!("the leases could not be prolonged: {error}")),
            }
        }
    }

    async fn summary(&self, end: WorkEnd, began: Timestamp) -> Result<WorkSummary, WorkError> {
        let (runs, cost_usd, runs_without_cost, touched) =
            self.tally(|tally| (tally.runs, tally.cost_usd, tally.runs_without_cost, tally.touched.clone()));
        let mut tasks: Vec<Task> = Vec::new();
        for id in &touched {
            tasks.extend(self.worker.store.task(id).await?);
        }
        let now = self.now();
        let situation = self.worker.store.situation(&self.worker.options.limits, now).await?;
        Ok(WorkSummary {
            worker: self.id.clone(),
            end,
            tasks,
            runs,
            cost_usd,
            runs_without_cost,
            held: situation.holds.into_iter().filter(|(_, hold)| hold.holds_at(now)).collect(),
            duration_ms: u64::try_from(now.since(began).as_millis()).unwrap_or(u64::MAX),
        })
    }

    fn tally<T>(&self, what: impl FnOnce(&mut Tally) -> T) -> T {
        what(&mut self.tally.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.worker.clock.now()
    }

    pub(crate) fn tell(&self, event: WorkEvent) {
        (self.worker.reporter)(event);
    }

    pub(crate) fn warn(&self, message: String) {
        self.tell(WorkEvent::Warning { message });
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

    fn run_dir(&self, run: &RunId) -> Utf8PathBuf {
        self.worker.state_dir.join("runs").join(run.as_str())
    }

    async fn work_on(
        self: Arc<Self>,
        claimed: Claimed,
        guard: ClaimGuard,
        turn: Turn,
    ) -> Result<(), WorkError> {
        let worked = slot::work(&self, claimed, guard).await;
        drop(turn);
        worked
    }
}

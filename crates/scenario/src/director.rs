//! Plays a scenario: starts the workers, advances the clock, and replaces workers that die.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rehearsal_core::Timestamp;
use rehearsal_core::guard::Hindrance;
use rehearsal_core::seed::mix;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};

use crate::actors::{Actors, ScriptedRoles};
use crate::clock::{Next, WorkerClock};
use crate::environment::ScenarioError;
use crate::events::{Listener, Order, World};
use crate::faulty_store::FaultyStore;
use crate::scenario::Kill;
use crate::timeline::Timeline;
use rehearsal_engine::{StopSwitch, WorkError, WorkOptions, WorkSummary, Worker, Workspace};

/// The longest a rehearsal may stand still in real time. Longer is a bug in Rehearsal.
const SAFETY: Duration = Duration::from_secs(120);

/// The running rehearsal.
pub(crate) struct Director {
    pub(crate) world: Arc<World>,
    pub(crate) actors: Arc<Actors>,
    pub(crate) store: Arc<FaultyStore>,
    pub(crate) timeline: Arc<Timeline>,
    pub(crate) orders: mpsc::UnboundedReceiver<Order>,
    pub(crate) options: WorkOptions,
    pub(crate) seed: u64,
    /// When the rehearsal ends at the latest.
    pub(crate) until: Timestamp,
    pub(crate) workers: JoinSet<Result<WorkSummary, WorkError>>,
    pub(crate) cast: BTreeMap<usize, Member>,
}

/// A worker, alive or dead.
pub(crate) struct Member {
    /// How many workers had this number before.
    generation: u64,
    task: Option<(Id, AbortHandle)>,
    stop: StopSwitch,
    dies: Option<Kill>,
    /// It is stopping; another one starts after this time.
    drains: Option<Duration>,
}

impl Director {
    /// Plays until nothing more happens.
    pub(crate) async fn play(&mut self, count: u32) -> Result<(), ScenarioError> {
        for worker in 1..=count as usize {
            self.start(worker);
        }
        match tokio::time::timeout(SAFETY, self.direct()).await {
            Ok(played) => played?,
            Err(_) => {
                self.actors.problems.add(format!("it stood still for {} s of real time", SAFETY.as_secs()))
            }
        }
        self.world.give_up();
        self.workers.shutdown().await;
        Ok(())
    }

    async fn direct(&mut self) -> Result<(), ScenarioError> {
        let clock = self.world.environment.clock.clone();
        let halt = self.actors.problems.halt.clone();
        while !halt.is_cancelled() {
            match clock.settle().await {
                Next::Busy => {
                    tokio::select! {
                        biased;
                        Some(ended) = self.workers.join_next_with_id() => self.ended(ended),
                        Some(order) = self.orders.recv() => self.obey(order),
                        () = halt.cancelled() => {}
                        () = clock.change() => {}
                    }
                }
                Next::Idle(next) => {
                    if let Some(ended) = self.workers.try_join_next_with_id() {
                        self.ended(ended);
                    } else if let Ok(order) = self.orders.try_recv() {
                        self.obey(order);
                    } else if next.is_some_and(|at| at <= clock.now()) {
                        // Others wake at the same moment.
                        clock.advance(clock.now());
                    } else if self.is_over().await? || !self.go_on(next) {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether nothing more will happen.
    async fn is_over(&self) -> Result<bool, ScenarioError> {
        let agents_work = self.actors.socket.is_busy();
        if self.world.has_plans() || self.world.environment.clock.has_frozen() || agents_work {
            return Ok(false);
        }
        if self.workers.is_empty() {
            return Ok(true);
        }
        let (store, now) = (self.store.inner(), self.world.environment.clock.now());
        let wakes = store.next_wake(now).await?.is_some() || self.is_only_too_soon(now).await?;
        Ok(!wakes && store.leases().await?.is_empty())
    }

    /// Whether the next task waits only for its agent's interval.
    async fn is_only_too_soon(&self, now: Timestamp) -> Result<bool, ScenarioError> {
        let store = self.store.inner();
        let Some(task) = store.next_task(None, now).await? else { return Ok(false) };
        let hindrance = store.hindrance(&task, &self.options.limits, now).await?;
        Ok(matches!(hindrance, Some(Hindrance::TooSoon { .. })))
    }

    /// Advances the clock; false if it cannot.
    fn go_on(&self, next: Option<Timestamp>) -> bool {
        match next {
            Some(at) if at > self.until => {
                self.actors.problems.add("it was not over in the time that the scenario has (`until`)");
                false
            }
            Some(at) => {
                self.world.environment.clock.advance(at);
                true
            }
            None => false,
        }
    }

    fn start(&mut self, number: usize) {
        let generation = self.cast.get(&number).map_or(0, |member| member.generation + 1);
        let seed = mix(self.seed ^ mix(number as u64) ^ mix(generation << 32));
        let environment = &self.world.environment;
        let stop = StopSwitch::default();
        let worker = Worker {
            store: Arc::<FaultyStore>::clone(&self.store),
            clock: Arc::new(WorkerClock { environment: environment.clock.clone(), worker: number }),
            roles: Arc::new(ScriptedRoles { actors: Arc::clone(&self.actors), worker: number }),
            workspace: Workspace::Worktrees {
                worktrees: Arc::clone(&environment.worktrees),
                outlet: environment.outlet.clone(),
            },
            state_dir: environment.state_dir(),
            testing: self.actors.settings.testing.clone(),
            quality: self.actors.settings.quality.rules(),
            variables: self.actors.variables.clone(),
            options: WorkOptions { seed: Some(seed), ..self.options.clone() },
            reporter: self.reporter(number),
            stop: stop.clone(),
            moments: Arc::new(Listener { world: Arc::clone(&self.world), worker: number }),
        };
        let handle = self.workers.spawn(Box::pin(worker.run()));
        let task = Some((handle.id(), handle));
        self.cast.insert(number, Member { generation, task, stop, dies: None, drains: None });
    }

    fn reporter(&self, number: usize) -> rehearsal_engine::WorkReporter {
        let timeline = Arc::clone(&self.timeline);
        Arc::new(move |event| timeline.worker(number, &event))
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Start(worker) => self.start(worker),
            Order::Kill { worker, kill, done } => {
                if let Some(member) = self.cast.get_mut(&worker) {
                    member.dies = Some(kill);
                    if let Some((_, handle)) = &member.task {
                        handle.abort();
                    }
                }
                let _ = done.send(());
            }
            Order::Drain(after) => {
                for member in self.cast.values_mut().filter(|member| member.task.is_some()) {
                    member.drains = Some(after);
                    member.stop.after_iteration.cancel();
                }
            }
        }
    }

    fn ended(&mut self, ended: Result<(Id, Result<WorkSummary, WorkError>), JoinError>) {
        let (id, result) = match ended {
            Ok((id, result)) => (id, Some(result)),
            Err(error) if error.is_cancelled() => (error.id(), None),
            Err(error) => {
                self.actors.problems.add(format!("a worker panicked: {error}"));
                return;
            }
        };
        let found = self.cast.iter_mut().find(|(_, it)| it.task.as_ref().is_some_and(|(own, _)| *own == id));
        let Some((number, member)) = found else { return };
        let number = *number;
        member.task = None;
        self.world.environment.clock.forget(number);
        match result {
            None | Some(Err(WorkError::Died)) => self.died(number),
            Some(Ok(_)) => {
                if let Some(after) = member.drains.take() {
                    self.world.replace(number, after);
                }
            }
            Some(Err(error)) if let Some(span) = self.store.full_for() => {
                self.timeline.world(format!("worker {number} ends: {error}"));
                self.world.replace(number, span);
            }
            Some(Err(error)) => {
                self.actors.problems.add(format!("worker {number} cannot go on: {error}"));
            }
        }
    }

    /// A killed worker leaves its presence file behind, with no process that holds it.
    fn died(&mut self, number: usize) {
        let Some(member) = self.cast.get_mut(&number) else { return };
        let kill = member.dies.take().unwrap_or_default();
        if !kill.for_good {
            self.world.replace(number, kill.restart.map_or(Duration::ZERO, |after| after.0));
        }
    }
}

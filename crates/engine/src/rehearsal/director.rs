//! Plays a scenario: starts the workers, lets time go on, and replaces who dies.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rehearsal_core::Timestamp;
use rehearsal_core::guard::Hindrance;
use rehearsal_core::seed::mix;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};

use super::actors::{Actors, StageRoles};
use super::clock::{Next, WorkerClock};
use super::frail::Frail;
use super::meanwhile::{Listener, Order, World};
use super::scenario::Kill;
use super::stage::StageError;
use super::timeline::Timeline;
use crate::{StopSwitch, WorkError, WorkOptions, WorkSummary, Worker, Workspace};

/// Real time that a rehearsal may take: one that stands still is a defect of ours.
const SAFETY: Duration = Duration::from_secs(120);

/// What is under way.
pub(super) struct Director {
    pub(super) world: Arc<World>,
    pub(super) actors: Arc<Actors>,
    pub(super) store: Arc<Frail>,
    pub(super) timeline: Arc<Timeline>,
    pub(super) orders: mpsc::UnboundedReceiver<Order>,
    pub(super) options: WorkOptions,
    pub(super) seed: u64,
    /// The rehearsal is over then at the latest.
    pub(super) until: Timestamp,
    pub(super) workers: JoinSet<Result<WorkSummary, WorkError>>,
    pub(super) cast: BTreeMap<usize, Member>,
}

/// A worker that is there, or was.
pub(super) struct Member {
    /// How many had its number before.
    generation: u64,
    task: Option<(Id, AbortHandle)>,
    stop: StopSwitch,
    /// How it is to die.
    dies: Option<Kill>,
    /// It was told to stop; another one comes after so long.
    drains: Option<Duration>,
}

impl Director {
    /// Plays until nothing more happens by itself.
    pub(super) async fn play(&mut self, count: u32) -> Result<(), StageError> {
        for worker in 1..=count as usize {
            self.start(worker);
        }
        match tokio::time::timeout(SAFETY, self.direct()).await {
            Ok(played) => played?,
            Err(_) => {
                self.actors.problems.tell(format!("it stood still for {} s of real time", SAFETY.as_secs()))
            }
        }
        self.world.give_up();
        self.workers.shutdown().await;
        Ok(())
    }

    async fn direct(&mut self) -> Result<(), StageError> {
        let clock = self.world.stage.clock.clone();
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
                        // Others wake at this very moment.
                        clock.advance(clock.now());
                    } else if self.is_over().await? || !self.go_on(next) {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether nothing more happens by itself.
    async fn is_over(&self) -> Result<bool, StageError> {
        let agents_work = self.actors.socket.is_busy();
        if self.world.has_plans() || self.world.stage.clock.has_frozen() || agents_work {
            return Ok(false);
        }
        if self.workers.is_empty() {
            return Ok(true);
        }
        let (store, now) = (self.store.itself(), self.world.stage.clock.now());
        let wakes = store.next_wake(now).await?.is_some() || self.is_only_too_soon(now).await?;
        Ok(!wakes && store.leases().await?.is_empty())
    }

    /// Whether the next task waits for nothing but its agent's interval.
    async fn is_only_too_soon(&self, now: Timestamp) -> Result<bool, StageError> {
        let store = self.store.itself();
        let Some(task) = store.next_task(None, now).await? else { return Ok(false) };
        let hindrance = store.hindrance(&task, &self.options.limits, now).await?;
        Ok(matches!(hindrance, Some(Hindrance::TooSoon { .. })))
    }

    /// Lets time go on; whether it can.
    fn go_on(&self, next: Option<Timestamp>) -> bool {
        match next {
            Some(at) if at > self.until => {
                self.actors.problems.tell("it was not over in the time that the scenario has (`until`)");
                false
            }
            Some(at) => {
                self.world.stage.clock.advance(at);
                true
            }
            None => false,
        }
    }

    fn start(&mut self, number: usize) {
        let generation = self.cast.get(&number).map_or(0, |member| member.generation + 1);
        let seed = mix(self.seed ^ mix(number as u64) ^ mix(generation << 32));
        let stage = &self.world.stage;
        let stop = StopSwitch::default();
        let worker = Worker {
            store: Arc::<Frail>::clone(&self.store),
            clock: Arc::new(WorkerClock { stage: stage.clock.clone(), worker: number }),
            roles: Arc::new(StageRoles { actors: Arc::clone(&self.actors), worker: number }),
            workspace: Workspace::Worktrees {
                worktrees: Arc::clone(&stage.worktrees),
                outlet: stage.outlet.clone(),
            },
            state_dir: stage.state_dir(),
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

    fn reporter(&self, number: usize) -> crate::WorkReporter {
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
                self.actors.problems.tell(format!("a worker panicked: {error}"));
                return;
            }
        };
        let found = self.cast.iter_mut().find(|(_, it)| it.task.as_ref().is_some_and(|(own, _)| *own == id));
        let Some((number, member)) = found else { return };
        let number = *number;
        member.task = None;
        self.world.stage.clock.forget(number);
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
                self.actors.problems.tell(format!("worker {number} cannot go on: {error}"));
            }
        }
    }

    /// What a killed process leaves is left: the file that says that it was there, and nobody who holds it.
    fn died(&mut self, number: usize) {
        let Some(member) = self.cast.get_mut(&number) else { return };
        let kill = member.dies.take().unwrap_or_default();
        if !kill.for_good {
            self.world.replace(number, kill.restart.map_or(Duration::ZERO, |after| after.0));
        }
    }
}

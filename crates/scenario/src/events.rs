//! The events of a scenario: faults, and what people do.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use rehearsal_core::transition::TaskInput;
use rehearsal_core::yaml::Spanned;
use rehearsal_core::{Hold, HoldCause, Lane, TaskId};
use rehearsal_store::Change;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use crate::actors::Actors;
use crate::clock::Who;
use crate::environment::{Environment, ScenarioError};
use crate::faulty_store::FaultyStore;
use crate::scenario::{Act, Deed, DiskFull, DiskOf, Kill, When};
use crate::timeline::Timeline;
use rehearsal_engine::{Moment, Moments, Reaction};

/// A request to the director.
#[derive(Debug)]
pub(crate) enum Order {
    /// A worker dies, and another one may replace it.
    Kill { worker: usize, kill: Kill, done: oneshot::Sender<()> },
    /// A worker that died is replaced.
    Start(usize),
    /// All workers finish what they do; others start after this time.
    Drain(Duration),
}

/// Everything that events act on.
pub(crate) struct World {
    pub(crate) environment: Arc<Environment>,
    pub(crate) store: Arc<FaultyStore>,
    pub(crate) timeline: Arc<Timeline>,
    pub(crate) actors: Arc<Actors>,
    pub(crate) orders: mpsc::UnboundedSender<Order>,
    /// Events that wait for a moment, and how often it occurred.
    pub(crate) awaited: Mutex<Vec<Awaited>>,
    pub(crate) scheduled: Mutex<JoinSet<()>>,
}

/// An event that waits for a moment.
#[derive(Debug)]
pub(crate) struct Awaited {
    when: When,
    deed: Deed,
    seen: u32,
}

impl Awaited {
    pub(crate) fn of(acts: &[Spanned<Act>]) -> Vec<Self> {
        let awaited = acts.iter().filter_map(|act| {
            let when = act.value.when.clone()?;
            Some(Self { when, deed: act.value.what.clone(), seen: 0 })
        });
        awaited.collect()
    }

    fn is_met(&mut self, moment: Moment, task: &TaskId, step: Option<&str>) -> bool {
        let When { moment: wanted, task: of, step: at, nth } = &self.when;
        let fits = *wanted == moment
            && of.as_ref().is_none_or(|of| of == task)
            && at.as_ref().is_none_or(|at| Some(at.as_str()) == step);
        self.seen += u32::from(fits);
        fits && self.seen == *nth
    }

    fn observed(&self) -> bool {
        self.seen >= self.when.nth
    }
}

impl World {
    /// Describes the moments that never occurred.
    pub(crate) fn missed(&self) -> Vec<String> {
        let awaited = self.awaited.lock().unwrap_or_else(PoisonError::into_inner);
        let missed = awaited.iter().filter(|it| !it.observed()).map(|it| {
            let step = it.when.step.as_ref().map_or_else(String::new, |step| format!(" of step {step}"));
            format!("the moment {}{step} never came", it.when.moment.as_str())
        });
        missed.collect()
    }

    /// Carries out an event at its time.
    async fn later(self: Arc<Self>, after: Duration, deed: Deed) {
        let clock = &self.environment.clock;
        let start = clock.now();
        clock.sleep_until(start.plus(after)).await;
        let ticket = clock.take(Who::World).await;
        self.carry_out(&deed, None).await;
        clock.give_back(ticket);
    }

    /// Schedules an event; the rehearsal waits for it.
    pub(crate) fn schedule(self: &Arc<Self>, after: Duration, deed: Deed) {
        self.spawn(Arc::clone(self).later(after, deed));
    }

    fn spawn(self: &Arc<Self>, future: impl Future<Output = ()> + Send + 'static) {
        let mut scheduled = self.scheduled.lock().unwrap_or_else(PoisonError::into_inner);
        scheduled.spawn(future);
    }

    /// Whether events are still scheduled.
    pub(crate) fn has_plans(&self) -> bool {
        let mut scheduled = self.scheduled.lock().unwrap_or_else(PoisonError::into_inner);
        while scheduled.try_join_next().is_some() {}
        !scheduled.is_empty()
    }

    /// Cancels all scheduled events.
    pub(crate) fn give_up(&self) {
        self.scheduled.lock().unwrap_or_else(PoisonError::into_inner).abort_all();
    }

    /// Starts a replacement after a while.
    pub(crate) fn replace(self: &Arc<Self>, worker: usize, after: Duration) {
        let this = Arc::clone(self);
        self.spawn(async move {
            let clock = &this.environment.clock;
            clock.sleep_until(clock.now().plus(after)).await;
            let _ = this.orders.send(Order::Start(worker));
        });
    }

    /// Whether the event kills this worker.
    async fn carry_out(self: &Arc<Self>, deed: &Deed, here: Option<usize>) -> Reaction {
        match deed {
            Deed::KillWorker(kill) => return self.kill(kill, here).await,
            Deed::PauseWorker(pause) => {
                let worker = pause.worker.map(|number| number as usize).or(here).unwrap_or(1);
                self.timeline.world(format!("worker {worker} stands still for {}", pause.span));
                let lease = self.actors.settings.work.lease.0;
                self.environment.clock.freeze(worker, pause.span.0, lease);
                if here == Some(worker) {
                    self.environment.clock.yield_turn(Who::Worker(worker)).await;
                }
            }
            Deed::SleepHost(span) => {
                self.timeline.world(format!("the machine sleeps for {span}"));
                self.environment.clock.jump(span.0);
            }
            Deed::Drain(span) => {
                self.timeline.world("workers are told to stop");
                let _ = self.orders.send(Order::Drain(span.0));
            }
            Deed::RestartStore(refuses) => {
                self.timeline.world("the database restarts");
                self.noted(self.store.restart(*refuses).await.map_err(ScenarioError::from));
            }
            Deed::DiskFull(DiskFull { of, span }) => {
                self.timeline.world(format!("the disk of the {} is full for {span}", of.as_str()));
                match of {
                    DiskOf::Agents => self.actors.fill_disk(span.0),
                    DiskOf::Store => self.store.fill(span.0),
                }
            }
            Deed::RemoteGone(span) => self.take_remote_away(span.0),
            Deed::Commit(commit) => {
                let branch = commit.branch.as_deref().unwrap_or(crate::environment::BASE);
                self.timeline.world(format!("someone commits to {branch}"));
                self.noted(self.environment.commit(commit).await);
            }
            person => self.noted(self.person(person).await),
        }
        Reaction::GoOn
    }

    fn noted(&self, done: Result<(), ScenarioError>) {
        if let Err(error) = done {
            self.actors.problems.add(self.timeline.without_paths(&error.to_string()));
        }
    }

    async fn kill(&self, kill: &Kill, here: Option<usize>) -> Reaction {
        let worker = kill.worker.map(|number| number as usize).or(here).unwrap_or(1);
        self.timeline.world(format!("worker {worker} is killed"));
        let (done, killed) = oneshot::channel();
        let _ = self.orders.send(Order::Kill { worker, kill: kill.clone(), done });
        if here == Some(worker) {
            return Reaction::Die;
        }
        let _ = killed.await;
        Reaction::GoOn
    }

    fn take_remote_away(self: &Arc<Self>, span: Duration) {
        self.timeline.world("the remote is gone");
        if let Err(error) = self.environment.move_remote(true) {
            return self.actors.problems.add(error.to_string());
        }
        let this = Arc::clone(self);
        self.spawn(async move {
            let clock = &this.environment.clock;
            clock.sleep_until(clock.now().plus(span)).await;
            let ticket = clock.take(Who::World).await;
            this.timeline.world("the remote is back");
            this.noted(this.environment.move_remote(false).map_err(ScenarioError::from));
            clock.give_back(ticket);
        });
    }

    /// Carries out what a person does.
    async fn person(&self, deed: &Deed) -> Result<(), ScenarioError> {
        let change = |id: &TaskId, input: TaskInput| Change::ChangeTask { id: id.clone(), input };
        let (told, change) = match deed {
            Deed::Cancel(task) => (format!("someone cancels {task}"), change(task, TaskInput::Cancel)),
            Deed::Approve(task) => {
                let input = TaskInput::Decide { approve: true, comment: String::new() };
                (format!("someone approves {task}"), change(task, input))
            }
            Deed::Reject(rejection) => {
                let input = TaskInput::Decide { approve: false, comment: rejection.comment.clone() };
                (format!("someone rejects {}", rejection.task), change(&rejection.task, input))
            }
            Deed::Retry(task) => (format!("someone begins {task} anew"), change(task, TaskInput::Retry)),
            Deed::Unblock(task) => (format!("someone unblocks {task}"), change(task, TaskInput::Unblock)),
            Deed::Edit(edit) => {
                let input = TaskInput::Edit { edit: edit.to.clone() };
                (format!("someone edits {}", edit.task), change(&edit.task, input))
            }
            Deed::Pause(lane) => (format!("someone pauses {lane}"), hold(lane)),
            Deed::Resume(lane) => {
                (format!("someone resumes {lane}"), Change::FreeLane { lane: lane.clone() })
            }
            _ => return Ok(()),
        };
        self.timeline.world(told);
        Ok(self.store.commit_by_hand(change).await?)
    }
}

fn hold(lane: &Lane) -> Change {
    let hold = Hold { cause: HoldCause::Person, reason: "someone paused it".into(), until: None };
    Change::HoldLane { lane: lane.clone(), hold }
}

/// Listens to the moments of a worker.
pub(crate) struct Listener {
    pub(crate) world: Arc<World>,
    pub(crate) worker: usize,
}

#[async_trait]
impl Moments for Listener {
    async fn reached(&self, moment: Moment, task: &TaskId, step: Option<&str>) -> Reaction {
        // Others may get their turn first: such races are what a rehearsal is for.
        self.world.environment.clock.yield_turn(Who::Worker(self.worker)).await;
        let met: Vec<Deed> = {
            let mut awaited = self.world.awaited.lock().unwrap_or_else(PoisonError::into_inner);
            let met =
                awaited.iter_mut().filter_map(|it| it.is_met(moment, task, step).then(|| it.deed.clone()));
            met.collect()
        };
        for deed in &met {
            if self.world.carry_out(deed, Some(self.worker)).await == Reaction::Die {
                return Reaction::Die;
            }
        }
        Reaction::GoOn
    }
}

//! The clock of a rehearsal: time stands still while anyone does something, and jumps when all of them wait.
//!
//! Everything that takes real time is done by whoever has the turn. When nobody has it, those who want it get it one
//! after another, in an order that follows from the seed; when nobody wants it, time jumps to the earliest sleeper, and
//! wakes that one alone. So what happens has one order, and the same scenario has it each time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use rehearsal_core::seed::mix;
use rehearsal_core::{Clock, Timestamp, Turn};
use tokio::sync::{Notify, oneshot};

/// Rounds after which everything that can run has run. Between a wake-up and the wish for a turn lie a few tasks that
/// wake each other, and none of them waits for anything real.
const ROUNDS: u32 = 6;

/// Whoever does something: a worker by its number, or the world around them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Who {
    /// People, remotes, the machine.
    World,
    /// The agents' processes of a worker: they live while it is frozen.
    Agent(usize),
    Worker(usize),
}

/// The right to a turn. It is given back while its owner sleeps, and regained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket(u64);

/// The clock itself. Copies show the same time.
#[derive(Debug, Clone)]
pub(crate) struct ScenarioClock {
    state: Arc<Mutex<State>>,
    changed: Arc<Notify>,
}

#[derive(Debug)]
struct State {
    now: Timestamp,
    seed: u64,
    /// Who has the turn.
    holder: Option<Ticket>,
    waiting: Vec<Waiter>,
    sleeping: Vec<Sleeper>,
    /// Workers that stand still.
    frozen: BTreeMap<usize, Frozen>,
    granted: u64,
    drawn: u64,
    /// How long the machine slept.
    slept: Duration,
}

#[derive(Debug, Clone, Copy)]
struct Frozen {
    until: Timestamp,
    /// Its agents go on until their leases have run out: then their supervisors stop them.
    agents_at: Timestamp,
}

#[derive(Debug)]
struct Waiter {
    ticket: Ticket,
    who: Who,
    /// After how many turns it came: those that came in one turn have no order of their own.
    epoch: u64,
    number: u64,
    granted: oneshot::Sender<()>,
}

#[derive(Debug)]
struct Sleeper {
    until: Timestamp,
    number: u64,
    woken: oneshot::Sender<()>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Someone is at it.
    Busy,
    /// All wait; the next one wakes then.
    Idle(Option<Timestamp>),
}

impl ScenarioClock {
    pub(crate) fn starting_at(now: Timestamp, seed: u64) -> Self {
        let (holder, waiting, sleeping, frozen) = Default::default();
        let state = State {
            now,
            seed,
            holder,
            waiting,
            sleeping,
            frozen,
            granted: 0,
            drawn: 0,
            slept: Duration::ZERO,
        };
        Self { state: Arc::new(Mutex::new(state)), changed: Arc::new(Notify::new()) }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.state().now
    }

    /// The time on a clock that stands still while the machine sleeps, as the limits of agents are kept by.
    pub(crate) fn awake(&self) -> Timestamp {
        let state = self.state();
        Timestamp(state.now.0.saturating_sub(i64::try_from(state.slept.as_millis()).unwrap_or(i64::MAX)))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the turn to the next who wants it, once everything that can run has run.
    pub(crate) async fn settle(&self) -> Next {
        for _ in 0..ROUNDS {
            tokio::task::yield_now().await;
        }
        let mut state = self.state();
        // A worker that thaws wakes, and looks after its leases, before its agents go on.
        let now = state.now;
        let only_agents = state.waiting.iter().all(|waiter| matches!(waiter.who, Who::Agent(_)));
        let due = state.sleeping.iter().any(|sleeper| sleeper.until <= now);
        if state.holder.is_none() && only_agents && due {
            return Next::Idle(Some(now));
        }
        if state.holder.is_some() || state.grant() {
            return Next::Busy;
        }
        let (now, thaw) = (state.now, state.frozen.values().map(|frozen| frozen.until).min());
        let wakes = state.sleeping.iter().map(|sleeper| sleeper.until.max(now));
        Next::Idle(wakes.chain(thaw).min())
    }

    /// Returns when someone gave the turn back, or wants it.
    pub(crate) async fn change(&self) {
        self.changed.notified().await;
    }

    /// Moves on to a moment, and wakes the first who sleeps until then.
    pub(crate) fn advance(&self, to: Timestamp) {
        let mut state = self.state();
        state.now = state.now.max(to);
        let now = state.now;
        let thawed = state.frozen.len();
        state.frozen.retain(|_, frozen| frozen.until > now);
        if state.frozen.len() < thawed {
            return;
        }
        let due = state.sleeping.iter().enumerate().filter(|(_, sleeper)| sleeper.until <= now);
        let Some((at, _)) = due.min_by_key(|(_, sleeper)| (sleeper.until, sleeper.number)) else { return };
        let sleeper = state.sleeping.remove(at);
        // One that is gone needs no call.
        let _ = sleeper.woken.send(());
    }

    /// The machine sleeps: time goes on, and nobody notices.
    pub(crate) fn jump(&self, by: Duration) {
        let mut state = self.state();
        state.now = state.now.plus(by);
        state.slept += by;
    }

    /// A worker stands still; its agents do not, for as long as its leases last.
    pub(crate) fn freeze(&self, worker: usize, by: Duration, lease: Duration) {
        let mut state = self.state();
        let (until, agents_at) = (state.now.plus(by), state.now.plus(lease));
        state.frozen.insert(worker, Frozen { until, agents_at });
    }

    /// Whether a worker that stands still is to come back.
    pub(crate) fn has_frozen(&self) -> bool {
        !self.state().frozen.is_empty()
    }

    /// A worker that is gone is not frozen.
    pub(crate) fn forget(&self, worker: usize) {
        self.state().frozen.remove(&worker);
    }

    /// Who has the turn now.
    pub(crate) fn holder(&self) -> Option<Ticket> {
        self.state().holder
    }

    /// Waits for the turn.
    pub(crate) async fn take(&self, who: Who) -> Ticket {
        let ticket = {
            let mut state = self.state();
            state.drawn += 1;
            Ticket(state.drawn)
        };
        self.regain(ticket, who).await;
        ticket
    }

    /// Gives the turn back, if it is this one's.
    pub(crate) fn give_back(&self, ticket: Ticket) {
        let mut state = self.state();
        if state.holder == Some(ticket) {
            state.holder = None;
            self.changed.notify_one();
        }
    }

    /// Waits until the turn is this one's again.
    pub(crate) async fn regain(&self, ticket: Ticket, who: Who) {
        let (waiting, number) = {
            let mut state = self.state();
            if state.holder == Some(ticket) {
                return;
            }
            state.drawn += 1;
            let (granted, waiting) = oneshot::channel();
            let (epoch, number) = (state.granted, state.drawn);
            state.waiting.push(Waiter { ticket, who, epoch, number, granted });
            (waiting, number)
        };
        self.changed.notify_one();
        let mut here = Here { clock: self, number, left: false };
        // The other end lives in the clock.
        let _ = waiting.await;
        here.left = true;
    }

    /// Lets others have the turn first.
    pub(crate) async fn yield_turn(&self, who: Who) {
        let Some(ticket) = self.holder() else { return };
        self.give_back(ticket);
        self.regain(ticket, who).await;
    }

    /// Sleeps without a turn.
    pub(crate) async fn sleep_until(&self, until: Timestamp) {
        let (woken, number) = {
            let mut state = self.state();
            if until <= state.now {
                return;
            }
            state.drawn += 1;
            let (sender, woken) = oneshot::channel();
            let number = state.drawn;
            state.sleeping.push(Sleeper { until, number, woken: sender });
            (woken, number)
        };
        self.changed.notify_one();
        let mut here = Here { clock: self, number, left: false };
        let _ = woken.await;
        here.left = true;
    }

    /// Sleeps with a turn, which others have meanwhile.
    pub(crate) async fn sleep_inside(&self, ticket: Ticket, who: Who, until: Timestamp) {
        self.give_back(ticket);
        self.sleep_until(until).await;
        self.regain(ticket, who).await;
    }

    /// A worker's sleep: it does not wake while the worker is frozen.
    async fn sleep_as(&self, worker: usize, until: Timestamp) {
        let mut until = until;
        loop {
            self.sleep_until(until).await;
            let thaw = self.state().frozen.get(&worker).map(|frozen| frozen.until);
            match thaw {
                Some(thaw) => until = thaw,
                None => return,
            }
        }
    }
}

impl State {
    /// Gives the turn away; whether anyone could have it.
    fn grant(&mut self) -> bool {
        let (frozen, now) = (&self.frozen, self.now);
        let is_free = |waiter: &Waiter| match waiter.who {
            Who::Worker(worker) => !frozen.contains_key(&worker),
            Who::Agent(worker) => frozen.get(&worker).is_none_or(|frozen| frozen.agents_at > now),
            Who::World => true,
        };
        let (seed, granted) = (self.seed, self.granted);
        let order = |waiter: &Waiter| {
            let drawn = if seed == 0 { 0 } else { mix(seed ^ mix(granted) ^ rank(waiter.who)) };
            let is_agent = matches!(waiter.who, Who::Agent(_));
            (is_agent, drawn, waiter.epoch, waiter.who, waiter.number)
        };
        loop {
            let free = self.waiting.iter().enumerate().filter(|(_, waiter)| is_free(waiter));
            let Some((at, _)) = free.min_by_key(|(_, waiter)| order(waiter)) else { return false };
            let ticket = self.waiting[at].ticket;
            // Whoever waits for the same turn has it too.
            let all = std::mem::take(&mut self.waiting).into_iter();
            let (same, rest): (Vec<Waiter>, Vec<Waiter>) = all.partition(|waiter| waiter.ticket == ticket);
            self.waiting = rest;
            let heard = same.into_iter().filter_map(|waiter| waiter.granted.send(()).ok()).count() > 0;
            if heard {
                self.holder = Some(ticket);
                self.granted += 1;
                return true;
            }
        }
    }
}

fn rank(who: Who) -> u64 {
    match who {
        Who::World => 1,
        Who::Agent(worker) => 2 + 2 * worker as u64,
        Who::Worker(worker) => 3 + 2 * worker as u64,
    }
}

/// Someone who waits or sleeps; one that goes away before is taken off the list.
struct Here<'a> {
    clock: &'a ScenarioClock,
    number: u64,
    left: bool,
}

impl Drop for Here<'_> {
    fn drop(&mut self) {
        if !self.left {
            let mut state = self.clock.state();
            state.waiting.retain(|waiter| waiter.number != self.number);
            state.sleeping.retain(|sleeper| sleeper.number != self.number);
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct WorkerClock {
    pub(crate) environment: ScenarioClock,
    pub(crate) worker: usize,
}

#[async_trait]
impl Clock for WorkerClock {
    fn now(&self) -> Timestamp {
        self.environment.now()
    }

    async fn sleep_until(&self, until: Timestamp) {
        self.environment.sleep_as(self.worker, until).await;
    }

    async fn turn(&self) -> Turn {
        let ticket = self.environment.take(Who::Worker(self.worker)).await;
        let environment = self.environment.clone();
        Turn::until_over(move || environment.give_back(ticket))
    }
}

/// The clock for whoever is called by one that has the turn: it is given back while they sleep.
#[derive(Debug, Clone)]
pub(crate) struct InsideClock(pub(crate) WorkerClock);

#[async_trait]
impl Clock for InsideClock {
    fn now(&self) -> Timestamp {
        self.0.now()
    }

    async fn sleep_until(&self, until: Timestamp) {
        let environment = &self.0.environment;
        let Some(ticket) = environment.holder() else { return self.0.sleep_until(until).await };
        environment.give_back(ticket);
        self.0.sleep_until(until).await;
        environment.regain(ticket, Who::Worker(self.0.worker)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lets time go on until all is over; when each was woken, in order.
    async fn woken(clock: &ScenarioClock, sleeps: &[(&'static str, u64)]) -> Vec<(&'static str, i64)> {
        let log = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = tokio::task::JoinSet::new();
        for (name, seconds) in sleeps.iter().copied() {
            let (clock, log) = (clock.clone(), Arc::clone(&log));
            tasks.spawn(async move {
                clock.sleep_until(Timestamp(0).plus(Duration::from_secs(seconds))).await;
                let ticket = clock.take(Who::World).await;
                log.lock().unwrap().push((name, clock.now().0 / 1000));
                clock.give_back(ticket);
            });
        }
        while !tasks.is_empty() {
            match clock.settle().await {
                Next::Busy => {
                    tokio::select! { () = clock.change() => {}, _ = tasks.join_next() => {} }
                }
                Next::Idle(Some(at)) => clock.advance(at),
                Next::Idle(None) => drop(tasks.join_next().await),
            }
        }
        Arc::into_inner(log).unwrap().into_inner().unwrap()
    }

    #[tokio::test]
    async fn the_earliest_wakes_first_and_ties_in_order_of_arrival() {
        let clock = ScenarioClock::starting_at(Timestamp(0), 0);
        let order = woken(&clock, &[("late", 18_000), ("b", 5), ("a", 5), ("soon", 1)]).await;
        assert_eq!(order, [("soon", 1), ("b", 5), ("a", 5), ("late", 18_000)]);
    }

    #[tokio::test]
    async fn a_sleeper_that_goes_away_holds_nobody_up() {
        let clock = ScenarioClock::starting_at(Timestamp(0), 0);
        {
            let sleeping = clock.sleep_until(Timestamp(5));
            tokio::pin!(sleeping);
            tokio::select! { biased; () = &mut sleeping => {}, () = tokio::task::yield_now() => {} }
            assert_eq!(clock.settle().await, Next::Idle(Some(Timestamp(5))));
        }
        assert_eq!(clock.settle().await, Next::Idle(None));
    }

    #[tokio::test]
    async fn time_stands_still_while_someone_has_the_turn() {
        let clock = ScenarioClock::starting_at(Timestamp(0), 0);
        let waiting = tokio::spawn({
            let clock = clock.clone();
            async move { clock.take(Who::Worker(1)).await }
        });
        assert_eq!(clock.settle().await, Next::Busy);
        let ticket = waiting.await.unwrap();
        assert_eq!((clock.settle().await, clock.holder()), (Next::Busy, Some(ticket)));
        clock.give_back(ticket);
        assert_eq!(clock.settle().await, Next::Idle(None));
    }

    #[tokio::test]
    async fn a_frozen_worker_gets_no_turn_until_it_thaws() {
        let clock = ScenarioClock::starting_at(Timestamp(0), 0);
        clock.freeze(1, Duration::from_millis(7), Duration::from_millis(3));
        let waiting = tokio::spawn({
            let clock = clock.clone();
            async move { clock.take(Who::Worker(1)).await }
        });
        assert_eq!(clock.settle().await, Next::Idle(Some(Timestamp(7))));
        clock.advance(Timestamp(7));
        assert_eq!(clock.settle().await, Next::Busy);
        clock.give_back(waiting.await.unwrap());
    }
}

//! The world on one thread: a queue of events in virtual time, and everyone who acts on them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use rehearsal_core::transition::TaskInput;
use rehearsal_core::{AgentName, Blame, Fence, Hold, HoldCause, Lane, Standing, Task, Timestamp, Wait};

use crate::agent::{Agent, Finished, Life};
use crate::defect::Defect;
use crate::faults::Plan;
use crate::forge::Forge;
use crate::invariant::{
    Invariant::{I1, I8, I10, I11, I13},
    Violation, ensure,
};
use crate::network::{Answer, Call, Caller, Process};
use crate::process::{Host, Worker};
use crate::rng::{Rng, mix};
use crate::store::{MENDED_AFTER, Store};

/// After the faults have stopped, everything has to come to rest in this time.
const TIME_TO_REST: i64 = 24 * 3_600_000;
/// More happens only to what goes round in circles.
const MOST_EVENTS: u32 = 100_000;

#[derive(Debug, Clone)]
pub(crate) enum Event {
    /// A question arrives; whether nobody will hear the answer.
    Deliver(Box<Call>, bool),
    Reply {
        caller: Caller,
        id: u64,
        sent_at: i64,
        answer: Answer,
    },
    Shim {
        agent: usize,
        epoch: u32,
    },
    AgentEnds {
        agent: usize,
        epoch: u32,
    },
    Exited {
        owner: (Process, usize),
        agent: usize,
    },
    Beat(Process),
    Poll(Process),
    Hold {
        process: Process,
        slot: usize,
    },
    Quit(Process),
    Start {
        worker: usize,
    },
    Fault,
    Person,
    Calm,
}

/// An event and its moment. Shims look first: a machine that wakes freezes before it works.
struct Due {
    at: i64,
    rank: u8,
    number: u64,
    event: Event,
}

impl Due {
    fn order(&self) -> (i64, u8, u64) {
        (self.at, self.rank, self.number)
    }
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.order() == other.order()
    }
}
impl Eq for Due {}
impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Due {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.order().cmp(&other.order())
    }
}

pub(crate) struct Simulation {
    pub(crate) now: i64,
    pub(crate) rng: Rng,
    pub(crate) plan: Plan,
    pub(crate) defect: Option<Defect>,
    /// Whether the faults have stopped.
    pub(crate) calm: bool,
    queue: BinaryHeap<Reverse<Due>>,
    scheduled: u64,
    pub(crate) calls: u64,
    /// Questions that are on their way.
    pub(crate) in_flight: u32,
    pub(crate) store: Store,
    pub(crate) store_down_until: i64,
    pub(crate) forge: Forge,
    pub(crate) forge_down_until: i64,
    /// Until when the forge does not accept our credentials.
    pub(crate) forge_locked_until: i64,
    pub(crate) hosts: Vec<Host>,
    pub(crate) workers: Vec<Worker>,
    pub(crate) agents: Vec<Agent>,
    pub(crate) live: Vec<usize>,
    /// Results by task and fence, as they lie in the directories of their runs.
    pub(crate) results: BTreeMap<(usize, Fence), Finished>,
    pub(crate) newest_results: Vec<Option<Finished>>,
    /// How often a person will still help each task after the faults have stopped.
    pub(crate) patience: Vec<u32>,
    trace: Option<Vec<String>>,
    hash: u64,
}

/// What of a row must be known when it has changed.
pub(crate) struct Before {
    fence: Fence,
    attempts: u32,
    agent: Option<AgentName>,
}

impl Before {
    pub(crate) fn of(task: &Task) -> Self {
        Self { fence: task.fence, attempts: task.attempts, agent: task.agent.clone() }
    }
}

/// How a life went.
pub(crate) struct Report {
    pub(crate) violation: Option<Violation>,
    pub(crate) trace: Vec<String>,
    pub(crate) hash: u64,
    pub(crate) done: u32,
    pub(crate) stale_writes: u32,
}

/// Lives one seed.
pub(crate) fn live(seed: u64, defect: Option<Defect>, traced: bool) -> Report {
    let mut simulation = Simulation::new(seed, defect, traced);
    let violation = simulation.run().err();
    let done = simulation.store.rows.iter().filter(|row| row.task.is_done()).count();
    Report {
        violation,
        trace: simulation.trace.unwrap_or_default(),
        hash: simulation.hash,
        done: u32::try_from(done).unwrap_or_default(),
        stale_writes: simulation.store.stale_writes,
    }
}

impl Simulation {
    fn new(seed: u64, defect: Option<Defect>, traced: bool) -> Self {
        let mut rng = Rng::new(seed);
        let plan = Plan::draw(&mut rng);
        let tasks = plan.tasks(&mut rng);
        let count = tasks.len();
        let skews = (0..plan.hosts).map(|_| rng.between(-300_000, 300_000));
        let hosts = skews.map(|skew| Host { asleep_until: 0, slept: 0, skew }).collect();
        let workers = (0..plan.workers)
            .map(|number| Worker::new(number, number % plan.hosts, plan.slots, plan.sweeps(number)));
        let mut simulation = Self {
            now: 0,
            workers: workers.collect(),
            hosts,
            store: Store::new(tasks, Plan::limits(&mut rng), defect),
            forge: Forge::new(seed, count, defect),
            rng,
            plan,
            defect,
            calm: false,
            queue: BinaryHeap::new(),
            scheduled: 0,
            calls: 0,
            in_flight: 0,
            store_down_until: 0,
            forge_down_until: 0,
            forge_locked_until: 0,
            agents: Vec::new(),
            live: Vec::new(),
            results: BTreeMap::new(),
            newest_results: vec![None; count],
            patience: vec![8; count],
            trace: traced.then(Vec::new),
            hash: seed,
        };
        simulation.begin();
        simulation
    }

    fn begin(&mut self) {
        for worker in 0..self.workers.len() {
            let process = self.process(worker);
            let at = self.rng.between(0, 20_000);
            self.schedule(at, Event::Poll(process));
            self.schedule(at + 30_000, Event::Beat(process));
        }
        self.plan_faults();
    }

    pub(crate) fn has(&self, defect: Defect) -> bool {
        self.defect == Some(defect)
    }

    pub(crate) fn schedule(&mut self, at: i64, event: Event) {
        self.scheduled += 1;
        self.in_flight += u32::from(matches!(event, Event::Deliver(..)));
        let rank = u8::from(!matches!(event, Event::Shim { .. }));
        let at = at.max(self.now);
        self.queue.push(Reverse(Due { at, rank, number: self.scheduled, event }));
    }

    /// Writes a line for whoever reproduces the seed.
    pub(crate) fn note(&mut self, line: impl FnOnce(&Self) -> String) {
        if let Some(mut trace) = self.trace.take() {
            trace.push(format!("{:>6}.{:03} {}", self.now / 1000, self.now % 1000, line(self)));
            self.trace = Some(trace);
        }
    }

    fn run(&mut self) -> Result<(), Violation> {
        let mut events = 0;
        while let Some(Reverse(due)) = self.queue.pop() {
            self.now = due.at;
            self.hash = mix(self.hash ^ due.at.unsigned_abs() ^ u64::from(due.rank) ^ due.number << 20);
            let rest_may_begin = self.calm && matches!(due.event, Event::Poll(_) | Event::Person);
            self.handle(due.event)?;
            self.check_agents()?;
            if rest_may_begin && self.is_at_rest() {
                return self.check_rest();
            }
            events += 1;
            let over = self.now > self.plan.calm_at + TIME_TO_REST || events > MOST_EVENTS;
            ensure(!over, I10, || format!("no rest: {}", self.restless()))?;
        }
        ensure(false, I10, || "nothing is left to happen, and nothing is at rest".to_owned())
    }

    fn handle(&mut self, event: Event) -> Result<(), Violation> {
        match event {
            Event::Deliver(call, unheard) => {
                self.in_flight -= 1;
                return self.deliver(*call, unheard);
            }
            Event::Reply { caller, id, sent_at, answer } => self.reply(caller, id, sent_at, answer),
            Event::Shim { agent, epoch } => match self.awake_at(self.agents[agent].host) {
                Some(at) => self.schedule(at, Event::Shim { agent, epoch }),
                None => self.shim(agent, epoch),
            },
            Event::AgentEnds { agent, epoch } => match self.awake_at(self.agents[agent].host) {
                Some(at) => self.schedule(at + 1, Event::AgentEnds { agent, epoch }),
                None => self.agent_ends(agent, epoch),
            },
            Event::Start { worker } => match self.awake_at(self.workers[worker].host) {
                Some(at) => self.schedule(at + 1, Event::Start { worker }),
                None => self.start(worker),
            },
            Event::Fault => self.fault(),
            Event::Person => self.person()?,
            Event::Calm => self.calm_down(),
            Event::Exited { owner: (process, _), .. }
            | Event::Beat(process)
            | Event::Poll(process)
            | Event::Hold { process, .. }
            | Event::Quit(process) => self.handle_in(process, event),
        }
        Ok(())
    }

    /// What happens in a process happens when it runs, and only while it lives.
    fn handle_in(&mut self, process: Process, event: Event) {
        if !self.is_alive(process) {
            return;
        }
        let deaf_until = self.deaf_until(process.worker);
        if deaf_until > self.now {
            return self.schedule(deaf_until + 1, event);
        }
        match event {
            Event::Exited { owner, agent } => self.exited(owner, agent),
            Event::Beat(_) => self.beat(process),
            Event::Poll(_) => self.poll(process),
            Event::Hold { slot, .. } => self.hold(process, slot),
            Event::Quit(_) => self.crash(process.worker, 5_000),
            Event::Reply { caller, id, sent_at, answer } => match caller {
                Caller::Slot(_, slot) => self.slot_hears(process, slot, id, sent_at, answer),
                Caller::Heart(_) => self.heart_hears(process, sent_at, &answer),
                Caller::Sweeper(_) => self.sweeper_hears(process, answer),
                Caller::Starter(_) => self.starter_hears(process, answer),
                Caller::Shim(_) => {}
            },
            _ => {}
        }
    }

    fn reply(&mut self, caller: Caller, id: u64, sent_at: i64, answer: Answer) {
        match caller {
            Caller::Shim(agent) => match self.awake_at(self.agents[agent].host) {
                Some(at) => self.schedule(at, Event::Reply { caller, id, sent_at, answer }),
                None => self.shim_hears(agent, sent_at, &answer),
            },
            Caller::Slot(process, _)
            | Caller::Heart(process)
            | Caller::Sweeper(process)
            | Caller::Starter(process) => {
                self.handle_in(process, Event::Reply { caller, id, sent_at, answer });
            }
        }
    }

    /// When a machine that sleeps now will wake.
    fn awake_at(&self, host: usize) -> Option<i64> {
        Some(self.hosts[host].asleep_until).filter(|until| *until > self.now)
    }

    /// I8 and I11: the result was made under the claim that tells it, and the system's failures cost nothing.
    pub(crate) fn check_result(
        &self,
        before: &Before,
        task: usize,
        result: Option<(Fence, bool)>,
    ) -> Result<(), Violation> {
        let Some((fence, systemic)) = result else { return Ok(()) };
        ensure(fence == before.fence, I8, || {
            format!("a result of fence {fence} was used under {}", before.fence)
        })?;
        let cost = self.store.rows[task].task.attempts - before.attempts;
        ensure(!systemic || cost == 0, I11, || format!("a failure of the system cost t{task} an attempt"))
    }

    /// What only a hand can mend stops the agent everywhere, not one task after the other.
    pub(crate) fn hold_lanes(&mut self, before: Before, input: &TaskInput) {
        if let TaskInput::EndRun { outcome, .. } = input
            && outcome.blame() == Blame::System
            && let Some(agent) = before.agent
        {
            let until = outcome.until().unwrap_or(Timestamp(self.now).plus(MENDED_AFTER));
            let cause = HoldCause::System(outcome.name());
            let hold = Hold { cause, reason: outcome.to_string(), until: Some(until) };
            self.store.hold(Lane::Agent(agent), hold);
        }
    }

    /// Whether nothing more will happen by itself: each task has ended or waits for something with a name.
    fn is_at_rest(&self) -> bool {
        let situation = self.store.situation(self.now);
        let rests = |(index, row): (usize, &crate::store::Row)| match &row.task.standing {
            Standing::Ended { .. } => true,
            Standing::Claimed(_) => false,
            Standing::Waiting(Wait { until: None, .. }) => self.patience[index] == 0,
            Standing::Waiting(Wait { until: Some(until), .. }) if until.0 > self.now => false,
            Standing::Ready | Standing::Waiting(_) => {
                self.store.hindrance(index, &situation, self.now).is_some()
            }
        };
        let held = situation.holds.iter().any(|(_, hold)| hold.holds_at(Timestamp(self.now)));
        situation.working.is_empty() && !held && self.store.rows.iter().enumerate().all(rests)
    }

    fn check_rest(&mut self) -> Result<(), Violation> {
        let count = self.patience.len();
        ensure(self.store.rows.len() == count, I1, || "a task vanished".to_owned())?;
        // What is under way still arrives, and whoever lost a claim may not know yet: a lease later it does.
        let grace = self.now + 10 * 60_000;
        while let Some(Reverse(due)) = self.queue.pop().filter(|Reverse(due)| due.at < grace) {
            if self.in_flight == 0 && self.live.iter().all(|number| self.agents[*number].life == Life::Dead) {
                break;
            }
            self.now = due.at;
            self.handle(due.event)?;
            self.check_agents()?;
        }
        let orphan = self.agents.iter().find(|agent| agent.life != Life::Dead);
        ensure(orphan.is_none(), I13, || {
            format!("an agent of t{} was left over", orphan.map_or(0, |it| it.task))
        })
    }

    fn restless(&self) -> String {
        let rows = self.store.rows.iter().filter(|row| !row.task.is_ended());
        let told = rows.map(|row| format!("{} {:?}", row.task.state, row.task.standing));
        told.collect::<Vec<_>>().join("; ")
    }
}

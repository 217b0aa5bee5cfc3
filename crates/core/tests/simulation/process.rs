//! A worker's process: it claims, keeps its leases alive, sweeps, and finds what its predecessor left.

use rehearsal_core::transition::TaskInput;
use rehearsal_core::{RunId, Standing, WorkerId};

use crate::agent::Life;
use crate::defect::Defect;
use crate::invariant::{Invariant::I2, Violation, ensure};
use crate::network::{Answer, Ask, Caller, Process, Tell, View};
use crate::simulation::{Event, Simulation};
use crate::slot::{Slot, Stage};
use crate::store::{LEASE, Wish, Writer};

/// How often leases are renewed.
const BEAT: i64 = LEASE / 3;
/// How often a worker with room looks for work.
const POLL: i64 = 60_000;

pub(crate) struct Worker {
    pub(crate) host: usize,
    pub(crate) start: u32,
    pub(crate) id: WorkerId,
    pub(crate) alive: bool,
    pub(crate) stopped_until: i64,
    pub(crate) slots: Vec<Option<Slot>>,
    /// When it last looked at the clock, and when that showed that it had slept.
    looked_at: i64,
    woke_at: i64,
    sweeps: bool,
    /// Who it was before it died.
    before: Option<WorkerId>,
}

/// A machine.
pub(crate) struct Host {
    pub(crate) asleep_until: i64,
    /// For how long it slept in all.
    pub(crate) slept: i64,
    /// How far its clock is off.
    pub(crate) skew: i64,
}

impl Worker {
    pub(crate) fn new(number: usize, host: usize, slots: usize, sweeps: bool) -> Self {
        Self {
            host,
            start: 0,
            id: worker_id(number, 0),
            alive: true,
            stopped_until: 0,
            slots: (0..slots).map(|_| None).collect(),
            looked_at: 0,
            woke_at: -LEASE,
            sweeps,
            before: None,
        }
    }
}

fn worker_id(number: usize, start: u32) -> WorkerId {
    WorkerId::new(format!("w{number}-{start}")).unwrap()
}

impl Simulation {
    pub(crate) fn process(&self, worker: usize) -> Process {
        Process { worker, start: self.workers[worker].start }
    }

    /// Whether a process is there to hear anything; dead ones and their successors are not.
    pub(crate) fn is_alive(&self, process: Process) -> bool {
        let worker = &self.workers[process.worker];
        worker.alive && worker.start == process.start
    }

    /// Until when a process hears nothing, because it is stopped or its machine sleeps.
    pub(crate) fn deaf_until(&self, worker: usize) -> i64 {
        let worker = &self.workers[worker];
        worker.stopped_until.max(self.hosts[worker.host].asleep_until)
    }

    /// It dies. Its agents go on under their shims, until their leases end or a successor adopts them.
    pub(crate) fn crash(&mut self, number: usize, back_after: i64) {
        if !self.workers[number].alive {
            return;
        }
        self.note(|sim| format!("{} dies", sim.workers[number].id));
        let worker = &mut self.workers[number];
        worker.alive = false;
        worker.slots.iter_mut().for_each(|slot| *slot = None);
        self.schedule(self.now + back_after, Event::Start { worker: number });
    }

    pub(crate) fn start(&mut self, number: usize) {
        let now = self.now;
        let worker = &mut self.workers[number];
        if worker.alive {
            return;
        }
        worker.alive = true;
        worker.start += 1;
        worker.before = Some(worker.id.clone());
        worker.id = worker_id(number, worker.start);
        // It cannot know whether its machine has just woken: its neighbours get their chance to say that they live.
        (worker.looked_at, worker.woke_at, worker.stopped_until) = (now, now, 0);
        self.note(|sim| format!("{} begins", sim.workers[number].id));
        let process = self.process(number);
        self.schedule(now + BEAT, Event::Beat(process));
        self.schedule(now + 1_000, Event::Poll(process));
        self.inherit(process);
    }

    fn inherit(&mut self, process: Process) {
        if let Some(from) = self.workers[process.worker].before.clone() {
            self.send(Caller::Starter(process), Ask::Inherit { from });
        }
    }

    pub(crate) fn claims_of(&self, worker: &WorkerId) -> Vec<View> {
        let theirs = |index: &usize| matches!(&self.store.rows[*index].task.standing, Standing::Claimed(claim) if claim.worker == *worker);
        (0..self.store.rows.len()).filter(theirs).map(|index| self.view(index)).collect()
    }

    /// What a predecessor left is gone on with or finished if it can be, else given back at once.
    pub(crate) fn starter_hears(&mut self, process: Process, answer: Answer) {
        match answer {
            Answer::None => self.inherit(process),
            Answer::Inherited(views) => {
                for view in views {
                    self.take_on(process, view);
                }
            }
            _ => {}
        }
    }

    fn take_on(&mut self, process: Process, view: View) {
        let Some((of, run)) = view.holder.clone() else { return };
        let (task, fence) = (view.index, view.fence);
        let worker = &self.workers[process.worker];
        let room = worker.slots.iter().position(Option::is_none);
        let orphan = self.orphan(worker.host, task, fence);
        let has_result = self.results.contains_key(&(task, fence)) || view.next_step.is_some();
        if let Some(slot) = room.filter(|_| has_result || orphan.is_some()) {
            let input = TaskInput::Adopt { fence, from: of, by: worker.id.clone() };
            let deadline = self.now;
            let mut taken = Slot::new(run, deadline);
            taken.claims(view);
            self.workers[process.worker].slots[slot] = Some(taken);
            self.tell(process, slot, input, Stage::Adopting, None);
        } else {
            if let Some(orphan) = orphan {
                self.kill(orphan);
            }
            let input = TaskInput::Lose { stale: fence, of };
            let tell = Tell { task, input, writer: Writer::Successor, result: None };
            self.send(Caller::Starter(process), Ask::Tell(Box::new(tell)));
        }
    }

    /// Looks at the clock: after a long sleep, others must have the chance to say that they live.
    fn look_at_clock(&mut self, worker: usize) {
        let now = self.now;
        let worker = &mut self.workers[worker];
        if now - worker.looked_at > LEASE / 2 {
            worker.woke_at = now;
        }
        worker.looked_at = now;
    }

    /// One renewal for all that it holds.
    pub(crate) fn beat(&mut self, process: Process) {
        self.look_at_clock(process.worker);
        let jitter = self.rng.between(-BEAT / 10, BEAT / 10);
        self.schedule(self.now + BEAT + jitter, Event::Beat(process));
        let slots = self.workers[process.worker].slots.iter().flatten();
        let claims: Vec<_> = slots.filter_map(Slot::claim).collect();
        if !claims.is_empty() {
            self.send(Caller::Heart(process), Ask::Renew(claims));
        }
    }

    pub(crate) fn heart_hears(&mut self, process: Process, sent_at: i64, answer: &Answer) {
        let Answer::Renewed(held) = answer else { return };
        for number in 0..self.workers[process.worker].slots.len() {
            let Some(slot) = &mut self.workers[process.worker].slots[number] else { continue };
            let Some((task, ..)) = slot.claim().filter(|_| slot.claimed_at < sent_at) else { continue };
            if held.contains(&task) {
                self.renewed(process, number, sent_at);
            } else {
                self.drop_slot(process, number);
            }
        }
    }

    /// The lease holds for so long from when it was asked for, not from when the answer came.
    pub(crate) fn renewed(&mut self, process: Process, number: usize, sent_at: i64) {
        let from = if self.has(Defect::DeadlineFromTheAnswer) { self.now } else { sent_at };
        let Some(slot) = &mut self.workers[process.worker].slots[number] else { return };
        slot.deadline = slot.deadline.max(from + LEASE);
        if let Some(agent) = slot.agent {
            self.prolong(agent, from + LEASE);
        }
    }

    /// Free room looks for work.
    pub(crate) fn poll(&mut self, process: Process) {
        self.look_at_clock(process.worker);
        let jitter = self.rng.between(0, POLL);
        self.schedule(self.now + POLL / 2 + jitter, Event::Poll(process));
        let worker = &self.workers[process.worker];
        let rested = self.now - worker.woke_at >= LEASE || self.has(Defect::StealsRightAfterWaking);
        let may_take_over = rested && !self.has(Defect::NobodyTakesOver);
        if worker.sweeps && may_take_over {
            self.send(Caller::Sweeper(process), Ask::RunOut);
        }
        if self.has(Defect::AdoptsFromTheLiving) {
            self.inherit_from_who_stands_still(process);
        }
        let worker = &self.workers[process.worker];
        if let Some(slot) = worker.slots.iter().position(Option::is_none) {
            let skew = self.hosts[worker.host].skew;
            let (worker, run) = (worker.id.clone(), RunId::from_random(self.rng.next()));
            let wish = Wish { worker, run: run.clone(), may_take_over, skew };
            let mut asking = Slot::new(run, self.now);
            asking.waiting = Some(self.send(Caller::Slot(process, slot), Ask::Claim(wish)));
            self.workers[process.worker].slots[slot] = Some(asking);
        }
    }

    fn inherit_from_who_stands_still(&mut self, process: Process) {
        let host = self.workers[process.worker].host;
        let stands_still =
            |other: &&Worker| other.host == host && other.alive && other.stopped_until > self.now;
        if let Some(from) = self.workers.iter().find(stands_still).map(|other| other.id.clone()) {
            self.send(Caller::Starter(process), Ask::Inherit { from });
        }
    }

    /// I2: only what a dead process held is taken from it while its lease holds.
    pub(crate) fn check_bereaved(
        &self,
        holder: Option<&WorkerId>,
        input: &TaskInput,
    ) -> Result<(), Violation> {
        if !matches!(input, TaskInput::Adopt { .. }) {
            return Ok(());
        }
        let lives = self.workers.iter().find(|worker| worker.alive && Some(&worker.id) == holder);
        ensure(lives.is_none(), I2, || format!("{holder:?} lives, and its claim was adopted"))
    }

    pub(crate) fn sweeper_hears(&mut self, process: Process, answer: Answer) {
        if let Answer::RunOut(found) = answer {
            for (task, seen) in found {
                self.send(Caller::Sweeper(process), Ask::Sweep { task, seen });
            }
        }
    }

    /// Machines that sleep lose nothing to those who slept beside them.
    pub(crate) fn check_nobody_was_robbed_in_sleep(
        &self,
        lost: &RunId,
        thief: &WorkerId,
    ) -> Result<(), Violation> {
        let Some(thief) = self.workers.iter().find(|worker| worker.id == *thief) else { return Ok(()) };
        let woke = self.hosts[thief.host].asleep_until;
        let just_woke = woke > 0 && self.now > woke && self.now - woke < LEASE / 4;
        let robbed = just_woke
            && self.agents.iter().any(|agent| {
                agent.run == *lost
                    && agent.life != Life::Dead
                    && agent.host == thief.host
                    && self.is_alive(agent.owner.0)
                    && self.workers[agent.owner.0.worker].stopped_until < woke
            });
        ensure(!robbed, I2, || format!("run {lost} was robbed, though it only slept"))
    }
}

//! What goes wrong, drawn from the seed, and what people do meanwhile.

use std::collections::BTreeMap;

use rehearsal_core::flow::{Flow, State};
use rehearsal_core::guard::{AgentLimits, Limits};
use rehearsal_core::transition::TaskInput;
use rehearsal_core::{
    AgentName, Hold, HoldCause, Lane, NewTask, Standing, Task, TaskId, Timestamp, Wait, WaitFor,
};

use crate::flows::FLOWS;
use crate::forge::Act;
use crate::invariant::Violation;
use crate::network::Process;
use crate::rng::Rng;
use crate::simulation::{Event, Simulation};
use crate::store::{Denied, Writer};

/// How hard a life is. Some seeds have little of everything, some much of one thing.
pub(crate) struct Plan {
    pub(crate) hosts: usize,
    pub(crate) workers: usize,
    pub(crate) slots: usize,
    tasks: usize,
    sweepers: usize,
    /// When the faults stop.
    pub(crate) calm_at: i64,
    /// Of a thousand questions so many meet a fault on their way.
    pub(crate) lossy: u64,
    /// Of a thousand runs so many fail through the system.
    pub(crate) systemic: u64,
    /// Of a thousand moments in which a worker hears something so many are its last, or the begin of a long pause.
    stumbles: u64,
    faults: u64,
    visits: u64,
}

impl Plan {
    pub(crate) fn draw(rng: &mut Rng) -> Self {
        let often = |rng: &mut Rng, most: u64| if rng.chance(300) { 0 } else { rng.below(most) };
        Self {
            hosts: 1 + rng.index(3),
            workers: 2 + rng.index(2),
            slots: 1 + rng.index(2),
            tasks: 1 + rng.index(3),
            sweepers: rng.index(2),
            calm_at: rng.between(200_000, 1_200_000),
            lossy: often(rng, 150),
            systemic: often(rng, 200),
            stumbles: often(rng, 60),
            faults: often(rng, 12),
            visits: often(rng, 6),
        }
    }

    pub(crate) fn sweeps(&self, worker: usize) -> bool {
        worker < self.sweepers
    }

    pub(crate) fn tasks(&self, rng: &mut Rng) -> Vec<(Task, &'static Flow)> {
        let flow = &FLOWS[rng.index(FLOWS.len())];
        let mut tasks: Vec<(Task, &'static Flow)> = Vec::new();
        for number in 0..self.tasks {
            let flow = if rng.chance(700) { flow } else { &FLOWS[rng.index(FLOWS.len())] };
            let after = tasks.last().map(|(task, _)| task.id.clone()).filter(|_| rng.chance(150));
            let touches = if rng.chance(200) { vec!["src/*.rs".to_owned()] } else { Vec::new() };
            let depends_on = after.into_iter().collect();
            let new = NewTask { title: "t".into(), depends_on, touches, ..NewTask::default() };
            tasks.push((Task::new(new, TaskId::from_random(number as u64), flow, Timestamp(0)), flow));
        }
        tasks
    }

    pub(crate) fn limits(rng: &mut Rng) -> Limits {
        let at_once = rng.chance(200).then(|| 1 + u32::try_from(rng.below(2)).unwrap_or_default());
        let of_one = AgentLimits { at_once: Some(1), ..AgentLimits::default() };
        let agents = rng.chance(200).then(|| (AgentName::new("implementer").unwrap(), of_one));
        Limits { at_once, agents: agents.into_iter().collect::<BTreeMap<_, _>>() }
    }
}

impl Simulation {
    pub(crate) fn plan_faults(&mut self) {
        let calm_at = self.plan.calm_at;
        for _ in 0..self.plan.faults {
            let at = self.rng.between(1_000, calm_at);
            self.schedule(at, Event::Fault);
        }
        for _ in 0..self.plan.visits {
            let at = self.rng.between(1_000, calm_at);
            self.schedule(at, Event::Person);
        }
        self.schedule(calm_at, Event::Calm);
    }

    /// Something breaks, anywhere.
    pub(crate) fn fault(&mut self) {
        let worker = self.rng.index(self.workers.len());
        let host = self.rng.index(self.hosts.len());
        let task = self.rng.index(self.store.rows.len());
        let long = self.rng.between(1_000, 400_000);
        let now = self.now;
        match self.rng.below(11) {
            0 => self.crash(worker, long),
            1 | 2 => self.stop(worker, long),
            3 | 4 => self.sleep(host, long),
            5 => {
                self.note(|_| format!("the store is down for {} s", long / 8_000));
                self.store_down_until = now + long / 8;
            }
            6 => self.forge_down_until = now + long / 4,
            7 => self.forge_locked_until = now + long / 2,
            8 => {
                let moved = self.forge.git.move_base();
                self.note(|_| format!("others move the base: {moved}"));
            }
            9 => self.forge.trespass(task, now),
            _ => self.drain(worker),
        }
    }

    fn stop(&mut self, worker: usize, long: i64) {
        self.note(|sim| format!("{} stands still for {} s", sim.workers[worker].id, long / 1000));
        self.workers[worker].stopped_until = self.now + long;
    }

    fn sleep(&mut self, host: usize, long: i64) {
        if self.hosts[host].asleep_until >= self.now {
            return;
        }
        self.note(|_| format!("host {host} sleeps for {} s", long / 1000));
        self.hosts[host].asleep_until = self.now + long;
        self.hosts[host].slept += long;
    }

    /// Between any two things that a worker does, it may die or stand still.
    pub(crate) fn stumble(&mut self, process: Process) {
        if self.calm || !self.rng.chance(self.plan.stumbles) || !self.is_alive(process) {
            return;
        }
        let long = self.rng.between(1_000, 300_000);
        match self.rng.below(4) {
            0 => self.crash(process.worker, long),
            1 => self.stop(process.worker, long),
            2 => {
                let task = self.rng.index(self.store.rows.len());
                self.forge.trespass(task, self.now);
            }
            _ => {
                self.forge.git.move_base();
            }
        }
    }

    /// Others do the very thing that is about to be done, or undo what it stands on, in the last moment.
    pub(crate) fn meddle(&mut self, act: &Act) {
        if self.calm || !self.rng.chance(self.plan.stumbles) {
            return;
        }
        match act {
            Act::Merge { task, .. } | Act::Push { task, .. } if self.rng.chance(500) => {
                self.note(|_| format!("someone pushes to the branch of t{task}"));
                self.forge.trespass(*task, self.now);
            }
            _ => {
                self.forge.git.move_base();
            }
        }
    }

    /// A person looks in. Before the faults stop anything goes; after that they help, for a while.
    pub(crate) fn person(&mut self) -> Result<(), Violation> {
        if self.calm {
            self.schedule(self.now + 60_000, Event::Person);
            for index in 0..self.store.rows.len() {
                self.help(index)?;
            }
            return Ok(());
        }
        let index = self.rng.index(self.store.rows.len());
        if self.rng.chance(200) {
            return self.change_of_mind(index);
        }
        let input = match self.rng.below(10) {
            0 => TaskInput::Cancel,
            1 | 2 => TaskInput::Retry,
            3 => TaskInput::Block { reason: "let me look".into() },
            4 => TaskInput::Finish,
            5 => {
                let hold = Hold { cause: HoldCause::Person, reason: "the fair".into(), until: None };
                self.store.hold(Lane::All, hold);
                return Ok(());
            }
            6 => TaskInput::Unblock,
            7 => TaskInput::Decide { approve: false, comment: "use tabs".into() },
            _ => TaskInput::Decide { approve: true, comment: String::new() },
        };
        self.do_by_hand(index, input)
    }

    /// Takes a task from whoever works on it, and puts it back at once.
    fn change_of_mind(&mut self, index: usize) -> Result<(), Violation> {
        self.do_by_hand(index, TaskInput::Cancel)?;
        self.do_by_hand(index, TaskInput::Retry)
    }

    fn help(&mut self, index: usize) -> Result<(), Violation> {
        let row = &self.store.rows[index];
        let Standing::Waiting(Wait { wait_for: WaitFor::Human, until: None, .. }) = row.task.standing else {
            return Ok(());
        };
        if self.patience[index] == 0 {
            return Ok(());
        }
        self.patience[index] -= 1;
        let asks =
            matches!(row.flow.states.get(&row.task.state), Some(State::Wait { on, .. }) if on.decides());
        let input = if asks {
            TaskInput::Decide { approve: self.rng.chance(800), comment: String::new() }
        } else {
            TaskInput::Unblock
        };
        self.do_by_hand(index, input)
    }

    fn do_by_hand(&mut self, index: usize, input: TaskInput) -> Result<(), Violation> {
        self.note(|_| format!("a person: t{index} {input:?}"));
        match self.store.commit(index, input, &Writer::Person, self.now) {
            Ok(()) | Err(Denied::Refused(_)) => Ok(()),
            Err(Denied::Broken(violation)) => Err(violation),
        }
    }

    /// The faults stop: everything works, and who sleeps or is dead comes back when its time is over.
    pub(crate) fn calm_down(&mut self) {
        self.note(|_| "the faults stop".to_owned());
        self.calm = true;
        self.store.holds.clear();
        (self.store_down_until, self.forge_down_until, self.forge_locked_until) = (0, 0, 0);
        self.schedule(self.now + 30_000, Event::Person);
    }
}

//! Agents, and the shims that freeze them when their lease is nearly over.

use rehearsal_core::flow::State;
use rehearsal_core::{Exit, Fence, Outcome, RunId, TimeLimit, Timestamp};

use crate::defect::Defect;
use crate::invariant::{Invariant::I9, Violation, ensure};
use crate::network::{Answer, Ask, Caller, Process};
use crate::repository::Oid;
use crate::simulation::{Event, Simulation};
use crate::store::LEASE;

/// So long before the end of its lease an agent is frozen.
pub(crate) const MARGIN: i64 = 10_000;
/// How soon a shim asks again that got no answer.
const ASK_AGAIN: i64 = 15_000;

pub(crate) struct Agent {
    pub(crate) task: usize,
    pub(crate) fence: Fence,
    pub(crate) run: RunId,
    pub(crate) host: usize,
    pub(crate) owner: (Process, usize),
    pub(crate) life: Life,
    /// When the lease is over, on this machine's clock.
    pub(crate) deadline: i64,
    /// How long the machine had slept when the deadline was set.
    slept: i64,
    ends_at: i64,
    /// Grows with every freeze and thaw: what was planned before is void.
    epoch: u32,
    outcome: Outcome,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Life {
    Running,
    Frozen { work_left: i64 },
    Dead,
}

/// What a run left behind in its directory.
#[derive(Debug, Clone)]
pub(crate) struct Finished {
    pub(crate) fence: Fence,
    pub(crate) outcome: Outcome,
}

impl Simulation {
    pub(crate) fn spawn(
        &mut self,
        owner: (Process, usize),
        task: usize,
        fence: Fence,
        run: RunId,
        deadline: i64,
    ) {
        let outcome = self.dream(task);
        let host = self.workers[owner.0.worker].host;
        let takes = if self.rng.chance(200) { 600_000 } else { 90_000 };
        let ends_at = self.now + self.rng.between(2_000, takes);
        let slept = self.hosts[host].slept;
        let number = self.agents.len();
        self.note(|_| format!("agent {number} begins on t{task} under fence {fence}"));
        self.agents.push(Agent {
            task,
            fence,
            run,
            host,
            owner,
            life: Life::Running,
            deadline,
            slept,
            ends_at,
            epoch: 0,
            outcome,
        });
        self.schedule(ends_at, Event::AgentEnds { agent: number, epoch: 0 });
        self.schedule(deadline - MARGIN, Event::Shim { agent: number, epoch: 0 });
        self.live.retain(|number| self.agents[*number].life != Life::Dead);
        self.live.push(number);
    }

    /// How the run will end: fixed when it begins, as far as the agent alone decides.
    fn dream(&mut self, task: usize) -> Outcome {
        let row = &self.store.rows[task];
        let decides =
            matches!(row.flow.states.get(&row.task.state), Some(State::Work { on, .. }) if on.decides());
        let good = if decides { Outcome::Approved } else { Outcome::Done };
        let roll = self.rng.below(1000);
        if self.calm {
            return match roll {
                0..100 if decides => Outcome::Rejected { comment: "not yet".into() },
                100..130 => Outcome::crashed(Exit::Signal(9)),
                _ => good,
            };
        }
        if roll < self.plan.systemic {
            return self.system_failure();
        }
        match self.rng.below(20) {
            0 => Outcome::crashed(Exit::Code(1)),
            1 => Outcome::Failed { reason: "no idea".into() },
            2 => Outcome::Blocked { reason: "needs a key".into() },
            3 => Outcome::NeedsContinuation { reason: "turns".into() },
            4 => Outcome::NoChanges,
            5 => Outcome::TimedOut { limit: TimeLimit::Total, after_ms: 1 },
            // Each may say what only the other is asked for.
            6 => Outcome::Done,
            7 | 8 if decides => Outcome::Rejected { comment: "not yet".into() },
            9 => Outcome::Approved,
            _ => good,
        }
    }

    fn system_failure(&mut self) -> Outcome {
        match self.rng.below(5) {
            0 => Outcome::RateLimited { until: None },
            1 => Outcome::QuotaExhausted {
                until: Some(Timestamp(self.now + self.rng.between(-60_000, 900_000))),
            },
            2 => Outcome::AuthFailed { reason: "expired".into() },
            3 => Outcome::DiskFull { path: "out".into() },
            _ => Outcome::Overloaded,
        }
    }

    /// It writes its commits and its result, and exits.
    pub(crate) fn agent_ends(&mut self, number: usize, epoch: u32) {
        let agent = &mut self.agents[number];
        if agent.life != Life::Running || agent.epoch != epoch {
            return;
        }
        agent.life = Life::Dead;
        let (task, fence, owner, outcome) = (agent.task, agent.fence, agent.owner, agent.outcome.clone());
        self.note(|_| format!("agent {number} on t{task} ends: {outcome}"));
        if matches!(outcome, Outcome::Done) {
            let head: Option<Oid> = self.forge.git.new_work();
            self.forge.git.worktrees[task] = head.or(self.forge.git.worktrees[task]);
        }
        let finished = Finished { fence, outcome };
        self.results.insert((task, fence), finished.clone());
        self.newest_results[task] = Some(finished);
        self.schedule(self.now, Event::Exited { owner, agent: number });
    }

    /// The shim wakes: freezes the agent in time, and asks until it knows.
    pub(crate) fn shim(&mut self, number: usize, epoch: u32) {
        if self.has(Defect::NoShim) || self.agents[number].epoch != epoch {
            return;
        }
        let agent = &self.agents[number];
        let slept = self.hosts[agent.host].slept - agent.slept;
        let late = if self.has(Defect::DeadlineSleepsToo) { slept } else { 0 };
        let freeze_at = agent.deadline + late - MARGIN;
        let orphaned = !self.is_alive(agent.owner.0);
        match agent.life {
            Life::Dead => {}
            Life::Running if self.now < freeze_at => {
                self.schedule(freeze_at, Event::Shim { agent: number, epoch });
            }
            Life::Running => {
                let work_left = (agent.ends_at - self.now).max(1);
                let agent = &mut self.agents[number];
                agent.life = Life::Frozen { work_left };
                agent.epoch += 1;
                self.note(|_| format!("shim freezes agent {number}"));
                if orphaned {
                    self.wait_for_an_adopter(number);
                } else {
                    self.ask_for_agent(number);
                }
            }
            Life::Frozen { .. } if orphaned => self.wait_for_an_adopter(number),
            Life::Frozen { .. } => self.ask_for_agent(number),
        }
    }

    /// Nobody is there whom the shim could ask: with the lease, it ends.
    fn wait_for_an_adopter(&mut self, number: usize) {
        let Agent { deadline, epoch, .. } = self.agents[number];
        if self.now < deadline {
            self.schedule(deadline, Event::Shim { agent: number, epoch });
        } else if !self.has(Defect::OrphansAreForgotten) {
            self.kill(number);
        }
    }

    /// The agent of a claim whose process died, if it is still there.
    pub(crate) fn orphan(&self, host: usize, task: usize, fence: Fence) -> Option<usize> {
        let is_it = |agent: &Agent| {
            (agent.task, agent.fence, agent.host) == (task, fence, host) && agent.life != Life::Dead
        };
        self.live.iter().copied().find(|number| is_it(&self.agents[*number]))
    }

    /// A successor goes on with it, under a lease that it has prolonged.
    pub(crate) fn adopt(&mut self, number: usize, owner: (Process, usize), deadline: i64) {
        self.note(|sim| format!("{} adopts agent {number}", sim.workers[owner.0.worker].id));
        self.agents[number].owner = owner;
        self.prolong(number, deadline);
    }

    fn ask_for_agent(&mut self, number: usize) {
        let Agent { task, fence, run, epoch, .. } = &self.agents[number];
        let (claims, epoch) = (vec![(*task, *fence, run.clone())], *epoch);
        self.send(Caller::Shim(number), Ask::Renew(claims));
        self.schedule(self.now + ASK_AGAIN, Event::Shim { agent: number, epoch });
    }

    pub(crate) fn shim_hears(&mut self, number: usize, sent_at: i64, answer: &Answer) {
        match answer {
            Answer::Renewed(held) if held.is_empty() => self.kill(number),
            Answer::Renewed(_) => self.prolong(number, sent_at + LEASE),
            _ => {}
        }
    }

    /// The lease was renewed: a frozen agent goes on.
    pub(crate) fn prolong(&mut self, number: usize, deadline: i64) {
        let slept = self.hosts[self.agents[number].host].slept;
        let agent = &mut self.agents[number];
        if deadline <= agent.deadline {
            return;
        }
        (agent.deadline, agent.slept) = (deadline, slept);
        if let Life::Frozen { work_left } = agent.life
            && self.now < deadline - MARGIN
        {
            agent.life = Life::Running;
            agent.ends_at = self.now + work_left;
            agent.epoch += 1;
            let (ends_at, epoch) = (agent.ends_at, agent.epoch);
            self.note(|_| format!("shim thaws agent {number}"));
            self.schedule(ends_at, Event::AgentEnds { agent: number, epoch });
            self.schedule(deadline - MARGIN, Event::Shim { agent: number, epoch });
        }
    }

    pub(crate) fn kill(&mut self, number: usize) {
        if self.agents[number].life != Life::Dead {
            self.note(|_| format!("agent {number} is killed"));
            self.agents[number].life = Life::Dead;
        }
    }

    /// I9: at no moment two agents work on one task. A machine that wakes lets its shims look at the clock first.
    pub(crate) fn check_agents(&self) -> Result<(), Violation> {
        let at_work =
            |agent: &&Agent| agent.life == Life::Running && self.now > self.hosts[agent.host].asleep_until;
        let mut seen = 0u64;
        for agent in self.live.iter().map(|number| &self.agents[*number]).filter(at_work) {
            let bit = 1 << agent.task;
            ensure(seen & bit == 0, I9, || format!("two agents work on t{}", agent.task))?;
            seen |= bit;
        }
        Ok(())
    }
}

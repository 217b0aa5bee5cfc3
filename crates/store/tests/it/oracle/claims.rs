//! The model's claims: leases, lanes, turns and limits.

use std::collections::BTreeMap;
use std::time::Duration;

use rehearsal_core::flow::Flow;
use rehearsal_core::guard::{
    AgentLimits, Hindrance, Limits, Situation, Working, lane_hindrance, task_hindrance,
};
use rehearsal_core::transition::TaskInput;
use rehearsal_core::{
    AgentName, Fence, Hold, HoldCause, Lane, RunEnd, SessionName, Standing, Task, TaskId, Timestamp,
};
use rehearsal_store::{Change, ClaimRequest, Claimed};

use super::{Model, Pick, SESSIONS};
use crate::bench::{Bench, run_id, session_name};

pub(super) const LEASE: Duration = Duration::from_secs(20);

/// Whom a worker asks for, and what it is allowed, as the dice have it.
#[derive(Debug, Clone)]
pub(super) struct Ask {
    pub(super) session: Option<usize>,
    pub(super) agent: Option<&'static str>,
    pub(super) at_once: Option<u32>,
    pub(super) agent_at_once: Option<u32>,
    pub(super) interval_ms: u64,
    pub(super) may_take_over: bool,
}

impl Ask {
    pub(super) fn limits(&self) -> Limits {
        let limits = AgentLimits {
            enabled: true,
            at_once: self.agent_at_once,
            interval: Duration::from_millis(self.interval_ms),
            ..AgentLimits::default()
        };
        Limits { at_once: self.at_once, agents: BTreeMap::from([(implementer(), limits)]) }
    }

    fn request(&self, number: usize) -> ClaimRequest {
        ClaimRequest {
            worker: rehearsal_core::WorkerId::new("worker-2").unwrap(),
            run: run_id(&format!("c{number}")),
            lease: LEASE,
            agents: self.agent.map(|agent| [AgentName::new(agent).unwrap()].into()),
            stand_in: None,
            session: self.session.map(|number| session_name(SESSIONS[number])),
            limits: self.limits(),
            may_take_over: self.may_take_over,
        }
    }
}

fn implementer() -> AgentName {
    AgentName::new("implementer").unwrap()
}

pub(super) fn lane(number: usize) -> Lane {
    match number {
        0 => Lane::All,
        1 => Lane::Agent(implementer()),
        place => Lane::Session(session_name(SESSIONS[place - 2])),
    }
}

pub(super) fn hold(until: Option<Timestamp>) -> Hold {
    Hold { cause: HoldCause::Person, reason: "the fair".into(), until }
}

/// What only claims need to know.
#[derive(Clone, Default)]
pub(super) struct Claims {
    /// How many were asked for: each has a run of its own.
    asked: usize,
    leases: BTreeMap<TaskId, Timestamp>,
    holds: BTreeMap<Lane, Hold>,
    turns: BTreeMap<Option<SessionName>, usize>,
}

impl Model {
    pub(super) fn asking(&self, ask: &Ask) -> Change {
        Change::ClaimNext(Box::new(ask.request(self.claims.asked)))
    }

    /// A run for a claim that has none yet.
    pub(super) fn starting_claimed(&self, pick: Pick, bench: &Bench, now: Timestamp) -> Option<Change> {
        let mut without = self.tasks.iter().filter_map(|task| match &task.standing {
            Standing::Claimed(claim) if !self.runs.iter().any(|run| run.start.id == claim.run) => {
                Some((task, claim.run.clone()))
            }
            _ => None,
        });
        let count = without.clone().count();
        let (task, run) = without.nth(usize::from(pick) % count.max(1))?;
        let start = bench.start_under(task, run.as_str());
        Some(Change::StartRun(rehearsal_core::RunStart { started_at: now, ..start }))
    }

    pub(super) fn claim_next(
        &mut self,
        request: &ClaimRequest,
        flow: &Flow,
        now: Timestamp,
    ) -> Option<Box<Claimed>> {
        self.claims.asked += 1;
        let situation = self.situation(&request.limits, now);
        let mut candidates: Vec<(usize, Task)> = self.tasks.iter().cloned().enumerate().collect();
        candidates.retain(|(_, task)| {
            (self.is_claimable(task, now) || (request.may_take_over && self.has_run_out(task, now)))
                && is_wanted(task, request)
                && hindrance_of_lane(task, &request.limits, &situation, now).is_none()
        });
        candidates.sort_by_key(|(place, task)| {
            let in_work = situation.working.iter().filter(|working| working.session == task.session).count();
            let turn = self.claims.turns.get(&task.session).copied().unwrap_or(0);
            (task.priority, in_work, turn, task.created_at, *place)
        });
        candidates.into_iter().find_map(|(_, task)| self.try_claim(&task, request, &situation, flow, now))
    }

    fn try_claim(
        &mut self,
        task: &Task,
        request: &ClaimRequest,
        situation: &Situation,
        flow: &Flow,
        now: Timestamp,
    ) -> Option<Box<Claimed>> {
        if task_hindrance(task, flow, situation, &BTreeMap::new(), 0.0).is_some() {
            return None;
        }
        let (worker, run) = (request.worker.clone(), request.run.clone());
        let (taken_from, input) = match &task.standing {
            Standing::Claimed(claim) => {
                let stale = task.fence;
                (Some(claim.run.clone()), TaskInput::TakeOver { worker, run, stale })
            }
            _ => (None, TaskInput::Claim { worker, run }),
        };
        let after = self.change_task(&task.id, &input, flow, now).unwrap();
        self.events += 1;
        let lost = self.runs.iter_mut().find(|run| Some(&run.start.id) == taken_from.as_ref());
        if let Some(lost) = lost.filter(|run| run.end.is_none()) {
            let because = "its worker let the lease run out, and another took over".to_owned();
            lost.end = Some(RunEnd::without_blame(because, now));
            self.events += 1;
        }
        if !matches!(after.standing, Standing::Claimed(_)) {
            return None;
        }
        self.claims.leases.insert(task.id.clone(), now.plus(request.lease));
        let last = self.claims.turns.values().copied().max().unwrap_or(0);
        self.claims.turns.insert(task.session.clone(), last + 1);
        Some(Box::new(Claimed { task: after, taken_from }))
    }

    /// A lease lasts as long as the claim that it was given to.
    pub(super) fn end_lease_of(&mut self, before: &Task, after: &Task) {
        if before.fence != after.fence || !matches!(after.standing, Standing::Claimed(_)) {
            self.claims.leases.remove(&after.id);
        }
    }

    pub(super) fn renew(&mut self, id: &TaskId, fence: Fence, now: Timestamp) -> Vec<TaskId> {
        let holds = self
            .task(id)
            .is_some_and(|task| matches!(task.standing, Standing::Claimed(_)) && task.fence == fence);
        if holds {
            self.claims.leases.insert(id.clone(), now.plus(LEASE));
        }
        holds.then(|| id.clone()).into_iter().collect()
    }

    pub(super) fn hold(&mut self, lane: &Lane, hold: &Hold) {
        self.claims.holds.insert(lane.clone(), hold.clone());
    }

    /// Whether something held it.
    pub(super) fn free(&mut self, lane: &Lane) -> bool {
        self.claims.holds.remove(lane).is_some()
    }

    fn has_run_out(&self, task: &Task, now: Timestamp) -> bool {
        self.claims.leases.get(&task.id).is_some_and(|until| *until <= now)
    }

    /// When the tasks were claimed whose runs have not begun yet.
    fn about_to_begin(&self) -> impl Iterator<Item = Timestamp> {
        let has_run = |task: &Task| {
            self.runs.iter().any(|run| run.start.task == task.id && run.start.fence == task.fence)
        };
        let is_claimed = |task: &&Task| matches!(task.standing, Standing::Claimed(_));
        let claimed = self.tasks.iter().filter(is_claimed).filter(|task| task.next_agent().is_some());
        claimed.filter(move |task| !has_run(task)).map(|task| task.updated_at)
    }

    pub(super) fn situation(&self, limits: &Limits, now: Timestamp) -> Situation {
        let in_work =
            |task: &&Task| matches!(task.standing, Standing::Claimed(_)) && !self.has_run_out(task, now);
        let working = |task: &Task| Working {
            task: task.id.clone(),
            session: task.session.clone(),
            agent: task.next_agent().cloned(),
            touches: task.touches.clone(),
        };
        let mut working: Vec<Working> = self.tasks.iter().filter(in_work).map(working).collect();
        working.sort_by(|a, b| a.task.cmp(&b.task));
        let interval = limits.agents.values().any(|limits| limits.interval > Duration::ZERO);
        let began = self.runs.iter().map(|run| run.start.started_at);
        let last = began.chain(self.about_to_begin()).max().filter(|_| interval);
        Situation {
            working,
            holds: self.claims.holds.clone().into_iter().collect(),
            last_starts: last.map(|last| (implementer(), last)).into_iter().collect(),
        }
    }

    pub(super) fn hindrance(
        &self,
        task: &Task,
        limits: &Limits,
        flow: &Flow,
        now: Timestamp,
    ) -> Option<Hindrance> {
        let situation = self.situation(limits, now);
        hindrance_of_lane(task, limits, &situation, now)
            .or_else(|| task_hindrance(task, flow, &situation, &BTreeMap::new(), 0.0))
    }

    pub(super) fn next_wake(&self, now: Timestamp) -> Option<Timestamp> {
        let waits =
            self.tasks.iter().filter(|task| self.has_all_it_needs(task)).filter_map(|task| {
                match &task.standing {
                    Standing::Waiting(wait) => wait.until,
                    _ => None,
                }
            });
        let leases = self.claims.leases.values().copied();
        let holds = self.claims.holds.values().filter_map(|hold| hold.until);
        waits.chain(leases).chain(holds).filter(|at| *at > now).min()
    }

    pub(super) fn leases(&self) -> Vec<(Task, Timestamp)> {
        let lease = |task: &Task| Some((task.clone(), *self.claims.leases.get(&task.id)?));
        let mut leases: Vec<_> = self.tasks.iter().filter_map(lease).collect();
        leases.sort_by_key(|(_, until)| *until);
        leases
    }
}

fn is_wanted(task: &Task, request: &ClaimRequest) -> bool {
    let agent = request.agents.as_ref();
    agent.is_none_or(|agents| task.next_agent().is_some_and(|agent| agents.contains(agent)))
        && request.session.as_ref().is_none_or(|session| task.session.as_ref() == Some(session))
}

fn hindrance_of_lane(
    task: &Task,
    limits: &Limits,
    situation: &Situation,
    now: Timestamp,
) -> Option<Hindrance> {
    lane_hindrance(task.next_agent(), task.session.as_ref(), limits, situation, now)
}

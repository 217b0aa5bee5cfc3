//! Which task is next: the order, the same for every engine. Whether it may be claimed is a rule of `core`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rehearsal_core::guard::{AgentLimits, Limits, Situation, lane_hindrance};
use rehearsal_core::{AgentName, RunId, SessionName, Task, Timestamp, WorkerId};

use crate::StoreError;

/// Who asks for a task, and what for.
#[derive(Debug, Clone, PartialEq)]
pub struct ClaimRequest {
    /// The worker.
    pub worker: WorkerId,
    /// The run that it would start, or the name under which it does the steps.
    pub run: RunId,
    /// For how long the claim holds without a word from the worker.
    pub lease: Duration,
    /// Only tasks for these agents; none: for all, and those that have only steps left.
    pub agents: Option<BTreeSet<AgentName>>,
    /// The agent that works on whatever is claimed, instead of the one that its flow names: then its pauses and limits
    /// count.
    pub stand_in: Option<AgentName>,
    /// Only tasks of this session.
    pub session: Option<SessionName>,
    /// What the configuration allows.
    pub limits: Limits,
    /// Whether it may take over what another worker let run out.
    pub may_take_over: bool,
}

impl ClaimRequest {
    /// Whether the limits count what is in work, so that two who claim at once must not both count before either claims.
    pub(crate) fn counts(&self) -> bool {
        let counts = |limits: &AgentLimits| limits.at_once.is_some() || limits.interval > Duration::ZERO;
        self.limits.at_once.is_some() || self.limits.agents.values().any(counts)
    }
}

/// A task that was claimed.
#[derive(Debug, Clone, PartialEq)]
pub struct Claimed {
    /// The task as it is now.
    pub task: Task,
    /// The run that it was taken from, if its worker had let the lease run out.
    pub taken_from: Option<RunId>,
}

/// A lane as the table writes it: `AGENT/SESSION`.
pub(crate) struct LaneKey {
    pub(crate) text: String,
    pub(crate) agent: Option<AgentName>,
    pub(crate) session: Option<SessionName>,
}

impl LaneKey {
    /// The session as the table of turns writes it.
    pub(crate) fn session_text(&self) -> &str {
        self.session.as_ref().map_or("", SessionName::as_str)
    }

    pub(crate) fn read(text: String) -> Result<Self, StoreError> {
        let corrupt = || StoreError::Corrupt { what: format!("`{text}` is no lane") };
        let (agent, session) = text.split_once('/').ok_or_else(corrupt)?;
        let agent = (!agent.is_empty()).then(|| AgentName::new(agent)).transpose().map_err(|_| corrupt())?;
        let session =
            (!session.is_empty()).then(|| SessionName::new(session)).transpose().map_err(|_| corrupt())?;
        Ok(Self { text, agent, session })
    }

    /// Whether the request asks for tasks of this lane, and nothing holds it.
    pub(crate) fn is_open(&self, request: &ClaimRequest, situation: &Situation, now: Timestamp) -> bool {
        let is_wanted = request
            .agents
            .as_ref()
            .is_none_or(|agents| self.agent.as_ref().is_some_and(|agent| agents.contains(agent)))
            && request.session.as_ref().is_none_or(|session| self.session.as_ref() == Some(session));
        let agent = request.stand_in.as_ref().or(self.agent.as_ref());
        is_wanted && lane_hindrance(agent, self.session.as_ref(), &request.limits, situation, now).is_none()
    }
}

/// A task that might be next.
#[derive(Debug)]
pub(crate) struct Candidate {
    pub(crate) found: Found,
    pub(crate) session: String,
    pub(crate) priority: i64,
    pub(crate) created_at: i64,
    pub(crate) num: i64,
    /// The task itself, if it came with the look.
    pub(crate) doc: Option<String>,
}

/// How a candidate came to be one.
#[derive(Debug)]
pub(crate) enum Found {
    /// It is the next of its lane, and so many of the lane were looked at before it.
    InLane { lane: String, before: i64 },
    /// Its worker let the lease run out. It is claimable like others, but nobody has told it yet.
    RunOut,
}

/// Which of the candidates is next: most urgent first; then the session with the least in work; then the one whose turn
/// is longest ago; then the oldest.
pub(crate) struct Order<'a> {
    in_work: BTreeMap<&'a str, usize>,
    turns: &'a BTreeMap<String, i64>,
}

impl<'a> Order<'a> {
    pub(crate) fn new(situation: &'a Situation, turns: &'a BTreeMap<String, i64>) -> Self {
        let mut in_work: BTreeMap<&str, usize> = BTreeMap::new();
        for working in &situation.working {
            *in_work.entry(working.session.as_ref().map_or("", SessionName::as_str)).or_default() += 1;
        }
        Self { in_work, turns }
    }

    /// Takes the next one out.
    pub(crate) fn take_next(&self, candidates: &mut Vec<Candidate>) -> Option<Candidate> {
        let place = (0..candidates.len()).min_by_key(|place| self.key(&candidates[*place]))?;
        Some(candidates.swap_remove(place))
    }

    fn key(&self, candidate: &Candidate) -> (i64, usize, i64, i64, i64) {
        let in_work = self.in_work.get(candidate.session.as_str()).copied().unwrap_or(0);
        let turn = self.turns.get(&candidate.session).copied().unwrap_or(0);
        (candidate.priority, in_work, turn, candidate.created_at, candidate.num)
    }
}

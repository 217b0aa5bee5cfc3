//! Which task is next: the order, the same for every engine. Whether it may be claimed is a rule of `core`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rehearsal_core::guard::{Limits, Situation, lane_hindrance};
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
    /// Only tasks of this session.
    pub session: Option<SessionName>,
    /// What the configuration allows.
    pub limits: Limits,
    /// Whether it may take over what another worker let run out.
    pub may_take_over: bool,
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
        is_wanted
            && lane_hindrance(self.agent.as_ref(), self.session.as_ref(), &request.limits, situation, now)
                .is_none()
    }
}

/// A task that might be next.
#[derive(Debug)]
pub(crate) struct Candidate {
    pub(crate) num: i64,
    pub(crate) session: String,
    pub(crate) priority: i64,
    pub(crate) created_at: i64,
}

/// Most urgent first; then the session with the least in work; then the one whose turn is longest ago; then the oldest.
pub(crate) fn put_in_order(
    candidates: &mut [Candidate],
    situation: &Situation,
    turns: &BTreeMap<String, i64>,
) {
    let mut in_work: BTreeMap<&str, usize> = BTreeMap::new();
    for working in &situation.working {
        *in_work.entry(working.session.as_ref().map_or("", SessionName::as_str)).or_default() += 1;
    }
    candidates.sort_by_key(|candidate| {
        let in_work = in_work.get(candidate.session.as_str()).copied().unwrap_or(0);
        let turn = turns.get(&candidate.session).copied().unwrap_or(0);
        (candidate.priority, in_work, turn, candidate.created_at, candidate.num)
    });
}

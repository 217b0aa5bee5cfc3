//! Flows: the one graph format.
//!
//! A flow is a YAML state machine that a task moves through. A state works (an agent, then steps), waits, or
//! ends. [`parse`] reads one and checks it; what it returns has no dangling edge, no unreachable state and no
//! state without a way out.

mod check;
mod graph;
mod parse;
mod step;

use std::collections::BTreeMap;
use std::fmt;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::source::nearest;
use crate::{
    AgentName, FlowName, Outcome, OutcomeName, PendingSteps, Place, SourceError, Standing, StateName, Wait,
    WaitFor,
};

pub use graph::mermaid;
pub use parse::{FlowFile, parse};
pub use step::{Need, Parameter, STEPS, Step, StepSpec};

/// The flows that ship with the program: name and text.
pub const SHIPPED: [(&str, &str); 5] = [
    ("loop", include_str!("flows/loop.yaml")),
    ("pull-request", include_str!("flows/pull-request.yaml")),
    ("approve", include_str!("flows/approve.yaml")),
    ("plan", include_str!("flows/plan.yaml")),
    ("look", include_str!("flows/look.yaml")),
];

/// A checked flow.
#[derive(Debug, Clone, PartialEq)]
pub struct Flow {
    /// Its name.
    pub name: FlowName,
    /// A short hash of its text: tasks stay with the version that they started with.
    pub version: String,
    /// The text it was read from.
    pub source: String,
    /// Where tasks begin.
    pub start: StateName,
    /// Its states, in the order of the file.
    pub states: IndexMap<StateName, State>,
    /// How many tasks a state has room for, where that is bounded: no work is begun that would go to a full one.
    pub rooms: BTreeMap<StateName, u32>,
    /// The agents that it names, and where: who has a configuration can say whether they exist.
    pub agents: Vec<(AgentName, Option<Place>)>,
}

/// A state of a flow.
#[derive(Debug, Clone, PartialEq)]
pub enum State {
    /// An agent works, then steps run.
    Work {
        /// Which agent; none: there are only steps.
        agent: Option<AgentName>,
        /// What the engine does after it.
        steps: Vec<Step>,
        /// Where each outcome leads.
        on: Edges,
    },
    /// A person has to do something first. (Waiting for time or for checks is a step's: see [`Step`].)
    Wait {
        /// Where a decision leads.
        on: Edges,
    },
    /// The way is over.
    End(End),
}

/// How a task's way ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// Well.
    Success,
    /// Not well.
    Failure,
    /// On request. No state of a flow: any state can be cancelled.
    Cancelled,
}

/// Where each outcome of a state leads.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Edges {
    /// By name.
    pub named: IndexMap<EdgeName, Edge>,
    /// For all others.
    pub otherwise: Option<Edge>,
}

/// One way out of a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edge {
    /// Where it leads.
    pub to: StateName,
    /// How often it may be taken.
    pub limit: Option<Limit>,
}

/// How often an edge may be taken, and what comes then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit {
    /// This often.
    pub at_most: u32,
    /// Then here.
    pub then: StateName,
}

/// What an edge can be named after: an outcome of an agent, or a step's red verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EdgeName {
    /// An agent's outcome.
    Outcome(OutcomeName),
    /// `run_tests` found failures.
    TestsFailed,
    /// `assess` found a change that is to be reviewed.
    NeedsReview,
    /// The branch does not fit its base any more.
    Conflict,
    /// The forge's checks failed.
    CiFailed,
    /// The merge was refused.
    MergeFailed,
    /// A command step failed.
    CommandFailed,
}

impl From<OutcomeName> for EdgeName {
    fn from(name: OutcomeName) -> Self {
        Self::Outcome(name)
    }
}

impl EdgeName {
    /// All that a flow may write. Outcomes blamed on the system or a user have no edge: they wait and come back.
    pub fn all() -> impl Iterator<Item = Self> + Clone {
        use crate::Blame::{Agent, Nobody, Task};
        OutcomeName::ALL
            .into_iter()
            .filter(|name| matches!(name.blame(), Nobody | Task | Agent))
            .map(Self::Outcome)
            .chain([
                Self::TestsFailed,
                Self::NeedsReview,
                Self::Conflict,
                Self::CiFailed,
                Self::MergeFailed,
                Self::CommandFailed,
            ])
    }

    /// The name as flows write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Outcome(name) => name.as_str(),
            Self::TestsFailed => "tests_failed",
            Self::NeedsReview => "needs_review",
            Self::Conflict => "conflict",
            Self::CiFailed => "ci_failed",
            Self::MergeFailed => "merge_failed",
            Self::CommandFailed => "command_failed",
        }
    }

    /// The more general edge that stands in for this one when it is not drawn.
    pub fn stands_in(self) -> Option<Self> {
        if self == Self::CiFailed {
            return Some(Self::TestsFailed);
        }
        Some(Self::Outcome(match self {
            Self::Outcome(
                OutcomeName::Violated
                | OutcomeName::Runaway
                | OutcomeName::TimedOut
                | OutcomeName::ProtocolError
                | OutcomeName::EmptyOutput,
            ) => OutcomeName::Crashed,
            Self::Outcome(OutcomeName::BudgetReached | OutcomeName::NoChanges) => OutcomeName::Failed,
            Self::Outcome(OutcomeName::Continue) => OutcomeName::NeedsContinuation,
            _ => return None,
        }))
    }
}

impl fmt::Display for EdgeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Edges {
    /// The edge for a name: its own, the one that stands in for it, or `otherwise`. An outcome that the state has no
    /// use for counts as a crash.
    pub fn find(&self, name: EdgeName) -> Option<(EdgeName, &Edge)> {
        let own = |name: EdgeName| self.named.get(&name).map(|edge| (name, edge));
        let crashed = || own(EdgeName::Outcome(OutcomeName::Crashed));
        let is_outcome = matches!(name, EdgeName::Outcome(_));
        own(name)
            .or_else(|| name.stands_in().and_then(own))
            .or_else(|| (is_outcome && self.decides()).then(crashed).flatten())
            .or_else(|| self.otherwise.as_ref().map(|edge| (name, edge)))
            // A decision that nobody asked for is a breakdown of the agent.
            .or_else(|| is_outcome.then(crashed).flatten())
    }

    /// Whether the state is a reviewer's: then every end without a decision is a breakdown of the reviewer.
    pub fn decides(&self) -> bool {
        [OutcomeName::Approved, OutcomeName::Rejected]
            .into_iter()
            .any(|name| self.named.contains_key(&EdgeName::Outcome(name)))
    }

    /// All edges, named ones first.
    pub fn iter(&self) -> impl Iterator<Item = (Option<EdgeName>, &Edge)> {
        let named = self.named.iter().map(|(name, edge)| (Some(*name), edge));
        named.chain(self.otherwise.iter().map(|edge| (None, edge)))
    }
}

impl Flow {
    /// A flow that ships with the program.
    pub fn shipped(name: &str) -> Option<Self> {
        let (_, text) = SHIPPED.iter().find(|(shipped, _)| *shipped == name)?;
        parse(text).ok()
    }

    /// How a task stands when it comes into a state.
    pub fn standing_in(&self, state: &StateName) -> Standing {
        match self.states.get(state) {
            Some(State::End(end)) => Standing::Ended { end: *end },
            Some(State::Wait { on }) => Standing::Waiting(Wait {
                wait_for: WaitFor::Human,
                reason: if on.decides() {
                    "it waits for your decision".to_owned()
                } else {
                    format!("state `{state}` of flow `{}`", self.name)
                },
                until: None,
            }),
            Some(State::Work { .. }) | None => Standing::Ready,
        }
    }

    /// The first state that ends badly.
    pub fn failure_state(&self) -> Option<&StateName> {
        self.states.iter().find(|(_, state)| matches!(state, State::End(End::Failure))).map(|(name, _)| name)
    }

    /// What the engine does in a state after its agent.
    pub fn steps_of(&self, state: &StateName) -> &[Step] {
        match self.states.get(state) {
            Some(State::Work { steps, .. }) => steps,
            Some(State::Wait { .. } | State::End(_)) | None => &[],
        }
    }

    /// The steps that are to be done as soon as a task comes into a state: all of them, where no agent works first.
    pub fn steps_alone(&self, state: &StateName) -> Option<PendingSteps> {
        let alone = matches!(self.states.get(state), Some(State::Work { agent: None, .. }));
        alone.then_some(PendingSteps { outcome: Outcome::Done, run: None, next: 0, tries: 0 })
    }

    /// Whether the steps of a state follow this end of its agent's run. What a reviewer has not approved is not let
    /// out, whatever else it says.
    pub fn steps_follow(&self, state: &StateName, outcome: OutcomeName) -> bool {
        match self.states.get(state) {
            Some(State::Work { steps, on, .. }) => {
                let good = if on.decides() { OutcomeName::Approved } else { OutcomeName::Done };
                !steps.is_empty() && outcome == good
            }
            Some(State::Wait { .. } | State::End(_)) | None => false,
        }
    }

    /// The first state that ends well.
    pub fn success_state(&self) -> Option<&StateName> {
        self.states.iter().find(|(_, state)| matches!(state, State::End(End::Success))).map(|(name, _)| name)
    }

    /// Whether a loop can take tasks through it: it works in one state, whose steps end with `land` if there are any. Says what stands
    /// in the way.
    pub fn fits_a_loop(&self) -> Result<(), String> {
        let steps = self.states.iter().filter_map(|(name, state)| match state {
            State::Work { steps, .. } => Some((name, steps)),
            _ => None,
        });
        match steps.collect::<Vec<_>>().as_slice() {
            [(_, steps)] if steps.last().is_none_or(|last| *last == Step::Land) => Ok(()),
            [(name, _)] => Err(format!("the steps of state `{name}` do not end with `land`")),
            states => Err(format!("it has {} working states, and a loop works in one", states.len())),
        }
    }

    /// The first agent that is not among the known ones, as an error at its place.
    pub fn unknown_agent<'a>(
        &self,
        known: &(impl Iterator<Item = &'a AgentName> + Clone),
    ) -> Option<SourceError> {
        let (name, place) = self.agents.iter().find(|(name, _)| !known.clone().any(|other| other == name))?;
        let error = SourceError::at(*place, format!("unknown agent `{name}`"));
        Some(match nearest(name.as_str(), known.clone().map(AgentName::as_str)) {
            Some(near) => error.hint(format!("did you mean `{near}`?")),
            None => error.hint(format!("add `{name}` under `agents:` in the configuration")),
        })
    }

    /// Who works in a state on a task with this author. The author does what the agent of the flow's start would do,
    /// there and wherever that one is named again; reviewers stay who they are.
    pub fn agent_for<'a>(
        &'a self,
        state: &StateName,
        author: Option<&'a AgentName>,
    ) -> Option<&'a AgentName> {
        let named = self.agent_of(state)?;
        author.filter(|_| self.agent_of(&self.start) == Some(named)).or(Some(named))
    }

    /// Whether the agent of a state is asked for a decision, and for nothing else.
    pub fn only_decides(&self, state: &StateName) -> bool {
        matches!(self.states.get(state), Some(State::Work { on, .. }) if on.decides())
    }

    /// Whether a state asks for words and not for changes: then having changed nothing is a good end.
    pub fn only_looks(&self, state: &StateName) -> bool {
        let Some(State::Work { on, .. }) = self.states.get(state) else { return false };
        let to = on.named.get(&EdgeName::Outcome(OutcomeName::NoChanges)).map(|edge| &edge.to);
        to.and_then(|to| self.states.get(to)).is_some_and(|state| matches!(state, State::End(End::Success)))
    }

    /// The agent of a state that works.
    pub fn agent_of(&self, state: &StateName) -> Option<&AgentName> {
        match self.states.get(state)? {
            State::Work { agent, .. } => agent.as_ref(),
            State::Wait { .. } | State::End(_) => None,
        }
    }
}

#[cfg(test)]
mod tests;

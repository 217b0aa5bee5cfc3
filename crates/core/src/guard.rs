//! Whether a task may be claimed now, and if not, why not.
//!
//! The store asks before every claim, inside the transaction; `why` asks the same functions and so never
//! tells another story. Cheapest first: what holds a whole lane is asked without looking at a task.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::flow::{EdgeName, Flow, State};
use crate::{AgentName, Hold, HoldCause, Lane, OutcomeName, SessionName, StateName, Task, TaskId, Timestamp};

/// What the configuration allows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Limits {
    /// At most so many tasks in work at once.
    pub at_once: Option<u32>,
    /// Of each agent that has limits.
    pub agents: BTreeMap<AgentName, AgentLimits>,
}

impl Limits {
    /// The agents that may take the runs of this one.
    pub fn fallbacks_of(&self, agent: &AgentName) -> &[AgentName] {
        self.agents.get(agent).map_or(&[], |limits| &limits.fallback)
    }
}

/// What the configuration allows an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentLimits {
    /// Whether it works at all.
    pub enabled: bool,
    /// At most so many of its runs at once.
    pub at_once: Option<u32>,
    /// The least time between the starts of two of its runs.
    pub interval: Duration,
    /// Agents that take its runs while the system keeps it from working.
    pub fallback: Vec<AgentName>,
}

impl Default for AgentLimits {
    fn default() -> Self {
        Self { enabled: true, at_once: None, interval: Duration::ZERO, fallback: Vec::new() }
    }
}

/// What goes on when a worker asks for a task.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Situation {
    /// The tasks that are in work, with a lease that holds.
    pub working: Vec<Working>,
    /// The lanes that are held.
    pub holds: Vec<(Lane, Hold)>,
    /// When each agent last began a run, as far as an interval asks for it.
    pub last_starts: BTreeMap<AgentName, Timestamp>,
}

impl Situation {
    /// What holds this agent's lane.
    fn hold_of(&self, agent: &AgentName, now: Timestamp) -> Option<&Hold> {
        let mut holds = self.holds.iter().filter(|(_, hold)| hold.holds_at(now));
        holds.find(|(lane, _)| matches!(lane, Lane::Agent(held) if held == agent)).map(|(_, hold)| hold)
    }
}

/// A task in work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Working {
    /// Which.
    pub task: TaskId,
    /// Its session.
    pub session: Option<SessionName>,
    /// Who works on it; none: the engine does its steps.
    pub agent: Option<AgentName>,
    /// What it declared to change.
    pub touches: Vec<String>,
}

/// Why a task is not claimed now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "hindrance", rename_all = "snake_case")]
pub enum Hindrance {
    /// The configuration says that its agent does not work.
    Disabled {
        /// Which.
        agent: AgentName,
    },
    /// Its lane is held.
    Held {
        /// Which lane.
        lane: Lane,
        /// By what.
        hold: Hold,
    },
    /// As much is in work as may be.
    AllBusy {
        /// So many.
        at_once: u32,
    },
    /// Its agent is at work as often as it may be.
    AgentBusy {
        /// Which.
        agent: AgentName,
        /// So many times.
        at_once: u32,
    },
    /// Its agent has begun a run, and is to wait before the next.
    TooSoon {
        /// Which.
        agent: AgentName,
        /// When it may begin again.
        until: Timestamp,
    },
    /// The state that its work would go to has no room.
    StateFull {
        /// Which.
        state: StateName,
        /// So many tasks are in it.
        room: u32,
    },
    /// It has cost what it may.
    Spent {
        /// What its runs cost.
        usd: f64,
        /// What they may.
        limit: f64,
    },
    /// Another task that is in work changes the same files.
    Overlap {
        /// Which.
        task: TaskId,
        /// What both touch.
        touches: String,
    },
}

impl fmt::Display for Hindrance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disabled { agent } => write!(f, "agent `{agent}` is disabled in the configuration"),
            Self::Held { lane: Lane::All, hold } => write!(f, "all work is held: {}", hold.reason),
            Self::Held { lane: Lane::Agent(agent), hold } => {
                write!(f, "agent `{agent}` is held: {}", hold.reason)
            }
            Self::Held { lane: Lane::Session(session), hold } => {
                write!(f, "session `{session}` is held: {}", hold.reason)
            }
            Self::AllBusy { at_once } => write!(f, "{at_once} tasks are in work, and no more may be"),
            Self::AgentBusy { agent, at_once } => {
                write!(f, "agent `{agent}` has {at_once} runs under way, and may have no more")
            }
            Self::TooSoon { agent, .. } => {
                write!(f, "agent `{agent}` has begun a run, and its `interval` is not over")
            }
            Self::StateFull { state, room } => {
                write!(f, "state `{state}`, where its work would go, has room for {room} tasks and is full")
            }
            Self::Spent { usd, limit } => write!(f, "its runs cost ${usd:.2}, and may cost ${limit:.2}"),
            Self::Overlap { task, touches } => {
                write!(f, "task `{task}`, which is in work, also touches `{touches}`")
            }
        }
    }
}

/// Who works where a flow names this agent: itself, unless the system keeps it from working and one of its fallbacks can work. An
/// agent that a person paused is not replaced.
pub fn acting_agent<'a>(
    agent: &'a AgentName,
    limits: &'a Limits,
    situation: &Situation,
    now: Timestamp,
) -> &'a AgentName {
    match situation.hold_of(agent, now) {
        Some(Hold { cause: HoldCause::System(_), .. }) => {
            let fallbacks = limits.fallbacks_of(agent).iter();
            fallbacks.clone().find(|other| can_work(other, limits, situation, now)).unwrap_or(agent)
        }
        Some(Hold { cause: HoldCause::Person, .. }) | None => agent,
    }
}

/// Who can take over from an agent that the system has just kept from working, where a flow names `agent`.
pub fn fallback_after<'a>(
    failed: &AgentName,
    agent: &'a AgentName,
    limits: &'a Limits,
    situation: &Situation,
    now: Timestamp,
) -> Option<&'a AgentName> {
    let others = std::iter::once(agent).chain(limits.fallbacks_of(agent));
    others.filter(|other| *other != failed).find(|other| can_work(other, limits, situation, now))
}

fn can_work(agent: &AgentName, limits: &Limits, situation: &Situation, now: Timestamp) -> bool {
    let is_enabled = limits.agents.get(agent).is_none_or(|limits| limits.enabled);
    is_enabled && situation.hold_of(agent, now).is_none()
}

/// What keeps a whole lane from being worked on: the tasks of a session that an agent works on next.
pub fn lane_hindrance(
    agent: Option<&AgentName>,
    session: Option<&SessionName>,
    limits: &Limits,
    situation: &Situation,
    now: Timestamp,
) -> Option<Hindrance> {
    let agent = agent.map(|agent| acting_agent(agent, limits, situation, now));
    let of_agent = agent.and_then(|agent| limits.agents.get(agent));
    if let (Some(agent), Some(AgentLimits { enabled: false, .. })) = (agent, of_agent) {
        return Some(Hindrance::Disabled { agent: agent.clone() });
    }
    let held = situation.holds.iter().find(|(lane, hold)| {
        hold.holds_at(now)
            && match lane {
                Lane::All => true,
                Lane::Agent(held) => Some(held) == agent,
                Lane::Session(held) => Some(held) == session,
            }
    });
    if let Some((lane, hold)) = held {
        return Some(Hindrance::Held { lane: lane.clone(), hold: hold.clone() });
    }
    if let Some(at_once) = limits.at_once.filter(|most| situation.working.len() >= *most as usize) {
        return Some(Hindrance::AllBusy { at_once });
    }
    let (agent, of_agent) = (agent?, of_agent?);
    let runs = situation.working.iter().filter(|working| working.agent.as_ref() == Some(agent)).count();
    if let Some(at_once) = of_agent.at_once.filter(|most| runs >= *most as usize) {
        return Some(Hindrance::AgentBusy { agent: agent.clone(), at_once });
    }
    let until = situation.last_starts.get(agent)?.plus(of_agent.interval);
    (until > now).then(|| Hindrance::TooSoon { agent: agent.clone(), until })
}

/// What keeps this very task from being worked on. `counts` are tasks by state of its flow, asked for only where
/// a state has bounded room; `spent_usd` is what its runs cost, asked for only if it has a budget.
pub fn task_hindrance(
    task: &Task,
    flow: &Flow,
    situation: &Situation,
    counts: &BTreeMap<StateName, u32>,
    spent_usd: f64,
) -> Option<Hindrance> {
    if task.next_agent().is_some() {
        let full = goals(task, flow).find_map(|state| {
            let room = *flow.rooms.get(state)?;
            (counts.get(state).copied().unwrap_or(0) >= room).then(|| (state.clone(), room))
        });
        if let Some((state, room)) = full {
            return Some(Hindrance::StateFull { state, room });
        }
        if let Some(limit) = task.budget.usd.filter(|limit| spent_usd >= *limit && spent_usd > 0.0) {
            return Some(Hindrance::Spent { usd: spent_usd, limit });
        }
    }
    situation.working.iter().filter(|working| working.task != task.id).find_map(|working| {
        let touches = common_touch(&task.touches, &working.touches)?.to_owned();
        Some(Hindrance::Overlap { task: working.task.clone(), touches })
    })
}

/// The other states that good work leads to.
pub fn goals<'f>(task: &Task, flow: &'f Flow) -> impl Iterator<Item = &'f StateName> {
    let own = task.state.clone();
    let on = match flow.states.get(&task.state) {
        Some(State::Work { on, .. }) => Some(on),
        _ => None,
    };
    [OutcomeName::Done, OutcomeName::Approved]
        .into_iter()
        .filter_map(move |name| on?.named.get(&EdgeName::Outcome(name)).map(|edge| &edge.to))
        .filter(move |state| **state != own)
}

/// The first pattern of one list that may match a file that a pattern of the other matches.
fn common_touch<'a>(ours: &'a [String], theirs: &[String]) -> Option<&'a str> {
    ours.iter().find(|a| theirs.iter().any(|b| may_meet(a, b))).map(String::as_str)
}

/// Whether two patterns may match the same file. Says yes where it cannot know.
fn may_meet(a: &str, b: &str) -> bool {
    let (a, b) =
        (a.trim_start_matches("./").trim_end_matches('/'), b.trim_start_matches("./").trim_end_matches('/'));
    let is_wild = |c: char| matches!(c, '*' | '?' | '[' | '{');
    let (head_a, head_b) =
        (a.find(is_wild).map_or(a, |at| &a[..at]), b.find(is_wild).map_or(b, |at| &b[..at]));
    match (head_a.len() == a.len(), head_b.len() == b.len()) {
        // Two plain paths: the same file, or one is a directory that has the other.
        (true, true) => is_in(a, b) || is_in(b, a),
        (true, false) => (a.starts_with(head_b) && tails_meet(a, b)) || is_in(head_b, a),
        (false, true) => (b.starts_with(head_a) && tails_meet(a, b)) || is_in(head_a, b),
        (false, false) => (head_a.starts_with(head_b) || head_b.starts_with(head_a)) && tails_meet(a, b),
    }
}

fn is_in(path: &str, directory: &str) -> bool {
    path == directory || path.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'))
}

/// What follows the last wildcard must fit: `*.rs` and `*.md` have no file in common.
fn tails_meet(a: &str, b: &str) -> bool {
    let is_wild = |c: char| matches!(c, '*' | '?' | ']' | '}');
    let tail = |text: &str| text.rfind(is_wild).map_or(0, |at| at + 1);
    let (tail_a, tail_b) = (&a[tail(a)..], &b[tail(b)..]);
    tail_a.ends_with(tail_b) || tail_b.ends_with(tail_a)
}

#[cfg(test)]
mod tests;

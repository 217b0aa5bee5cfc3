//! What a worker works on, where, and until when.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_core::guard::Limits;
use rehearsal_core::{AgentName, SessionName};
use rehearsal_forge::{Forge, Worktrees};

/// What a user can say about a worker.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkOptions {
    /// Which tasks, in which order, and until when.
    pub policy: Policy,
    /// What the runs of this worker may cost together, in dollars. What is left of it is the budget of each run.
    pub max_cost: Option<f64>,
    /// For how long a claim holds without a word from its worker.
    pub lease: Duration,
    /// What the configuration allows.
    pub limits: Limits,
    /// How often to look for what other processes changed; none: nobody else writes.
    pub look_every: Option<Duration>,
    /// The seed of what is drawn: run ids, and so the names of run directories.
    pub seed: Option<u64>,
}

/// Which tasks a worker takes, in which order, and when it ends.
#[derive(Debug, Clone, PartialEq)]
pub enum Policy {
    /// Tasks of any flow, several at once, each by the agents that its flow names.
    Queue(QueuePolicy),
    /// A session's tasks, one after the other, each iteration with a fresh context of one agent.
    Session(SessionPolicy),
}

/// `rehearsal work`.
#[derive(Debug, Clone, PartialEq)]
pub struct QueuePolicy {
    /// Maximum concurrent tasks.
    pub at_once: u32,
    /// Only tasks for these agents.
    pub agents: Option<BTreeSet<AgentName>>,
    /// Only tasks of this session.
    pub session: Option<SessionName>,
    /// End when there is nothing more to do.
    pub until_idle: bool,
    /// End after one task.
    pub once: bool,
}

/// `rehearsal run`.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionPolicy {
    /// Which session.
    pub session: SessionName,
    /// Who works on its tasks, whatever their flow says.
    pub agent: AgentName,
    /// End after this many iterations.
    pub iterations: u32,
    /// End after this many failed runs in a row.
    pub max_failures: u32,
    /// The longest wait.
    pub max_wait: Duration,
    /// Whether the agent's claim that all is complete is accepted.
    pub accept_complete: bool,
    /// A message for every prompt.
    pub message: Option<String>,
    /// How the agent should run the tests.
    pub test_command: Option<String>,
}

impl WorkOptions {
    pub(super) fn session(&self) -> Option<&SessionName> {
        match &self.policy {
            Policy::Queue(queue) => queue.session.as_ref(),
            Policy::Session(session) => Some(&session.session),
        }
    }

    pub(super) fn agents(&self) -> Option<&BTreeSet<AgentName>> {
        match &self.policy {
            Policy::Queue(queue) => queue.agents.as_ref(),
            Policy::Session(_) => None,
        }
    }

    pub(super) fn at_once(&self) -> u32 {
        match &self.policy {
            Policy::Queue(queue) => queue.at_once,
            Policy::Session(_) => 1,
        }
    }

    /// The agent that works on every task, instead of the one that its flow names.
    pub(super) fn stand_in(&self) -> Option<&AgentName> {
        match &self.policy {
            Policy::Queue(_) => None,
            Policy::Session(session) => Some(&session.agent),
        }
    }
}

/// Where tasks are worked on.
#[derive(Clone)]
pub enum Workspace {
    /// Each in a worktree of its own, from which the work goes out. Its agents outlive the worker.
    Worktrees {
        /// The worktrees.
        worktrees: Arc<Worktrees>,
        /// Where the work goes.
        outlet: Outlet,
    },
    /// In the user's checkout itself. Its agents end with the worker.
    Checkout(Utf8PathBuf),
}

impl Workspace {
    /// The worktrees, and where the work goes from there; none in a checkout.
    pub(super) fn worktrees(&self) -> Option<(&Worktrees, &Outlet)> {
        match self {
            Self::Worktrees { worktrees, outlet } => Some((worktrees, outlet)),
            Self::Checkout(_) => None,
        }
    }

    /// The user's checkout.
    pub(super) fn root(&self) -> &Utf8Path {
        match self {
            Self::Worktrees { worktrees, .. } => worktrees.root(),
            Self::Checkout(root) => root,
        }
    }
}

/// Where finished work goes.
#[derive(Clone)]
pub struct Outlet {
    /// The remote that branches are pushed to: its name in the repository, or its address.
    pub remote: String,
    /// The branch that work goes into.
    pub base: String,
    /// Where pull requests live.
    pub forge: Arc<dyn Forge>,
    /// How work gets onto the base.
    pub landing: Landing,
}

/// How work gets onto the base.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Landing {
    /// We move the base ourselves, to the very commit that was tested.
    Ours,
    /// The forge merges; we look afterwards whether it is what was tested.
    Forge,
}

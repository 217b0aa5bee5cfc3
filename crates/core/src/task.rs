//! The unit of work.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::flow::{End, Flow};
use crate::{
    AgentName, Delivery, Feedback, Fence, FlowName, Oid, Outcome, OutcomeName, PendingSteps, RunId,
    SessionName, StateName, TaskId, Timestamp, WorkerId,
};

/// A piece of work that moves through a flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Task {
    /// Its short id.
    pub id: TaskId,
    /// The session it belongs to.
    pub session: Option<SessionName>,
    /// One line.
    pub title: String,
    /// The whole description, Markdown.
    pub body: String,
    /// What must hold when it is done.
    pub criteria: Vec<String>,
    /// How urgent it is.
    pub priority: Priority,
    /// Free labels.
    pub labels: Vec<String>,
    /// Tasks that must be done before.
    pub depends_on: Vec<TaskId>,
    /// Files that it will change, as patterns: tasks that touch the same are not worked on at once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub touches: Vec<String>,
    /// What it may cost.
    pub budget: Budget,
    /// The flow it moves through.
    pub flow: FlowName,
    /// The version of that flow that it started with, and stays with.
    pub flow_version: String,
    /// Where in the flow it is.
    pub state: StateName,
    /// Who works on it in that state; none: nobody, or only the engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentName>,
    /// Who does it, instead of the agent that its flow begins with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<AgentName>,
    /// Whether it can be worked on in that state.
    pub standing: Standing,
    /// Grows with every take-over; a write with an older one is refused.
    pub fence: Fence,
    /// The state that led here, for the way back out of a wait.
    pub came_from: Option<StateName>,
    /// Runs that used up an attempt.
    pub attempts: u32,
    /// Runs that went on where the last one stopped.
    pub continuations: u32,
    /// Times a reviewer sent it back.
    pub rejections: u32,
    /// Failures of the system in a row: they cost no attempt, but lengthen the wait.
    pub setbacks: u32,
    /// How often each limited edge was taken: `state/outcome`.
    pub edges_taken: BTreeMap<String, u32>,
    /// How its last run ended.
    pub last_outcome: Option<Outcome>,
    /// Times its worker was lost while it worked.
    #[serde(default)]
    pub losses: u32,
    /// Steps of its state that are still to be done; then its agent was done before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<PendingSteps>,
    /// What the steps did.
    #[serde(default)]
    pub delivery: Delivery,
    /// What the next run must know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<Feedback>,
    /// When it was added.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// Whether a task can be worked on in its state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Standing {
    /// It waits for nobody: the next worker may take it.
    Ready,
    /// Someone works on it.
    Claimed(Claim),
    /// It waits for something with a name.
    Waiting(Wait),
    /// It is over.
    Ended {
        /// How.
        end: End,
    },
}

/// Who works on a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Claim {
    /// The process.
    pub worker: WorkerId,
    /// The run it started for it.
    pub run: RunId,
    /// Since when.
    pub since: Timestamp,
}

/// What a task waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Wait {
    /// For what.
    pub wait_for: WaitFor,
    /// Why, in words.
    pub reason: String,
    /// When it may be tried again without anyone's doing.
    pub until: Option<Timestamp>,
}

/// The things a task can wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WaitFor {
    /// A person.
    Human,
    /// A moment, because a flow says so.
    Time,
    /// Checks on the forge.
    Ci,
    /// A failure of the system to pass, or to be mended.
    System(OutcomeName),
}

/// How urgent a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    /// Before all others.
    Urgent,
    /// Before most.
    High,
    /// As usual.
    #[default]
    Medium,
    /// When nothing else is left.
    Low,
}

impl Priority {
    /// All of them, most urgent first.
    pub const ALL: [Self; 4] = [Self::Urgent, Self::High, Self::Medium, Self::Low];

    /// Its place in the order: smaller is sooner.
    pub fn rank(self) -> i64 {
        self as i64
    }

    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Urgent => "urgent",
            Self::High => "high",
            Self::Medium => "medium",
            Self::Low => "low",
        }
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Limits; none means no limit.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Budget {
    /// In US dollars.
    pub usd: Option<f64>,
    /// In tokens, in and out.
    pub tokens: Option<u64>,
    /// In turns of the agent.
    pub turns: Option<u64>,
}

/// What it takes to add a task.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct NewTask {
    /// The session it goes to.
    pub session: Option<SessionName>,
    /// One line.
    pub title: String,
    /// The whole description.
    pub body: String,
    /// What must hold when it is done.
    pub criteria: Vec<String>,
    /// How urgent it is.
    pub priority: Priority,
    /// Free labels.
    pub labels: Vec<String>,
    /// Tasks that must be done before.
    pub depends_on: Vec<TaskId>,
    /// Files that it will change, as patterns.
    pub touches: Vec<String>,
    /// Who does it, instead of the agent that its flow begins with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<AgentName>,
    /// What it may cost.
    pub budget: Budget,
}

/// What may be changed about a task at any time; none leaves it as it is.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct TaskEdit {
    /// A new title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// A new description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// New criteria, all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub criteria: Option<Vec<String>>,
    /// A new priority.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    /// New labels, all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<Vec<String>>,
    /// New dependencies, all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depends_on: Option<Vec<TaskId>>,
    /// New patterns of files, all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub touches: Option<Vec<String>>,
    /// A new budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
}

impl Task {
    /// A new task at the start of a flow.
    pub fn new(new: NewTask, id: TaskId, flow: &Flow, at: Timestamp) -> Self {
        Self {
            id,
            session: new.session,
            title: new.title,
            body: new.body,
            criteria: new.criteria,
            priority: new.priority,
            labels: new.labels,
            depends_on: new.depends_on,
            touches: new.touches,
            budget: new.budget,
            flow: flow.name.clone(),
            flow_version: flow.version.clone(),
            state: flow.start.clone(),
            agent: flow.agent_for(&flow.start, new.author.as_ref()).cloned(),
            author: new.author,
            standing: flow.standing_in(&flow.start),
            fence: Fence::default(),
            came_from: None,
            attempts: 0,
            continuations: 0,
            rejections: 0,
            setbacks: 0,
            edges_taken: BTreeMap::new(),
            last_outcome: None,
            losses: 0,
            pending: flow.steps_alone(&flow.start),
            delivery: Delivery::default(),
            feedback: None,
            created_at: at,
            updated_at: at,
        }
    }

    /// Whether nothing more will happen to it by itself.
    pub fn is_ended(&self) -> bool {
        matches!(self.standing, Standing::Ended { .. })
    }

    /// The agent that has to work on it next; none while only steps are left to do.
    pub fn next_agent(&self) -> Option<&AgentName> {
        self.agent.as_ref().filter(|_| self.pending.is_none())
    }

    /// The branch that its work goes to.
    pub fn branch(&self) -> String {
        self.delivery.branch.clone().unwrap_or_else(|| format!("rehearsal/{}", self.id))
    }

    /// The newest commit of its work in its state, as far as the steps that are done have told.
    pub fn newest_commit(&self, flow: &Flow) -> Option<&Oid> {
        let done = self.pending.as_ref()?.next as usize;
        let is_told = flow.steps_of(&self.state).iter().take(done).any(|step| step.spec().reports_head);
        self.delivery.head.as_ref().filter(|_| is_told)
    }

    /// Whether its next run goes on where the last one stopped.
    pub fn is_to_be_continued(&self) -> bool {
        matches!(self.last_outcome, Some(Outcome::NeedsContinuation { .. })) && self.pending.is_none()
    }

    /// Whether it ended well.
    pub fn is_done(&self) -> bool {
        matches!(self.standing, Standing::Ended { end: End::Success })
    }

    /// The words of [`Task::status`] that are no state of a flow.
    pub const STATUSES: [&str; 5] = ["working", "blocked", "waiting", "needs_continuation", "cancelled"];

    /// The word that listings show for where it is.
    pub fn status(&self) -> &str {
        match &self.standing {
            Standing::Claimed(_) => "working",
            Standing::Ended { end: End::Cancelled } => "cancelled",
            Standing::Waiting(Wait { wait_for: WaitFor::Human, .. }) => "blocked",
            Standing::Waiting(_) => "waiting",
            Standing::Ready if self.is_to_be_continued() => "needs_continuation",
            Standing::Ready | Standing::Ended { .. } => self.state.as_str(),
        }
    }
}

//! One execution of an agent for a task.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    AgentName, Commit, Denial, Exit, Fence, Notice, Outcome, Promise, RunId, SessionName, TaskId, Timestamp,
    Tokens, Verdict, WorkerId,
};

/// One attempt: what began it and, once over, how it ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Run {
    /// How it began.
    #[serde(flatten)]
    pub start: RunStart,
    /// How it ended; none while it runs, or if its worker died.
    pub end: Option<RunEnd>,
}

/// How a run began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunStart {
    /// Its short id; also the name of its directory.
    pub id: RunId,
    /// The task it is for.
    pub task: TaskId,
    /// The session of that task.
    pub session: Option<SessionName>,
    /// The fence of the claim.
    pub fence: Fence,
    /// The agent.
    pub agent: AgentName,
    /// Which driver runs it.
    pub driver: String,
    /// The model that was asked for.
    pub model: Option<String>,
    /// The process that started it.
    pub worker: WorkerId,
    /// Which iteration of the loop it was.
    pub iteration: u32,
    /// When.
    pub started_at: Timestamp,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunEnd {
    /// The outcome and the evidence for it.
    pub verdict: Verdict,
    /// How the process ended.
    pub exit: Option<Exit>,
    /// The signal in its final text.
    pub promise: Option<Promise>,
    /// What it cost; none is unknown, not zero.
    pub cost_usd: Option<f64>,
    /// Tokens used; none is unknown.
    pub tokens: Option<Tokens>,
    /// Turns taken.
    pub turns: Option<u64>,
    /// The agent's own session.
    pub agent_session: Option<String>,
    /// Commits it made.
    pub commits: Vec<Commit>,
    /// Files that differ.
    pub files_changed: Vec<String>,
    /// What it said last: its beginning and its end, where it is long. Tasks that depend on this one are told it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub said: String,
    /// The model that answered, if the agent reported it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Tool calls that its permission rules refused; the first few.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denials: Vec<Denial>,
    /// Tries it took, when transient failures were tried again.
    pub tries: u32,
    /// What a person should know of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
    /// When it was over.
    pub ended_at: Timestamp,
    /// How long it took, on a clock that nobody sets; none if the worker that started it died.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_ms: Option<u64>,
}

impl RunEnd {
    /// The end of a run that tells nothing about its task: it costs nothing, and what is in the tree stays there.
    pub fn without_blame(because: String, ended_at: Timestamp) -> Self {
        Self {
            verdict: Verdict { outcome: Outcome::Cancelled, because: vec![because] },
            exit: None,
            promise: None,
            cost_usd: None,
            tokens: None,
            turns: None,
            agent_session: None,
            commits: Vec::new(),
            files_changed: Vec::new(),
            said: String::new(),
            model: None,
            denials: Vec::new(),
            tries: 1,
            notices: Vec::new(),
            ended_at,
            took_ms: None,
        }
    }

    /// How long the run took that began then. The times of day are the second choice: somebody may have set the clock.
    pub fn took(&self, started_at: Timestamp) -> Duration {
        self.took_ms.map_or_else(|| self.ended_at.since(started_at), Duration::from_millis)
    }
}

impl Run {
    /// Its outcome, once it has one.
    pub fn outcome(&self) -> Option<&Outcome> {
        self.end.as_ref().map(|end| &end.verdict.outcome)
    }
}

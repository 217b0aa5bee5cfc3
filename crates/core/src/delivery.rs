//! How far a task's work has come on its way out: what the steps did, and what they said.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::flow::EdgeName;
use crate::{Oid, Outcome, OutcomeName, RunId, Timestamp};

/// What lasting effects a task's work has outside. Each is proof that a step was done; a step compares these with
/// the world, never mere existence.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Delivery {
    /// The branch on the remote.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The commit of the base that the work stands on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<Oid>,
    /// The newest commit of the work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head: Option<Oid>,
    /// What the remote's branch was last moved to by us.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pushed: Option<Oid>,
    /// Commits that it may have been moved to since: each was about to be, and nobody came to say what became of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub offered: Vec<Oid>,
    /// The tree that passed the tests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tested_tree: Option<Oid>,
    /// The pull request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pull_request: Option<PullRequestRef>,
    /// The commit of the base that has the work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merged: Option<Oid>,
    /// Whether the base moved in a way that the work does not fit.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub needs_rebase: bool,
}

impl Delivery {
    /// Whether the remote's branch can stand at this commit by our doing.
    pub fn may_have_pushed(&self, commit: &Oid) -> bool {
        self.pushed.as_ref() == Some(commit) || self.offered.contains(commit)
    }
}

/// Which pull request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PullRequestRef {
    /// Its number.
    pub number: u64,
    /// Where to look at it.
    pub url: String,
}

/// Steps of a state that are still to be done, after its agent was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PendingSteps {
    /// How the agent's run ended: the edge to take when all steps are done.
    pub outcome: Outcome,
    /// The run of the agent; none where no agent works first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// The next one, counted from 0.
    pub next: u32,
    /// How often it was tried in vain, through no fault of the task.
    pub tries: u32,
}

/// Something that the next run of an agent must know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Feedback {
    /// Who says it: a step's name, `review`, or a person who answered.
    pub from: String,
    /// What.
    pub text: String,
}

impl Feedback {
    /// Who says an answer, as prompts show it.
    const PERSON: &str = "a person";

    /// A person's answer to what a task waited for.
    pub fn answer(text: &str) -> Self {
        Self { from: Self::PERSON.to_owned(), text: text.trim().to_owned() }
    }

    /// Whether it is such an answer.
    pub fn is_answer(&self) -> bool {
        self.from == Self::PERSON
    }
}

/// Why a step is not done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum StepFailure {
    /// Its verdict is red: the flow has an edge for it.
    Red {
        /// Which edge.
        verdict: RedVerdict,
        /// What is wrong; goes into the next prompt.
        reason: String,
    },
    /// What it waits for is not decided yet.
    Pending {
        /// What it waits for.
        reason: String,
        /// When to look again.
        until: Timestamp,
    },
    /// Something that passes: a lost connection, a busy server. The same step is tried again later.
    Transient {
        /// What happened.
        reason: String,
    },
    /// Something that stands in everyone's way until a hand mends it: credentials, disk, a missing program.
    Systemic {
        /// What it is.
        outcome: OutcomeName,
        /// What happened.
        reason: String,
    },
    /// Nobody can know whether it took effect. Never guessed: a human looks.
    Unknown {
        /// The evidence.
        reason: String,
    },
}

impl StepFailure {
    /// What happened, in words.
    pub fn reason(&self) -> &str {
        match self {
            Self::Red { reason, .. }
            | Self::Pending { reason, .. }
            | Self::Transient { reason }
            | Self::Systemic { reason, .. }
            | Self::Unknown { reason } => reason,
        }
    }
}

/// A gate's red verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RedVerdict {
    /// Tests failed.
    TestsFailed,
    /// The change is to be reviewed.
    NeedsReview,
    /// The work does not fit its base.
    Conflict,
    /// The forge's checks failed.
    CiFailed,
    /// The merge was refused.
    MergeFailed,
    /// A command failed.
    CommandFailed,
    /// There is nothing that could go out.
    NoChanges,
}

impl RedVerdict {
    /// The edge it takes.
    pub const fn edge(self) -> EdgeName {
        match self {
            Self::TestsFailed => EdgeName::TestsFailed,
            Self::NeedsReview => EdgeName::NeedsReview,
            Self::Conflict => EdgeName::Conflict,
            Self::CiFailed => EdgeName::CiFailed,
            Self::MergeFailed => EdgeName::MergeFailed,
            Self::CommandFailed => EdgeName::CommandFailed,
            Self::NoChanges => EdgeName::Outcome(OutcomeName::NoChanges),
        }
    }
}

impl fmt::Display for RedVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.edge().as_str())
    }
}

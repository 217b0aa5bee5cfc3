//! Steps: what the engine does between an agent's work and the next state.

use std::fmt;

use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::EdgeName;
use crate::config::HumanDuration;

/// An action of the engine between states.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Puts the work on top of its base.
    Rebase,
    /// Runs the repository's tests.
    RunTests,
    /// Looks whether the change needs a review.
    Assess,
    /// Commits what the agent left uncommitted.
    CommitLeftovers,
    /// Pushes the work to its branch on the remote.
    PushBranch,
    /// Opens a pull request, or finds the one that is open.
    CreatePr,
    /// Asks whether the work still fits its base.
    CheckConflicts,
    /// Asks how the forge's checks of the pushed commit went.
    CheckCi,
    /// Writes this text under the pull request.
    PostComment(String),
    /// Merges the pull request, after the gate ran on the merged tree.
    MergePr,
    /// Lets so much time pass.
    Pause(HumanDuration),
    /// Runs this command in the worktree.
    Command(String),
}

impl Step {
    /// The steps that need nothing but their name.
    pub const PLAIN: [Self; 9] = [
        Self::Rebase,
        Self::RunTests,
        Self::Assess,
        Self::CommitLeftovers,
        Self::PushBranch,
        Self::CreatePr,
        Self::CheckConflicts,
        Self::CheckCi,
        Self::MergePr,
    ];

    /// Every name that a flow may write.
    pub const NAMES: [&str; 12] = [
        "rebase",
        "run_tests",
        "assess",
        "commit_leftovers",
        "push_branch",
        "create_pr",
        "check_conflicts",
        "check_ci",
        "post_comment",
        "merge_pr",
        "pause",
        "command",
    ];

    /// The name as flows write it.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Rebase => "rebase",
            Self::RunTests => "run_tests",
            Self::Assess => "assess",
            Self::CommitLeftovers => "commit_leftovers",
            Self::PushBranch => "push_branch",
            Self::CreatePr => "create_pr",
            Self::CheckConflicts => "check_conflicts",
            Self::CheckCi => "check_ci",
            Self::PostComment(_) => "post_comment",
            Self::MergePr => "merge_pr",
            Self::Pause(_) => "pause",
            Self::Command(_) => "command",
        }
    }

    /// Whether it tells which commit is the newest of the work.
    pub const fn tells_head(&self) -> bool {
        matches!(self, Self::CommitLeftovers | Self::Rebase | Self::PushBranch)
    }

    /// The edge that its red verdict takes; none if it can only fail through the system.
    pub const fn needs_edge(&self) -> Option<EdgeName> {
        match self {
            Self::Rebase | Self::CheckConflicts => Some(EdgeName::Conflict),
            Self::RunTests => Some(EdgeName::TestsFailed),
            Self::Assess => Some(EdgeName::NeedsReview),
            Self::CheckCi => Some(EdgeName::CiFailed),
            Self::MergePr => Some(EdgeName::MergeFailed),
            Self::Command(_) => Some(EdgeName::CommandFailed),
            Self::CommitLeftovers
            | Self::PushBranch
            | Self::CreatePr
            | Self::PostComment(_)
            | Self::Pause(_) => None,
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A step as it is written: a name, or a name with its text.
pub(super) struct StepFile {
    pub(super) name: String,
    pub(super) text: Option<String>,
}

impl<'de> Deserialize<'de> for StepFile {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct StepVisitor;
        impl<'de> Visitor<'de> for StepVisitor {
            type Value = StepFile;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a step's name, or `{ command: COMMAND }`")
            }
            fn visit_str<E: de::Error>(self, name: &str) -> Result<StepFile, E> {
                Ok(StepFile { name: name.to_owned(), text: None })
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<StepFile, A::Error> {
                let entry: Option<(String, String)> = map.next_entry()?;
                let (name, text) = entry.ok_or_else(|| de::Error::custom("an empty step"))?;
                if map.next_key::<String>()?.is_some() {
                    return Err(de::Error::custom("a step has one name; write each in a line of its own"));
                }
                Ok(StepFile { name, text: Some(text) })
            }
        }
        input.deserialize_any(StepVisitor)
    }
}

//! What one trial did, said and changed: all that an assertion can be about.

use std::collections::BTreeMap;

use rehearsal_core::{Outcome, TestStatus, Timestamp, Tokens};
use serde::{Deserialize, Serialize};

/// Which trial of which case.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrialId {
    /// The case.
    pub case: String,
    /// Who was measured on it.
    pub variant: Variant,
    /// Counted from 1.
    pub trial: u32,
}

/// Who is measured: one point of the matrix.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Variant {
    /// The agent.
    pub agent: String,
    /// Its model, if the eval says which.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The name of the prompt, if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// The flow, if it is more than one run of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
}

impl std::fmt::Display for Variant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.agent)?;
        for part in [&self.model, &self.prompt, &self.flow].into_iter().flatten() {
            write!(f, " · {part}")?;
        }
        Ok(())
    }
}

/// Where the model's answers came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Source {
    /// The agent is a stand-in, or its model is.
    Scripted,
    /// From a recording. Trials on the same tape are one sample, however many they are.
    Replayed {
        /// Which one: the hash of its content.
        tape: String,
    },
    /// From the vendor, for money.
    Live,
}

/// One trial, when it is over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Trial {
    /// Which one.
    pub id: TrialId,
    /// Where the answers came from.
    pub source: Source,
    /// When it began.
    pub began: Timestamp,
    /// How long it took.
    pub duration_ms: u64,
    /// How the agent's run ended.
    pub outcome: Outcome,
    /// What the agent said at the end.
    pub output: String,
    /// What it did, in order.
    pub steps: Vec<Step>,
    /// The files that are another now.
    pub changes: Vec<FileChange>,
    /// The difference, as git tells it, cut if it is very long.
    pub diff: String,
    /// The subjects of its commits, oldest first.
    pub commits: Vec<String>,
    /// Whether something is left that is not committed.
    pub uncommitted: bool,
    /// The pull request that came of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_request: Option<PullRequest>,
    /// The calls of `gh`, a line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gh_calls: Vec<String>,
    /// The tests before and after, by name, where an assertion asks for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<Tested>,
    /// The commands that assertions ran afterwards, by command line.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub commands: BTreeMap<String, CommandEnd>,
    /// What judges said, by rubric.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub judged: BTreeMap<String, Vec<Vote>>,
    /// Tokens of those judges, if they were told. They are none of the agent's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge_tokens: Option<Tokens>,
    /// Tokens, if they were told.
    pub tokens: Option<Tokens>,
    /// Dollars, if they were told.
    pub cost_usd: Option<f64>,
    /// Turns, if they were told.
    pub turns: Option<u64>,
    /// How the replay went, if it was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<Replay>,
}

impl Trial {
    /// One in which nothing was said, done or changed.
    pub fn blank(id: TrialId, source: Source, began: Timestamp) -> Self {
        Self {
            id,
            source,
            began,
            duration_ms: 0,
            outcome: Outcome::NoChanges,
            output: String::new(),
            steps: Vec::new(),
            changes: Vec::new(),
            diff: String::new(),
            commits: Vec::new(),
            uncommitted: false,
            pull_request: None,
            gh_calls: Vec::new(),
            tests: None,
            commands: BTreeMap::new(),
            judged: BTreeMap::new(),
            judge_tokens: None,
            tokens: None,
            cost_usd: None,
            turns: None,
            replay: None,
        }
    }
}

/// One thing that an agent did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "step", rename_all = "snake_case")]
pub enum Step {
    /// An agent of a flow or a plan began.
    Agent {
        /// Its name.
        name: String,
    },
    /// A tool was called.
    Tool {
        /// Its name.
        tool: String,
        /// What it was called with: JSON where the agent tells it, else a line.
        arguments: String,
        /// What kind of thing it is.
        does: Doing,
        /// Whether it failed, where that is told.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        is_error: Option<bool>,
    },
    /// It said something.
    Text {
        /// What, cut if it is long.
        text: String,
    },
}

/// Longer texts and arguments of tools are cut.
const LONGEST_STEP: usize = 4 << 10;

/// As much of a text as a step tells.
pub fn shortened(mut text: String) -> String {
    if text.len() > LONGEST_STEP {
        text.truncate(text.floor_char_boundary(LONGEST_STEP));
        text.push('…');
    }
    text
}

/// What kind of thing a tool does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Doing {
    /// It looks at files.
    Read,
    /// It changes files.
    Edit,
    /// It runs the tests.
    Test,
    /// It runs something else.
    Run,
    /// Anything else.
    Other,
}

/// What became of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileChange {
    /// Below the repository's root.
    pub path: String,
    /// What was done to it.
    pub kind: ChangeKind,
}

/// What was done to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// It is new.
    Created,
    /// It is another.
    Modified,
    /// It is gone.
    Deleted,
}

/// A pull request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PullRequest {
    /// Its title.
    pub title: String,
    /// Whether it was merged.
    pub merged: bool,
}

/// The tests before and after a trial, by name.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Tested {
    /// In the repository as it was given.
    pub before: BTreeMap<String, TestStatus>,
    /// In what the agent left.
    pub after: BTreeMap<String, TestStatus>,
}

/// How a command ended that an assertion ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CommandEnd {
    /// Its exit status; none if it could not be run or was ended.
    pub code: Option<i32>,
    /// The end of what it printed.
    pub output: String,
}

/// What one judge said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "vote", rename_all = "snake_case")]
pub enum Vote {
    /// It is so.
    Pass {
        /// Why.
        reason: String,
    },
    /// It is not.
    Fail {
        /// Why.
        reason: String,
    },
    /// It cannot be read.
    Unreadable {
        /// What was wrong with it.
        reason: String,
    },
}

/// How a replay went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Replay {
    /// Whether all was asked as it was recorded, and all was played.
    pub exact: bool,
    /// What was not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<String>,
    /// Requests that were not recorded, and were refused.
    #[serde(default)]
    pub missed: u64,
}

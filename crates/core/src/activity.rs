//! What an agent does while it runs, and what its structured output said at the end: one vocabulary for all
//! drivers. A vendor's format is parsed once, at the edge, into these types.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// One thing an agent did, as it happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Activity {
    /// The agent's own session began.
    Started {
        /// Its id at the vendor, for a later resume.
        session_id: Option<String>,
        /// The model it says it uses.
        model: Option<String>,
    },
    /// It asks its model once more.
    Turn {
        /// Which time it is, counted from 1.
        number: u64,
    },
    /// It wrote text for people.
    Text {
        /// The text, cut if very long.
        text: String,
    },
    /// It called a tool.
    ToolCalled {
        /// The tool's name.
        tool: String,
        /// What for, in one line: a path, a command.
        detail: String,
        /// With what, as JSON, where the agent tells it; long texts in it are cut, and run logs leave it out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arguments: Option<String>,
    },
    /// A tool came back.
    ToolReturned {
        /// The tool's name, where the format repeats it.
        tool: String,
        /// Whether the tool failed.
        is_error: bool,
    },
    /// It tries a request again by itself.
    Retrying {
        /// What it says about it.
        message: String,
    },
    /// Tokens used so far in this run.
    Usage {
        /// The count.
        tokens: Tokens,
        /// The cost so far, where the agent tells it.
        cost_usd: Option<f64>,
    },
    /// Something in its output that could not be understood; the raw bytes are in the run's log.
    Unreadable {
        /// What was wrong with it.
        reason: String,
    },
}

/// A line of a run's log: what the agent did, and when we heard of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ActivityLine {
    /// When; none in logs of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// What.
    #[serde(flatten)]
    pub activity: Activity,
}

/// Tokens of a run. Unknown is not zero: a driver that is told nothing leaves the whole thing out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Tokens {
    /// Sent to the model, cached ones included.
    pub input: u64,
    /// Of those, read from a cache.
    pub cached: u64,
    /// Made by the model.
    pub output: u64,
}

impl Tokens {
    /// All of them.
    pub fn total(self) -> u64 {
        self.input + self.output
    }
}

impl std::ops::AddAssign for Tokens {
    fn add_assign(&mut self, other: Self) {
        self.input += other.input;
        self.cached += other.cached;
        self.output += other.output;
    }
}

/// A tool call that the agent's own permission rules refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Denial {
    /// The tool.
    pub tool: String,
    /// What it was to do, in one line.
    pub detail: String,
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// About a line of a terminal.
        const MOST: usize = 80;
        write!(f, "`{}` was denied", self.tool)?;
        let detail = self.detail.trim();
        match detail.char_indices().nth(MOST) {
            _ if detail.is_empty() => Ok(()),
            Some((end, _)) => write!(f, " ({}…)", &detail[..end]),
            None => write!(f, " ({detail})"),
        }
    }
}

/// What an agent's whole output said, once it ended.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WireReport {
    /// The agent's own session, for a later resume.
    pub session_id: Option<String>,
    /// The model that answered.
    pub model: Option<String>,
    /// Turns taken.
    pub turns: Option<u64>,
    /// Time it says it took.
    pub duration_ms: Option<u64>,
    /// What it cost.
    pub cost_usd: Option<f64>,
    /// Tokens used.
    pub tokens: Option<Tokens>,
    /// Tool calls that were refused.
    pub denials: Vec<Denial>,
    /// The final text. Signals are looked for here and nowhere else.
    pub final_text: String,
    /// What form the output had.
    pub shape: WireShape,
    /// The structured end, if there was one.
    pub end: Option<WireEnd>,
    /// What it was trying again when its output ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retrying: Option<WireError>,
    /// The line of plain text, mostly on standard error, with which a program that failed says why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complaint: Option<String>,
}

/// What form an agent's output had.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WireShape {
    /// Not one byte, from an agent that always says something.
    #[default]
    Empty,
    /// The structured format that was asked for.
    Structured,
    /// Plain text from an agent that was asked for structure.
    PlainText,
    /// From an agent that has no structured format: any program.
    Unstructured,
    /// It began as the structured format and broke it.
    Broken {
        /// Where and how.
        reason: String,
    },
}

/// The structured end of an agent's output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WireEnd {
    /// It says that it ended well.
    Success,
    /// Its turn limit.
    MaxTurns,
    /// Its budget limit.
    BudgetReached,
    /// Its own time limit.
    TimedOut {
        /// After how long.
        after_ms: u64,
    },
    /// An error.
    Error(WireError),
}

/// An error that an agent reported in structure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WireError {
    /// What kind it is.
    pub kind: WireErrorKind,
    /// The HTTP status behind it, if told.
    pub status: Option<u16>,
    /// What it says.
    pub message: String,
}

/// The kinds of errors that make a difference to what is done next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WireErrorKind {
    /// No key, a wrong one, or one without the right.
    Auth,
    /// Too many requests.
    RateLimit {
        /// When it may go on.
        until: Option<Timestamp>,
    },
    /// The quota or the credit is used up.
    Quota {
        /// When it is filled again.
        until: Option<Timestamp>,
    },
    /// The vendor's servers fail or cannot keep up (5xx).
    Overloaded,
    /// The network or the address does not work.
    Unreachable,
    /// The answer of the server could not be understood.
    BadAnswer,
    /// The agent is not allowed to work here.
    Permission,
    /// The sandbox that it was told to use does not work here.
    Sandbox,
    /// It was interrupted from outside.
    Interrupted,
    /// The request itself was refused, or anything else.
    Other,
}

impl WireErrorKind {
    /// The kind that an HTTP status of a model's API stands for. 402 is what vendors answer when credit is gone.
    pub fn of_status(status: u16) -> Self {
        match status {
            401 | 403 => Self::Auth,
            402 => Self::Quota { until: None },
            408 => Self::Unreachable,
            429 => Self::RateLimit { until: None },
            500..=599 => Self::Overloaded,
            _ => Self::Other,
        }
    }
}

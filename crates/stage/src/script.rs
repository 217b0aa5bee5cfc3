//! The script: what is played, as people write it.

mod file;
mod read;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use regex::Regex;
use rehearsal_core::{Place, SourceError};
use rehearsal_llm::chat::{FinishReason, Usage};

pub use self::file::StageScriptFile;
pub(crate) use self::file::{ActionFile, ToolFile};
use crate::template::Template;

/// A script that was read and checked.
#[derive(Debug)]
pub struct Script {
    pub(crate) seed: u64,
    pub(crate) pace: Pace,
    pub(crate) lint: LintPolicy,
    pub(crate) models: Vec<String>,
    pub(crate) vars: BTreeMap<String, String>,
    pub(crate) turns: Vec<Turn>,
}

impl Script {
    /// Reads a script.
    pub fn parse(text: &str) -> Result<Self, SourceError> {
        read::parse(text)
    }

    /// How many turns it has.
    pub fn turns(&self) -> usize {
        self.turns.len()
    }
}

/// How fast an answer comes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Pace {
    Instant,
    Profile {
        first: Duration,
        per_second: f64,
        /// By how much of itself a pause may differ.
        jitter: f64,
    },
}

/// What becomes of a request that no vendor would take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(crate) enum LintPolicy {
    /// It is answered, and told at the end.
    #[default]
    Report,
    /// It is refused, as the vendor would.
    Refuse,
}

/// The answer to one request.
#[derive(Debug)]
pub(crate) struct Turn {
    /// Where it is written.
    pub(crate) place: Option<Place>,
    pub(crate) name: Option<String>,
    /// Which requests it may answer.
    pub(crate) when: Condition,
    /// What must hold of the request that it answers.
    pub(crate) expect: Condition,
    pub(crate) captures: Vec<(String, Regex)>,
    pub(crate) think: Option<Template>,
    pub(crate) say: Option<Template>,
    pub(crate) actions: Vec<ActionFile>,
    pub(crate) finish: Option<FinishReason>,
    pub(crate) usage: Option<Usage>,
    pub(crate) fault: Option<Fault>,
    pub(crate) times: Times,
}

/// How many requests a turn answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Times {
    Exactly(u64),
    /// Any number, none included.
    Any,
}

/// What may be asked of a request. All of it must hold.
#[derive(Debug, Default)]
pub(crate) struct Condition {
    pub(crate) contains: Option<String>,
    pub(crate) matches: Option<Regex>,
    pub(crate) result: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) lane: Option<String>,
    pub(crate) tools: Vec<String>,
}

/// What goes wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The vendor answers an error.
    Status { code: u16, retry_after: Option<Duration>, retry: Option<bool>, message: Option<String> },
    /// The connection ends after so many frames.
    Cut(usize),
    /// Nothing more comes after so many frames.
    HangAfter(usize),
    /// No answer at all.
    Hang,
    /// Nothing comes for a while after so many frames.
    Stall { after: usize, time: Duration },
    /// The frame after so many is no JSON.
    Malformed(usize),
    /// The first frame takes so long.
    FirstToken(Duration),
}

//! What is asserted of a trial: the words that people write, and what they mean.
//!
//! An assertion is written as `{ type: NAME, value: … }`. A name in front of which `not-` stands means the opposite; `_` and `-` are
//! the same in names.

mod read;
mod value;

use globset::GlobSet;
use regex::Regex;
use serde::Deserialize;
use serde_json::Value;

pub use read::{NAMES, check_of};

use crate::trial::Doing;

/// An assertion as people write it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AssertionFile {
    /// What is asserted, with `not-` in front for its opposite.
    #[serde(rename = "type")]
    pub kind: String,
    /// What it is compared with; each type says what it takes.
    #[serde(default)]
    pub value: Value,
    /// How much it counts.
    #[serde(default = "one")]
    pub weight: f64,
    /// For a type that gives a score, or for a limit: from where on it holds.
    #[serde(default)]
    pub threshold: Option<f64>,
    /// How it is called in reports, if not by what it says.
    #[serde(default)]
    pub metric: Option<String>,
}

fn one() -> f64 {
    1.0
}

/// An assertion that was understood.
#[derive(Debug, Clone)]
pub struct Assertion {
    /// How it is called in reports.
    pub name: String,
    /// Whether the opposite is meant.
    pub negated: bool,
    /// How much it counts.
    pub weight: f64,
    /// What is asserted.
    pub check: Check,
}

impl Assertion {
    /// Whether a model has to say whether it holds.
    pub fn is_judged(&self) -> bool {
        matches!(self.check, Check::Rubric { .. })
    }

    /// Whether it is about a repository: what is in it afterwards, or how it came there.
    pub fn needs_repository(&self) -> bool {
        let how = matches!(self.check, Check::Git { .. } | Check::PullRequest { .. } | Check::GhCalled(_));
        how || self.is_of_repository()
    }

    /// Whether it is about what is in the repository afterwards, whoever did it.
    pub fn is_of_repository(&self) -> bool {
        matches!(
            self.check,
            Check::FilesModified(_)
                | Check::FilesCreated(_)
                | Check::Untouched(_)
                | Check::DiffScope(_)
                | Check::DiffMatches(_)
                | Check::Command { .. }
                | Check::Tests { .. }
        )
    }
}

/// What can be asserted.
#[derive(Debug, Clone)]
pub enum Check {
    /// The final text contains all (or any) of these.
    Contains {
        /// What.
        texts: Vec<String>,
        /// One is enough.
        any: bool,
        /// Capital and small letters are the same.
        ignore_case: bool,
    },
    /// The final text is this.
    Equals(String),
    /// The final text begins with this.
    StartsWith(String),
    /// The final text matches.
    Matches(Regex),
    /// The final text is JSON, and conforms.
    IsJson(Option<Value>),
    /// The final text tells of no error, and the run had none.
    NoErrors,
    /// These agents worked, in any order.
    AgentsWorked(Vec<String>),
    /// A tool was used so often.
    ToolUsed {
        /// Which, as a pattern.
        tools: GlobSet,
        /// As it was written.
        written: String,
        /// How often.
        times: Range,
    },
    /// A tool was called with arguments that contain these.
    ToolArguments {
        /// Which.
        tool: String,
        /// What must be in them.
        contain: Value,
    },
    /// These tools were called in this order, others in between allowed unless it is exact.
    ToolSequence {
        /// Which.
        tools: Vec<String>,
        /// Nothing else.
        exact: bool,
    },
    /// The number of steps.
    Steps(Range),
    /// The number of files that are another now.
    FilesModified(Range),
    /// Each of these patterns has a new file.
    FilesCreated(Vec<Pattern>),
    /// No file of these patterns is another.
    Untouched(Patterns),
    /// All that is another is within these.
    DiffScope(Patterns),
    /// The difference matches.
    DiffMatches(Regex),
    /// A command ends so in what the agent left.
    Command {
        /// The command line, for `sh`.
        command: String,
        /// The exit status.
        code: i32,
    },
    /// Tests that failed before and must pass now, and tests that passed before and must still.
    Tests {
        /// Names.
        fail_to_pass: Vec<String>,
        /// Names.
        pass_to_pass: Vec<String>,
        /// Nothing that passed before may fail.
        keep_all: bool,
    },
    /// Facts of git.
    Git {
        /// How many commits.
        commits: Option<Range>,
        /// Nothing is left uncommitted.
        clean: bool,
        /// Each subject matches.
        subject: Option<Regex>,
    },
    /// There is a pull request.
    PullRequest {
        /// It was merged.
        merged: Option<bool>,
        /// Its title matches.
        title: Option<Regex>,
    },
    /// A call of `gh` matches.
    GhCalled(Regex),
    /// After the last step of the first kind comes one of the second.
    StepOrder {
        /// What may not come last.
        after: Doing,
        /// What must follow it.
        comes: Doing,
    },
    /// No call is made so often in a row.
    NoLoops(u64),
    /// At most so many tokens.
    Tokens(u64),
    /// At most so many turns.
    Turns(u64),
    /// At most so long.
    LatencyMs(u64),
    /// At most so many dollars.
    CostUsd(f64),
    /// The replay was exact.
    ReplayExact,
    /// A judge says so.
    Rubric {
        /// What it is asked.
        rubric: String,
        /// How many judges.
        votes: u32,
    },
}

/// How many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// At least.
    pub min: u64,
    /// At most.
    pub max: u64,
}

impl Range {
    /// Whether a number is in it.
    pub fn contains(self, number: u64) -> bool {
        (self.min..=self.max).contains(&number)
    }
}

impl std::fmt::Display for Range {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.min, self.max) {
            (min, max) if min == max => write!(f, "{min}"),
            (min, u64::MAX) => write!(f, "{min} or more"),
            (0, max) => write!(f, "at most {max}"),
            (min, max) => write!(f, "{min} to {max}"),
        }
    }
}

/// A pattern of paths, as it was written and as it is matched.
#[derive(Debug, Clone)]
pub struct Pattern {
    /// As it was written.
    pub written: String,
    /// As it is matched.
    pub glob: globset::GlobMatcher,
}

/// Several of them.
#[derive(Debug, Clone)]
pub struct Patterns(pub Vec<Pattern>);

impl Patterns {
    /// Whether a path fits one of them.
    pub fn take(&self, path: &str) -> bool {
        self.0.iter().any(|pattern| pattern.glob.is_match(path))
    }
}

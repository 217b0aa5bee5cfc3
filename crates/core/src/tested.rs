//! Runs of a repository's tests, as they are remembered.

use serde::{Deserialize, Serialize};

use crate::{Oid, RunId, Timestamp};

/// How a test ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TestStatus {
    /// Good.
    #[default]
    Pass,
    /// An assertion, or its own time limit.
    Fail,
    /// It could not be carried out: its set-up or its clean-up failed.
    Error,
    /// Left out on purpose, or only planned (todo).
    Skip,
    /// It failed, and was declared to.
    Xfail,
    /// It failed and then passed, with nothing changed between.
    Flaky,
    /// It was running when the whole run was stopped from outside: time limit, kill, cancel.
    Timeout,
    /// The process died while it ran.
    Crash,
    /// It was to run and never began.
    NotRun,
}

impl TestStatus {
    /// Whether it counts as failed.
    pub const fn is_failure(self) -> bool {
        matches!(self, Self::Fail | Self::Error | Self::Crash)
    }
}

/// One run of the tests of one project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TestRun {
    /// Its id.
    pub id: RunId,
    /// When it began.
    pub at: Timestamp,
    /// The project's directory in the repository; empty for its root.
    pub root: String,
    /// The runner.
    pub framework: String,
    /// A hash of every file of the repository that git knows or would add; none outside of git.
    pub tree: Option<String>,
    /// The commit that was checked out.
    pub commit: Option<Oid>,
    /// Whether all tests were asked for, and not a selection.
    pub whole: bool,
    /// The verdict's name.
    pub verdict: String,
    /// In milliseconds.
    pub duration: u64,
    /// How many tests.
    pub total: u64,
    /// How many of them failed.
    pub failed: u64,
    /// If the whole project passed, on files that stayed as they are, a hash of all else that it ran with: with the same
    /// files and the same hash it need not be run again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passed_with: Option<String>,
}

/// One test in such a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TestResult {
    /// What its name is unique in.
    pub package: String,
    /// Its name.
    pub name: String,
    /// How it ended.
    pub status: TestStatus,
    /// In milliseconds.
    pub duration: u64,
}

//! What a parser says while it reads: the one vocabulary of all formats.
//!
//! Events borrow from the parser's buffers, so that a million of them cost no allocation; who wants to keep
//! one copies it.

use serde::{Deserialize, Serialize};

use crate::{FailureKind, TestStatus};

/// A test within its run. Two tests with the same suite and name are attempts of one test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TestId<'a> {
    /// The package, class or file that its name is unique in; empty if the format has none.
    pub suite: &'a str,
    /// The name, as its runner prints it.
    pub name: &'a str,
}

/// One thing that a runner's output says.
#[derive(Debug, Clone)]
pub enum Event<'a> {
    /// The runner tells its version.
    Version(&'a str),
    /// So many (more) tests are going to run.
    Declared(u64),
    /// A suite begins. It is running until it ends, and is named if the run dies inside.
    SuiteStarted(&'a str),
    /// A suite ended, well or badly: its tests are final and can be forgotten.
    SuiteEnded(&'a str),
    /// A test begins.
    Started {
        /// Which.
        test: TestId<'a>,
        /// Where it stands in the source.
        at: Place<'a>,
    },
    /// Text that a test printed; a test that has not begun yet begins with it.
    Output {
        /// Which test printed it.
        test: TestId<'a>,
        /// With its line ends.
        text: &'a str,
    },
    /// A test ended.
    Finished(Finished<'a>),
    /// Tests that ended like this and have no name: the runner only counts them (dots, a summary).
    Counted {
        /// How they ended.
        status: TestStatus,
        /// How many.
        count: u64,
    },
    /// What began as a test only holds others that are told on their own: it is not counted.
    Container(TestId<'a>),
    /// A test that was announced by name and will never run.
    NotRun(TestId<'a>),
    /// Something is wrong outside of any single test.
    Problem(Problem),
    /// What may be the reason of a bad exit status; forgotten if the status is good.
    Hint(Problem),
    /// Counts that some line claims; believed only if the exit status says the same.
    Claimed {
        /// Good ones.
        passed: u64,
        /// Bad ones.
        failed: u64,
        /// Left out.
        skipped: u64,
    },
    /// The output does not fit together (a number twice, a plan that changed): never green.
    Complaint(&'a str),
    /// The runner came to its own end and said so: the end marker of its format.
    Ended {
        /// How many tests it says it ran, where it says so and counts as we do.
        counted: Option<u64>,
    },
}

/// The end of a test.
#[derive(Debug, Clone)]
pub struct Finished<'a> {
    /// Which.
    pub test: TestId<'a>,
    /// How it ended.
    pub status: TestStatus,
    /// In milliseconds.
    pub ms: u64,
    /// What went wrong, unless it passed; why it was skipped.
    pub failure: Option<Failure<'a>>,
    /// How this end goes together with an earlier one of the same test.
    pub attempt: Attempt,
}

impl<'a> Finished<'a> {
    /// An end with no more to say.
    pub const fn new(test: TestId<'a>, status: TestStatus, ms: u64) -> Self {
        Self { test, status, ms, failure: None, attempt: Attempt::Only }
    }

    /// With what went wrong.
    pub fn failure(mut self, failure: Failure<'a>) -> Self {
        self.failure = Some(failure);
        self
    }
}

/// How an end goes together with an earlier one of the same test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attempt {
    /// The format tells each test once: an end is final and need not be remembered.
    Only,
    /// Run several times on purpose (`-count 3`): the worst counts.
    Repeat,
    /// Run again because it failed: the last counts, and a pass after a failure is flaky.
    Retry,
}

/// Where something stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Place<'a> {
    /// As the runner printed it: absolute, or relative to where it ran.
    pub file: Option<&'a str>,
    /// Counted from 1.
    pub line: Option<u32>,
}

impl<'a> Place<'a> {
    /// A line of a file.
    pub const fn new(file: &'a str, line: u32) -> Self {
        Self { file: Some(file), line: Some(line) }
    }
}

/// What went wrong in a test.
#[derive(Debug, Clone, Default)]
pub struct Failure<'a> {
    /// The kind, if the format tells.
    pub kind: Option<FailureKind>,
    /// The message: what, not where.
    pub message: &'a str,
    /// The frames as printed.
    pub stack: &'a str,
    /// Where to look: the deepest frame inside the project, else the assertion, else the test.
    pub at: Place<'a>,
    /// What was expected.
    pub expected: Option<&'a str>,
    /// What came.
    pub actual: Option<&'a str>,
}

/// Something that is wrong outside of any single test. Rare, so it owns its texts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Problem {
    /// What it stands in the way of.
    pub scope: ProblemScope,
    /// What it is about: package, file, class, hook; empty for the run.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The kind, as far as known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<FailureKind>,
    /// What the tool said.
    pub message: String,
    /// Where to look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

impl Problem {
    pub(crate) fn new(
        scope: ProblemScope,
        name: impl Into<String>,
        kind: Option<FailureKind>,
        message: impl Into<String>,
    ) -> Self {
        Self { scope, name: name.into(), kind, message: message.into(), file: None, line: None }
    }

    pub(crate) fn at<'a>(self, place: impl Into<Option<Place<'a>>>) -> Self {
        let place = place.into().unwrap_or_default();
        self.placed(place.file.map(str::to_owned), place.line)
    }

    pub(crate) fn placed(self, file: Option<String>, line: Option<u32>) -> Self {
        Self { file, line, ..self }
    }
}

/// What a problem stands in the way of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ProblemScope {
    /// The build: no test of it could run.
    Build,
    /// Loading (collecting) a file, or setting up a class or group.
    Suite,
    /// The run as a whole.
    Run,
}

/// Takes what a parser says.
pub trait Sink {
    /// Takes one event.
    fn event(&mut self, event: Event<'_>);
}

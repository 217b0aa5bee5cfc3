//! What came of a check.

use serde::{Deserialize, Serialize};

use crate::analyse::FailureGroup;
use crate::{Diagnostic, Framework, TestReport, TestSummary, Verdict};

/// Of the failures of tests so many kinds are listed; `test` tells all.
const MOST_FAILURES: usize = 50;

/// The parts of a check, in the order in which they run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Does it compile?
    Build,
    /// What do the linters say?
    Lint,
    /// Do the tests pass?
    Test,
}

impl Stage {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Build, Self::Lint, Self::Test];

    /// As people call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Build => "build",
            Self::Lint => "lint",
            Self::Test => "test",
        }
    }
}

/// What one tool, or all of them together, came to; the worst last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CheckVerdict {
    /// It exited with 0.
    Passed,
    /// There is no tool for it, or it had nothing to do.
    NothingToCheck,
    /// The tool is not installed, or could not be started.
    ToolMissing,
    /// It was stopped by the user.
    Cancelled,
    /// The time limit ended it.
    TimedOut,
    /// It died, or ran into a limit.
    Crashed,
    /// It exited with something else than 0.
    Failed,
}

impl CheckVerdict {
    /// As people read it.
    pub fn words(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::NothingToCheck => "nothing to check",
            Self::ToolMissing => "tool missing",
            Self::Cancelled => "cancelled",
            Self::TimedOut => "timed out",
            Self::Crashed => "crashed",
            Self::Failed => "failed",
        }
    }
}

impl From<Verdict> for CheckVerdict {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Passed => Self::Passed,
            Verdict::NoTests | Verdict::Unaffected => Self::NothingToCheck,
            Verdict::RunnerMissing => Self::ToolMissing,
            Verdict::TimedOut => Self::TimedOut,
            Verdict::Crashed | Verdict::OutOfMemory | Verdict::Limit => Self::Crashed,
            Verdict::Failed
            | Verdict::BuildFailed
            | Verdict::CollectFailed
            | Verdict::SandboxBlocked
            | Verdict::Inconsistent => Self::Failed,
        }
    }
}

/// Build, lint and tests of a repository.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CheckReport {
    /// Whether all that was wanted ran, and passed.
    pub success: bool,
    /// The worst of all.
    pub verdict: CheckVerdict,
    /// In milliseconds.
    pub duration: u64,
    /// What all tools said, together.
    pub counts: DiagnosticCounts,
    /// Each tool, in the order in which they ran.
    pub stages: Vec<StageReport>,
    /// The tests of each project, if they ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tests: Vec<CheckedTests>,
    /// What was wanted and did not run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_run: Vec<NotRun>,
    /// What else the reader should know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// One tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StageReport {
    /// Which part of the check it belongs to.
    pub name: Stage,
    /// The tool.
    pub tool: String,
    /// Where it ran, relative to the repository; empty for its root.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub root: String,
    /// What ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// What it came to.
    pub verdict: CheckVerdict,
    /// Why, where the diagnostics do not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How it exited, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// In milliseconds.
    pub duration: u64,
    /// How much it said, each thing once.
    pub counts: DiagnosticCounts,
    /// What it said: the worst first, not all if it was very much. Files are named relative to the repository.
    pub diagnostics: Vec<Diagnostic>,
    /// So many are not listed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: u64,
    /// The end of its output, where no diagnostic says why it did not pass.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
    /// Where its whole output is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_file: Option<String>,
    /// Why there was no sandbox, if one was required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox_refused: Option<String>,
    /// What else the reader should know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// How much was said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DiagnosticCounts {
    /// It does not work.
    pub errors: u64,
    /// It works, but.
    pub warnings: u64,
    /// Something to know.
    pub notes: u64,
}

impl DiagnosticCounts {
    /// All of them.
    pub fn total(self) -> u64 {
        self.errors + self.warnings + self.notes
    }

    fn add(&mut self, other: Self) {
        self.errors += other.errors;
        self.warnings += other.warnings;
        self.notes += other.notes;
    }
}

/// The tests of one project, in short.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CheckedTests {
    /// The runner.
    pub framework: Framework,
    /// Where it ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// What ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// What it came to.
    pub verdict: Verdict,
    /// Why it is not better.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
    /// How many passed and failed.
    pub summary: TestSummary,
    /// In milliseconds.
    pub duration: u64,
    /// What failed, each kind once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<FailureGroup>,
    /// So many kinds are not listed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: u64,
    /// Where its whole output is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_file: Option<String>,
    /// Why there was no sandbox, if one was required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox_refused: Option<String>,
}

impl CheckedTests {
    /// A report of tests, in short.
    pub fn of(report: TestReport, mut failures: Vec<FailureGroup>) -> Self {
        let left_out = failures.len().saturating_sub(MOST_FAILURES) as u64;
        failures.truncate(MOST_FAILURES);
        Self {
            framework: report.framework,
            root: report.root,
            command: report.command,
            verdict: report.verdict,
            reasons: report.reasons,
            summary: report.summary,
            duration: report.duration,
            failures,
            left_out,
            output_file: report.raw_output_file,
            sandbox_refused: report.sandbox_refused,
        }
    }
}

/// Something that did not run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NotRun {
    /// Which part.
    pub name: Stage,
    /// What would have run; empty for all of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// Why.
    pub why: String,
}

impl CheckReport {
    /// Why there was no sandbox, if one was required, so that nothing ran.
    pub fn sandbox_refused(&self) -> Option<&str> {
        let of_stages = self.stages.iter().map(|stage| &stage.sandbox_refused);
        let of_tests = self.tests.iter().map(|tests| &tests.sandbox_refused);
        of_stages.chain(of_tests).flatten().next().map(String::as_str)
    }

    pub(super) fn of(stages: Vec<StageReport>, not_run: Vec<NotRun>, notes: Vec<String>) -> Self {
        let mut counts = DiagnosticCounts::default();
        for stage in &stages {
            counts.add(stage.counts);
        }
        let verdict = CheckVerdict::Passed;
        let mut report =
            Self { success: false, verdict, duration: 0, counts, stages, tests: Vec::new(), not_run, notes };
        report.judge();
        report
    }

    /// Whether a stage did not pass.
    pub fn is_red(&self, stage: Stage) -> bool {
        self.stages.iter().any(|it| it.name == stage && it.verdict != CheckVerdict::Passed)
    }

    /// Adds the tests. None at all are not a success: that nothing failed would say nothing.
    pub fn add_tests(&mut self, tests: Vec<CheckedTests>) {
        if tests.is_empty() {
            let why = "no tests were found".to_owned();
            self.not_run.push(NotRun { name: Stage::Test, tools: Vec::new(), why });
        }
        self.tests = tests;
        self.judge();
    }

    /// Adds what did not run.
    pub fn add_not_run(&mut self, not_run: NotRun) {
        self.not_run.push(not_run);
        self.judge();
    }

    fn judge(&mut self) {
        let of_stages = self.stages.iter().map(|stage| stage.verdict);
        let of_tests = self.tests.iter().map(|tests| tests.verdict.into());
        let nothing = (!self.not_run.is_empty()).then_some(CheckVerdict::NothingToCheck);
        let worst = of_stages.chain(of_tests).chain(nothing).max();
        self.verdict = worst.unwrap_or(CheckVerdict::NothingToCheck);
        self.success = self.verdict == CheckVerdict::Passed;
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands on references")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

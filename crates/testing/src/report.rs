//! What a test run says in the end, in one form for every runner.

use camino::Utf8Path;
use rehearsal_core::{RunId, Timestamp};
use rehearsal_sandbox::{SandboxReport, Written};
use serde::{Deserialize, Serialize};

use crate::{Affected, Framework, Problem, TestStatus, Verdict};

/// The whole result of one run. It always comes back, whatever happened to the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TestReport {
    /// Where it ran, if we ran it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// What ran, if we ran it: as a shell would take it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The runner.
    pub framework: Framework,
    /// Its version, where it told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub framework_version: Option<String>,
    /// Whether the verdict is `passed`, or `unaffected`. Nothing else is green.
    pub success: bool,
    /// What to think of the run.
    pub verdict: Verdict,
    /// Why the verdict is not better, the most telling first.
    pub reasons: Vec<String>,
    /// In milliseconds, the whole run.
    pub duration: u64,
    /// The tests. Of a very large run only as many as memory allows are here, failures before others;
    /// `summary` counts all, and `tests_file` has all.
    pub tests: Vec<TestCase>,
    /// All of them, as JSON lines, if they were written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests_file: Option<String>,
    /// How many of each kind.
    pub summary: TestSummary,
    /// Compiler and other errors because of which tests could not be built.
    pub build_errors: Vec<Problem>,
    /// Files, classes or groups that could not be loaded or set up.
    pub suite_errors: Vec<Problem>,
    /// What went wrong outside of any test.
    pub run_errors: Vec<Problem>,
    /// The output: beginning and end, if it is long.
    pub raw_output: String,
    /// The output whole, if it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_output_file: Option<String>,
    /// The exit status of the runner: none if it was killed, or is not known.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Whether our time limit ended it.
    pub timed_out: bool,
    /// Whether tests may be missing, since the run did not come to its own end.
    pub partial: bool,
    /// How much of the code the tests reach, if it was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coverage: Option<Coverage>,
    /// Which tests were chosen, and why, if only those were wanted that a change reaches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub affected: Option<Affected>,
    /// The run that these results are of, if nothing was run since nothing changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier_run: Option<EarlierRun>,
    /// What confined it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxReport>,
    /// Why the sandbox that was demanded could not be had, so that nothing ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox_refused: Option<String>,
    /// What it wrote into the project, where that was caught.
    #[serde(default, skip_serializing_if = "nothing_written")]
    pub files_written: Written,
    /// What else the reader should know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

fn nothing_written(written: &Written) -> bool {
    *written == Written::default()
}

/// A run that is remembered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EarlierRun {
    /// Its id.
    pub run: RunId,
    /// When it began.
    pub at: Timestamp,
}

/// How much of the code the tests reach.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Coverage {
    /// Of all lines (or statements, as the tool counts).
    pub percent: f64,
    /// How many were reached.
    pub covered: u64,
    /// Of how many.
    pub total: u64,
    /// File by file, the least covered first.
    pub files: Vec<FileCoverage>,
}

/// How much of one file the tests reach.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileCoverage {
    /// Relative to the project where it lies in it.
    pub file: String,
    /// Of its lines or statements.
    pub percent: f64,
    /// How many were reached.
    pub covered: u64,
    /// Of how many.
    pub total: u64,
}

impl TestReport {
    /// Several projects as one: the worst verdict, all tests, all problems.
    pub fn together<'a>(reports: impl Iterator<Item = &'a Self> + Clone) -> Self {
        let worst = reports.clone().max_by_key(|report| report.verdict.weight());
        let mut whole = Self::empty(Framework::Several);
        if let Some(worst) = worst {
            (whole.verdict, whole.success) = (worst.verdict, worst.success);
            whole.reasons.clone_from(&worst.reasons);
            (whole.exit_code, whole.signal) = (worst.exit_code, worst.signal);
        } else {
            whole.reasons.push("no tests were found".to_owned());
        }
        for report in reports {
            whole.duration += report.duration;
            whole.summary.merge(&report.summary);
            whole.tests.extend(report.tests.iter().cloned());
            whole.build_errors.extend(report.build_errors.iter().cloned());
            whole.suite_errors.extend(report.suite_errors.iter().cloned());
            whole.run_errors.extend(report.run_errors.iter().cloned());
            whole.timed_out |= report.timed_out;
            whole.partial |= report.partial;
            whole.notes.extend(report.notes.iter().cloned());
        }
        whole
    }

    /// Of tests that were not run, since the change cannot reach them.
    pub fn unaffected(root: &Utf8Path, affected: Affected) -> Self {
        let mut report = Self::empty(affected.framework);
        report.root = Some(root.to_string());
        report.become_unaffected(affected.words());
        report.affected = Some(affected);
        report
    }

    /// Nothing ran, and nothing had to.
    pub(crate) fn become_unaffected(&mut self, why: String) {
        (self.verdict, self.success) = (Verdict::Unaffected, true);
        self.reasons = vec![why];
    }

    /// Of a run without any result.
    pub fn empty(framework: Framework) -> Self {
        Self {
            root: None,
            command: None,
            framework,
            framework_version: None,
            success: false,
            verdict: Verdict::NoTests,
            reasons: Vec::new(),
            duration: 0,
            tests: Vec::new(),
            tests_file: None,
            summary: TestSummary::default(),
            build_errors: Vec::new(),
            suite_errors: Vec::new(),
            run_errors: Vec::new(),
            raw_output: String::new(),
            raw_output_file: None,
            exit_code: None,
            signal: None,
            timed_out: false,
            partial: false,
            coverage: None,
            affected: None,
            earlier_run: None,
            sandbox: None,
            sandbox_refused: None,
            files_written: Written::default(),
            notes: Vec::new(),
        }
    }
}

/// One test.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TestCase {
    /// The name that its runner knows it by.
    pub name: String,
    /// Its package, class or file: what its name is unique in.
    pub package: String,
    /// How it ended.
    pub status: TestStatus,
    /// In milliseconds.
    pub duration: u64,
    /// What it printed: beginning and end, if that is long.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
    /// Why it failed or was skipped, in the runner's words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub error: String,
    /// The frames as the runner printed them.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stack_trace: String,
    /// What kind of failure it is, as far as the runner's structure tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<FailureKind>,
    /// The file to look at, relative to the project: where it failed, else where the test stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// What was expected, where the runner gives it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// What came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actual: Option<String>,
    /// How often it ran, if more than once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
}

/// What kind of failure, as far as the runner's own structure tells; the analysis goes further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// A comparison did not hold.
    Assertion,
    /// An exception, panic or error that is not an assertion.
    Error,
    /// Null, nil, None or undefined was used as if it were something.
    NullDeref,
    /// The test's own time limit.
    Timeout,
    /// A panic.
    Panic,
    /// The process died.
    Crash,
    /// The set-up of the test or its group.
    Setup,
    /// The clean-up.
    Teardown,
    /// A snapshot differs.
    Snapshot,
    /// It passed though it was declared to fail.
    UnexpectedPass,
    /// A module could not be found or loaded.
    Import,
    /// Source that does not compile or parse.
    Compile,
    /// The runner's configuration.
    Config,
    /// A dependency could not be resolved.
    Dependency,
    /// A program ended with a bad status, and nothing more is known.
    Exit,
}

/// Counts. `total = passed + failed + skipped + xfailed + timed_out`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TestSummary {
    /// The tests that began, and those left out on purpose.
    pub total: u64,
    /// Good ones, flaky ones included.
    pub passed: u64,
    /// Failed, in error or crashed.
    pub failed: u64,
    /// Left out on purpose.
    pub skipped: u64,
    /// Failed as declared.
    pub xfailed: u64,
    /// Running when the run was stopped.
    pub timed_out: u64,
    /// Of the failed: those in error.
    pub errors: u64,
    /// Of the failed: those that died.
    pub crashed: u64,
    /// Of the passed: those that failed first.
    pub flaky: u64,
    /// Never began; not in the total.
    pub not_run: u64,
}

impl TestSummary {
    /// Counts one more.
    pub fn add(&mut self, status: TestStatus) {
        self.change(status, 1);
    }

    pub(crate) fn add_many(&mut self, status: TestStatus, count: u64) {
        self.change(status, count);
    }

    /// Counts one less, for a test that a later attempt decides.
    pub(crate) fn remove(&mut self, status: TestStatus) {
        self.change(status, u64::MAX);
    }

    /// Adds all of another.
    pub fn merge(&mut self, other: &Self) {
        self.total += other.total;
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
        self.xfailed += other.xfailed;
        self.timed_out += other.timed_out;
        self.errors += other.errors;
        self.crashed += other.crashed;
        self.flaky += other.flaky;
        self.not_run += other.not_run;
    }

    /// `by` is a count, or the wrapping minus one.
    fn change(&mut self, status: TestStatus, by: u64) {
        let step = |count: &mut u64| *count = count.wrapping_add(by);
        if status == TestStatus::NotRun {
            step(&mut self.not_run);
            return;
        }
        step(&mut self.total);
        match status {
            TestStatus::Pass => step(&mut self.passed),
            TestStatus::Flaky => {
                step(&mut self.passed);
                step(&mut self.flaky);
            }
            TestStatus::Fail => step(&mut self.failed),
            TestStatus::Error => {
                step(&mut self.failed);
                step(&mut self.errors);
            }
            TestStatus::Crash => {
                step(&mut self.failed);
                step(&mut self.crashed);
            }
            TestStatus::Skip => step(&mut self.skipped),
            TestStatus::Xfail => step(&mut self.xfailed),
            TestStatus::Timeout => step(&mut self.timed_out),
            TestStatus::NotRun => {}
        }
    }
}

//! CTRF, the common test report format (`ctrf.io`), schema 1.0.

use std::io::{Result, Write};

use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};

use crate::{Problem, TestCase, TestReport, TestStatus, Verdict};

/// Writes a report as CTRF. `start` is when the run began, in milliseconds since 1970.
pub fn ctrf(report: &TestReport, start: u64, to: &mut dyn Write) -> Result<()> {
    let summary = &report.summary;
    let document = Document {
        report_format: "CTRF",
        spec_version: "1.0.0",
        generated_by: "rehearsal",
        results: Results {
            tool: Tool { name: report.framework.name(), version: report.framework_version.as_deref() },
            summary: Summary {
                tests: summary.total + summary.not_run,
                passed: summary.passed,
                failed: summary.failed + summary.timed_out,
                skipped: summary.skipped,
                pending: summary.not_run,
                other: summary.xfailed,
                flaky: summary.flaky,
                start,
                stop: start.saturating_add(report.duration),
                duration: report.duration,
            },
            tests: Tests(&report.tests),
        },
        extra: Extra {
            verdict: report.verdict,
            reasons: &report.reasons,
            build_errors: &report.build_errors,
            suite_errors: &report.suite_errors,
            run_errors: &report.run_errors,
        },
    };
    serde_json::to_writer_pretty(to, &document).map_err(Into::into)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    report_format: &'static str,
    spec_version: &'static str,
    generated_by: &'static str,
    results: Results<'a>,
    /// What the format has no place for: a run can be bad though no test is.
    extra: Extra<'a>,
}

#[derive(Serialize)]
struct Results<'a> {
    tool: Tool<'a>,
    summary: Summary,
    tests: Tests<'a>,
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<&'a str>,
}

#[derive(Serialize)]
struct Summary {
    tests: u64,
    passed: u64,
    failed: u64,
    skipped: u64,
    pending: u64,
    other: u64,
    flaky: u64,
    start: u64,
    stop: u64,
    duration: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Extra<'a> {
    verdict: Verdict,
    reasons: &'a [String],
    #[serde(skip_serializing_if = "<[Problem]>::is_empty")]
    build_errors: &'a [Problem],
    #[serde(skip_serializing_if = "<[Problem]>::is_empty")]
    suite_errors: &'a [Problem],
    #[serde(skip_serializing_if = "<[Problem]>::is_empty")]
    run_errors: &'a [Problem],
}

/// Each test is turned into the format's own when it is written.
struct Tests<'a>(&'a [TestCase]);

impl Serialize for Tests<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        let mut tests = to.serialize_seq(Some(self.0.len()))?;
        for test in self.0 {
            tests.serialize_element(&Test::new(test))?;
        }
        tests.end()
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Test<'a> {
    name: &'a str,
    status: &'static str,
    raw_status: TestStatus,
    duration: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    suite: Option<[&'a str; 1]>,
    #[serde(skip_serializing_if = "str::is_empty")]
    message: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    trace: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_path: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    flaky: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retries: Option<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stdout: Vec<&'a str>,
}

impl<'a> Test<'a> {
    fn new(test: &'a TestCase) -> Self {
        Self {
            // The format allows no empty name.
            name: if test.name.is_empty() { "unnamed" } else { &test.name },
            status: status(test.status),
            raw_status: test.status,
            duration: test.duration,
            suite: Some([test.package.as_str()]).filter(|_| !test.package.is_empty()),
            message: &test.error,
            trace: &test.stack_trace,
            file_path: test.file.as_deref(),
            line: test.line,
            flaky: (test.status == TestStatus::Flaky).then_some(true),
            retries: test.attempts.map(|attempts| attempts.saturating_sub(1)),
            stdout: test.output.lines().collect(),
        }
    }
}

fn status(status: TestStatus) -> &'static str {
    match status {
        TestStatus::Pass | TestStatus::Flaky => "passed",
        TestStatus::Fail | TestStatus::Error | TestStatus::Crash | TestStatus::Timeout => "failed",
        TestStatus::Skip => "skipped",
        TestStatus::NotRun => "pending",
        TestStatus::Xfail => "other",
    }
}

//! Reports made by hand, for the tests of what is said about them.

use crate::words::count;
use crate::{
    FailureKind, Framework, Problem, ProblemScope, TestCase, TestReport, TestStatus, TestSummary, Verdict,
};

/// A report of these tests, judged as a run that came to its end.
pub(crate) fn report(framework: Framework, tests: Vec<TestCase>) -> TestReport {
    let mut summary = TestSummary::default();
    for test in &tests {
        summary.add(test.status);
    }
    let success = summary.failed == 0 && summary.timed_out == 0 && summary.not_run == 0;
    let reasons =
        if success { Vec::new() } else { vec![format!("{} failed", count(summary.failed, "test", "tests"))] };
    TestReport {
        root: None,
        command: None,
        framework,
        framework_version: None,
        success,
        verdict: if success { Verdict::Passed } else { Verdict::Failed },
        reasons,
        duration: 1200,
        tests,
        tests_file: None,
        summary,
        build_errors: Vec::new(),
        suite_errors: Vec::new(),
        run_errors: Vec::new(),
        raw_output: String::new(),
        raw_output_file: None,
        exit_code: Some(i32::from(!success)),
        signal: None,
        timed_out: false,
        partial: false,
        coverage: None,
        sandbox: None,
        files_written: rehearsal_sandbox::Written::default(),
        notes: Vec::new(),
    }
}

pub(crate) fn passed(name: &str) -> TestCase {
    TestCase { name: name.to_owned(), duration: 10, ..TestCase::default() }
}

pub(crate) fn failed(name: &str, at: (&str, u32), error: &str) -> TestCase {
    TestCase {
        status: TestStatus::Fail,
        file: Some(at.0.to_owned()),
        line: Some(at.1),
        error: error.to_owned(),
        ..passed(name)
    }
}

pub(crate) fn compared(name: &str, at: (&str, u32), expected: &str, actual: &str) -> TestCase {
    TestCase {
        kind: Some(FailureKind::Assertion),
        expected: Some(expected.to_owned()),
        actual: Some(actual.to_owned()),
        ..failed(name, at, &format!("expected {expected}, got {actual}"))
    }
}

pub(crate) fn problem(scope: ProblemScope, name: &str, at: (&str, u32), message: &str) -> Problem {
    let (file, line) = (Some(at.0.to_owned()), Some(at.1));
    Problem { scope, name: name.to_owned(), kind: None, message: message.to_owned(), file, line }
}

//! Reports made by hand, for the tests of what is said about them.

use rehearsal_core::Exit;

use crate::read::conclude;
use crate::{
    Collected, Ending, FailureKind, Framework, Problem, ProblemScope, TestCase, TestReport, TestStatus,
};

/// A report of these tests, judged as a run that came to its end.
pub(crate) fn report(framework: Framework, tests: Vec<TestCase>) -> TestReport {
    let mut run = Collected { ended: true, ..Collected::default() };
    for test in &tests {
        run.summary.add(test.status);
    }
    run.tests = tests;
    let exit = Exit::Code(i32::from(run.summary.failed > 0));
    let ending = Ending { exit: Some(exit), ..Ending::default() };
    TestReport { duration: 1200, ..conclude(framework, run, &ending, String::new()) }
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
    Problem::new(scope, name, None, message).placed(file, line)
}

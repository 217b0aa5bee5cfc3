//! The phases of a pytest test (set-up, call, clean-up) put together to one end.

use std::collections::HashMap;

use super::{place, python_failure};
use crate::{Attempt, Event, Failure, FailureKind, Finished, Place, Sink, TestId, TestStatus};

/// More tests than this do not run at the same time.
const MOST_OPEN: usize = 10_000;

/// The tests whose clean-up was not told yet.
#[derive(Debug, Default)]
pub(super) struct Phases {
    open: HashMap<String, Open>,
}

#[derive(Debug, Default)]
struct Open {
    status: TestStatus,
    seconds: f64,
    retried: bool,
    worst: Phase,
}

/// What is told of one phase.
#[derive(Debug, Default)]
pub(super) struct Phase {
    /// `setup`, `call`, `teardown`, or `???` for a worker of xdist that died.
    pub when: String,
    /// `passed`, `failed`, `skipped`, or `rerun` if it failed and is going to run again.
    pub outcome: String,
    /// Why it was declared to fail, if it was.
    pub xfail: Option<String>,
    pub seconds: f64,
    /// Whether the test may run, or has run, several times.
    pub retried: bool,
    /// Whether this is a part of the test that reports on its own: it can make the test fail, and nothing else.
    pub subtest: bool,
    pub message: String,
    pub stack: String,
    /// Where it failed, as pytest tells it.
    pub at: Option<(String, Option<u32>)>,
    /// The frames, the deepest first.
    pub frames: Vec<(String, u32)>,
    pub output: String,
}

impl Phase {
    fn status(&self) -> TestStatus {
        match (self.outcome.as_str(), self.when.as_str()) {
            (_, "???") => TestStatus::Crash,
            ("failed" | "rerun", "call") => TestStatus::Fail,
            ("failed" | "rerun" | "error", _) => TestStatus::Error,
            ("skipped", _) if self.xfail.is_some() => TestStatus::Xfail,
            ("skipped", _) => TestStatus::Skip,
            _ => TestStatus::Pass,
        }
    }
}

/// A node's name and file.
pub(super) fn test_id(node: &str) -> TestId<'_> {
    TestId { suite: node.split_once("::").map_or(node, |(file, _)| file), name: node }
}

impl Phases {
    /// Takes a phase, and tells the test's end with its last one.
    pub(super) fn phase(&mut self, node: &str, phase: Phase, sink: &mut dyn Sink) {
        if self.open.len() >= MOST_OPEN && !self.open.contains_key(node) {
            return;
        }
        let open = self.open.entry(node.to_owned()).or_default();
        let (status, last) = (phase.status(), matches!(phase.when.as_str(), "teardown" | "???"));
        let last = last && !phase.subtest;
        open.retried |= phase.retried;
        if !phase.subtest {
            open.seconds += phase.seconds;
        }
        let counts = if phase.subtest { status == TestStatus::Fail } else { status != TestStatus::Pass };
        if counts && !open.status.is_failure() {
            open.status = status;
            open.worst = phase;
        }
        if last && let Some(open) = self.open.remove(node) {
            open.end(node, sink);
        }
    }

    /// Tests without a clean-up did not end, unless they had failed already.
    pub(super) fn finish(&mut self, sink: &mut dyn Sink) {
        let mut open: Vec<_> = self.open.drain().filter(|(_, open)| open.status.is_failure()).collect();
        open.sort_by(|a, b| a.0.cmp(&b.0));
        for (node, open) in open {
            open.end(&node, sink);
        }
    }
}

impl Open {
    fn end(&self, node: &str, sink: &mut dyn Sink) {
        let (test, phase) = (test_id(node), &self.worst);
        if self.status.is_failure() && !phase.output.is_empty() {
            sink.event(Event::Output { test, text: &phase.output });
        }
        let reason = phase.xfail.as_deref().filter(|_| self.status == TestStatus::Xfail);
        let failure = Failure {
            kind: self.kind(),
            message: reason.unwrap_or(&phase.message),
            stack: &phase.stack,
            at: self.place(),
            ..Failure::default()
        };
        sink.event(Event::Finished(Finished {
            failure: (self.status != TestStatus::Pass).then_some(failure),
            attempt: if self.retried { Attempt::Retry } else { Attempt::Only },
            ..Finished::new(test, self.status, super::milliseconds::of_seconds(self.seconds))
        }));
    }

    fn kind(&self) -> Option<FailureKind> {
        match (self.status, self.worst.when.as_str()) {
            (status, _) if !status.is_failure() => None,
            (TestStatus::Crash, _) => Some(FailureKind::Crash),
            (_, "setup") => Some(FailureKind::Setup),
            (_, "teardown") => Some(FailureKind::Teardown),
            _ => Some(python_failure::kind(&self.worst.message)),
        }
    }

    fn place(&self) -> Place<'_> {
        let mut frames = self.worst.frames.iter().map(|(file, line)| Place::new(file, *line));
        let told = self.worst.at.as_ref().map(|(file, line)| Place { file: Some(file), line: *line });
        let told = told.filter(place::is_own);
        frames
            .find(place::is_own)
            .or(told)
            .or_else(|| python_failure::place(&self.worst.stack))
            .unwrap_or_default()
    }
}

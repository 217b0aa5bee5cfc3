//! Tests and suites that are not final yet.

use crate::streak::Streak;
use crate::text::HeadTail;
use crate::{Place, TestId, TestStatus};

/// So many tests of one suite are remembered while they run and after their end. One more is still counted when it
/// ends, but a later attempt of it is a test of its own.
const REMEMBERED: usize = 200_000;

/// A test that began and has not ended.
#[derive(Debug)]
pub(super) struct Running {
    pub output: HeadTail,
    pub file: Option<String>,
    pub line: Option<u32>,
}

/// Its suite, its name, and how it runs.
pub(super) type RunningTest = (Box<str>, Box<str>, Running);

/// A test that ended and may be run again.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ended {
    pub status: TestStatus,
    pub attempts: u32,
    /// Its place among the kept ones.
    pub kept: Option<usize>,
}

#[derive(Debug, Default)]
struct OpenTest {
    running: Option<Running>,
    ended: Option<Ended>,
}

#[derive(Debug, Default)]
struct OpenSuite {
    /// Whether it told of its beginning, and so will tell of its end.
    announced: bool,
    tests: Streak<OpenTest>,
}

/// All of them, suite by suite: what is over is dropped with its suite.
#[derive(Debug, Default)]
pub(super) struct OpenTests {
    suites: Streak<OpenSuite>,
}

impl OpenTests {
    pub(super) fn start_suite(&mut self, name: &str) {
        self.suites.entry(name).announced = true;
    }

    /// Ends a suite and returns what was running in it.
    pub(super) fn end_suite(&mut self, name: &str) -> Vec<(Box<str>, Running)> {
        let tests = self.suites.remove(name).unwrap_or_default().tests;
        tests.into_sorted().into_iter().filter_map(|(name, test)| Some((name, test.running?))).collect()
    }

    pub(super) fn start(&mut self, test: TestId<'_>, at: Place<'_>, room: usize) {
        let Some(running) = self.running(test, room) else { return };
        if at.file.is_some() {
            running.file = at.file.map(str::to_owned);
            running.line = at.line;
        }
    }

    pub(super) fn output(&mut self, test: TestId<'_>, text: &str, room: usize) {
        if let Some(running) = self.running(test, room) {
            running.output.push(text);
        }
    }

    /// Takes a test out.
    pub(super) fn take(&mut self, test: TestId<'_>) -> (Option<Running>, Option<Ended>) {
        let suite = self.suites.get_mut(test.suite);
        let taken = suite.and_then(|suite| suite.tests.remove(test.name));
        taken.map_or((None, None), |test| (test.running, test.ended))
    }

    /// Puts one back that may run again.
    pub(super) fn remember(&mut self, test: TestId<'_>, ended: Ended) {
        let tests = &mut self.suites.entry(test.suite).tests;
        if tests.len() < REMEMBERED {
            tests.entry(test.name).ended = Some(ended);
        }
    }

    /// Everything that runs, in the order of names, so that the same output says the same; and the suites that
    /// began and did not end, other than those of these tests.
    pub(super) fn take_running(&mut self) -> (Vec<RunningTest>, Vec<String>) {
        let mut all = Vec::new();
        let mut without = Vec::new();
        for (name, suite) in std::mem::take(&mut self.suites).into_sorted() {
            let tests = suite.tests.into_sorted().into_iter();
            let mut running =
                tests.filter_map(|(test, state)| Some((name.clone(), test, state.running?))).peekable();
            if suite.announced && running.peek().is_none() {
                without.push(String::from(name.clone()));
            }
            all.extend(running);
        }
        (all, without)
    }

    /// A test that runs; none if there is no room for one more.
    fn running(&mut self, test: TestId<'_>, room: usize) -> Option<&mut Running> {
        let tests = &mut self.suites.entry(test.suite).tests;
        let open =
            if tests.len() < REMEMBERED { Some(tests.entry(test.name)) } else { tests.get_mut(test.name) };
        let new = || Running { output: HeadTail::new(room), file: None, line: None };
        open.map(|open| open.running.get_or_insert_with(new))
    }
}

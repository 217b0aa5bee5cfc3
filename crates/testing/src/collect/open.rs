//! Tests and suites that are not final yet.

use std::collections::HashMap;

use crate::text::HeadTail;
use crate::{Place, TestId, TestStatus};

/// A test that began and has not ended.
#[derive(Debug)]
pub(super) struct Running {
    pub output: HeadTail,
    pub file: Option<String>,
    pub line: Option<u32>,
}

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
    name: String,
    /// Whether it told of its beginning, and so will tell of its end.
    announced: bool,
    tests: HashMap<Box<str>, OpenTest>,
}

/// All of them, suite by suite: what is over is dropped with its suite.
#[derive(Debug, Default)]
pub(super) struct OpenTests {
    suites: Vec<OpenSuite>,
    by_name: HashMap<String, usize>,
    /// Events come in bunches of one suite: looking at the last one first saves most look-ups.
    last: usize,
}

impl OpenTests {
    pub(super) fn start_suite(&mut self, name: &str) {
        self.suite(name).announced = true;
    }

    /// Ends a suite and returns what was running in it.
    pub(super) fn end_suite(&mut self, name: &str) -> Vec<(Box<str>, Running)> {
        let Some(at) = self.by_name.remove(name) else { return Vec::new() };
        let suite = self.suites.swap_remove(at);
        if let Some(moved) = self.suites.get(at) {
            self.by_name.insert(moved.name.clone(), at);
        }
        let mut running: Vec<_> =
            suite.tests.into_iter().filter_map(|(name, test)| Some((name, test.running?))).collect();
        running.sort_by(|a, b| a.0.cmp(&b.0));
        running
    }

    pub(super) fn start(&mut self, test: TestId<'_>, at: Place<'_>, room: usize) {
        let running = running(self.test(test), room);
        if at.file.is_some() {
            running.file = at.file.map(str::to_owned);
            running.line = at.line;
        }
    }

    pub(super) fn output(&mut self, test: TestId<'_>, text: &str, room: usize) {
        running(self.test(test), room).output.push(text);
    }

    /// Takes a test out.
    pub(super) fn take(&mut self, test: TestId<'_>) -> (Option<Running>, Option<Ended>) {
        let suite = self.suite(test.suite);
        suite.tests.remove(test.name).map_or((None, None), |test| (test.running, test.ended))
    }

    /// Puts one back that may run again.
    pub(super) fn remember(&mut self, test: TestId<'_>, ended: Ended) {
        self.test(test).ended = Some(ended);
    }

    /// Everything that runs, in the order of names, so that the same output says the same.
    pub(super) fn take_running(&mut self) -> Vec<(String, Box<str>, Running)> {
        let mut running = Vec::new();
        for suite in &mut self.suites {
            for (name, test) in &mut suite.tests {
                running.extend(test.running.take().map(|it| (suite.name.clone(), name.clone(), it)));
            }
        }
        running.sort_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
        running
    }

    /// The suites that began and did not end, other than those of the given tests.
    pub(super) fn suites_without_tests(&self, running: &[(String, Box<str>, Running)]) -> Vec<String> {
        let open = self.suites.iter().filter(|suite| suite.announced).map(|suite| &suite.name);
        let mut names: Vec<_> =
            open.filter(|name| !running.iter().any(|(suite, ..)| suite == *name)).cloned().collect();
        names.sort();
        names
    }

    fn suite(&mut self, name: &str) -> &mut OpenSuite {
        if self.suites.get(self.last).is_none_or(|suite| suite.name != name) {
            self.last = match self.by_name.get(name) {
                Some(at) => *at,
                None => {
                    self.suites.push(OpenSuite { name: name.to_owned(), ..OpenSuite::default() });
                    self.by_name.insert(name.to_owned(), self.suites.len() - 1);
                    self.suites.len() - 1
                }
            };
        }
        &mut self.suites[self.last]
    }

    fn test(&mut self, test: TestId<'_>) -> &mut OpenTest {
        let tests = &mut self.suite(test.suite).tests;
        if !tests.contains_key(test.name) {
            tests.insert(test.name.into(), OpenTest::default());
        }
        tests.entry(test.name.into()).or_default()
    }
}

fn running(test: &mut OpenTest, room: usize) -> &mut Running {
    test.running.get_or_insert_with(|| Running { output: HeadTail::new(room), file: None, line: None })
}

//! `libtest`'s JSON (`--format json`), and what cargo-nextest makes of it (`libtest-json-plus`).

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use serde::Deserialize;

use super::rust_failure::rust_failure;
use super::{Head, Stream, by_line::LineReader};
use crate::{Attempt, Event, Failure, FailureKind, Finished, Place, Sink, TestId, TestStatus};

/// Tests that run at the same time; no machine has more cores.
const MOST_OPEN: usize = 100_000;
/// Attempts of one test that are told one by one.
const MOST_ATTEMPTS: u32 = 100;

pub(super) fn looks_like(head: &Head<'_>) -> bool {
    head.text.lines().filter_map(json_of).any(|json| parse(json).is_some())
}

pub(super) fn looks_like_nextest(head: &Head<'_>) -> bool {
    let suite = |line: &str| parse(json_of(line)?).map(|line| line.kind == "suite" && line.nextest.is_some());
    head.text.lines().any(|line| suite(line) == Some(true))
}

#[derive(Debug, Default)]
pub(super) struct LibtestJson {
    suite: String,
    open: HashSet<String>,
    /// How many tests nextest declared, by suite: a suite whose tests end late is told twice.
    declared: HashMap<String, u64>,
    is_nextest: bool,
    /// Suites that began and did not end: nextest runs several at once.
    running: u64,
    began: u64,
    ended: u64,
    counted: u64,
    late: bool,
}

#[derive(Deserialize)]
struct JsonLine<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    event: Cow<'a, str>,
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    stdout: Cow<'a, str>,
    #[serde(borrow, default)]
    message: Cow<'a, str>,
    #[serde(borrow, default)]
    reason: Cow<'a, str>,
    #[serde(default)]
    exec_time: f64,
    #[serde(default)]
    test_count: u64,
    #[serde(default)]
    passed: u64,
    #[serde(default)]
    failed: u64,
    #[serde(default)]
    ignored: u64,
    #[serde(default)]
    measured: u64,
    #[serde(default, borrow)]
    nextest: Option<Nextest<'a>>,
}

#[derive(Deserialize)]
struct Nextest<'a> {
    #[serde(rename = "crate", borrow)]
    package: Cow<'a, str>,
    #[serde(borrow)]
    test_binary: Cow<'a, str>,
}

/// The JSON in a line: what a test printed without a line end may stand before it.
fn json_of(line: &str) -> Option<&str> {
    let at = line.find("{ \"type\": \"").or_else(|| line.find("{\"type\":\""))?;
    Some(&line[at..])
}

fn parse(json: &str) -> Option<JsonLine<'_>> {
    let line: JsonLine<'_> = serde_json::from_str(json).ok()?;
    matches!(line.kind.as_ref(), "suite" | "test" | "bench").then_some(line)
}

impl LineReader for LibtestJson {
    fn line(&mut self, stream: Stream, line: &str, sink: &mut dyn Sink) {
        if stream == Stream::Out {
            self.line(line, "", sink);
        }
    }

    fn end(&mut self, sink: &mut dyn Sink) {
        self.end(sink);
    }
}

impl LibtestJson {
    /// Takes a line that may be JSON of a test binary; `suite` is the binary that begins next.
    pub(super) fn line(&mut self, line: &str, suite: &str, sink: &mut dyn Sink) -> bool {
        let Some(line) = json_of(line).and_then(parse) else { return false };
        match (line.kind.as_ref(), line.event.as_ref()) {
            ("suite", "started") => self.suite_started(&line, suite, sink),
            ("suite", "ok" | "failed") => self.suite_ended(&line, sink),
            ("test", "started") => self.started(&line, sink),
            ("test", "timeout") => {}
            ("test" | "bench", _) => self.test_ended(&line, sink),
            _ => return false,
        }
        true
    }

    /// Whether anything was read.
    pub(super) fn any(&self) -> bool {
        self.began > 0
    }

    /// Whether a line begins the output of a binary.
    pub(super) fn begins(line: &str) -> bool {
        line.contains("\"suite\"")
            && json_of(line)
                .and_then(parse)
                .is_some_and(|line| line.kind == "suite" && line.event == "started")
    }

    fn suite_started(&mut self, line: &JsonLine<'_>, suite: &str, sink: &mut dyn Sink) {
        self.began += 1;
        if let Some(nextest) = &line.nextest {
            self.is_nextest = true;
            self.running += 1;
            self.suite = binary_id(&nextest.package, &nextest.test_binary);
            if self.declared.len() < MOST_OPEN && !self.declared.contains_key(&self.suite) {
                self.declared.insert(self.suite.clone(), line.test_count);
                sink.event(Event::Declared(line.test_count));
            }
        } else {
            if self.running > 0 {
                // The process of the one before ended without its end.
                sink.event(Event::SuiteEnded(&self.suite));
                self.open.clear();
            }
            self.running = 1;
            suite.clone_into(&mut self.suite);
            sink.event(Event::Declared(line.test_count));
        }
    }

    fn suite_ended(&mut self, line: &JsonLine<'_>, sink: &mut dyn Sink) {
        if self.running == 0 {
            return;
        }
        self.running -= 1;
        self.ended += 1;
        if !self.is_nextest {
            let sum = [line.passed, line.failed, line.ignored, line.measured];
            self.counted = sum.into_iter().fold(self.counted, u64::saturating_add);
            sink.event(Event::SuiteEnded(&self.suite));
            self.open.clear();
        }
    }

    fn started(&mut self, line: &JsonLine<'_>, sink: &mut dyn Sink) {
        if self.running > 0 && self.open.len() < MOST_OPEN && self.open.insert(line.name.clone().into_owned())
        {
            let (suite, name) = self.split(&line.name);
            sink.event(Event::Started { test: TestId { suite: &suite, name }, at: Place::default() });
        }
    }

    fn test_ended(&mut self, line: &JsonLine<'_>, sink: &mut dyn Sink) {
        let (id, attempts) = attempts_of(&line.name);
        if !self.open.remove(id) {
            // No test of this name runs: another test printed the line.
            return;
        }
        let (suite, name) = self.split(id);
        let test = TestId { suite: &suite, name };
        let ms = super::milliseconds::of_seconds(line.exec_time);
        let attempt = if attempts > 1 { Attempt::Retry } else { Attempt::Only };
        for _ in 1..attempts {
            sink.event(Event::Finished(Finished { attempt, ..Finished::new(test, TestStatus::Fail, 0) }));
        }
        let status = match (line.kind.as_ref(), line.event.as_ref()) {
            ("bench", _) | (_, "ok") => TestStatus::Pass,
            (_, "ignored") => TestStatus::Skip,
            _ => TestStatus::Fail,
        };
        let failure = match status {
            TestStatus::Pass => None,
            TestStatus::Skip => {
                (!line.message.is_empty()).then(|| Failure { message: &line.message, ..Failure::default() })
            }
            _ => Some(failure_of(name, line)),
        };
        if status == TestStatus::Fail && !line.stdout.is_empty() {
            sink.event(Event::Output { test, text: &line.stdout });
        }
        sink.event(Event::Finished(Finished { failure, attempt, ..Finished::new(test, status, ms) }));
    }

    /// The binary and the test: nextest writes `package::binary$test`.
    fn split<'a>(&self, name: &'a str) -> (String, &'a str) {
        match name.split_once('$') {
            Some((binary, test)) if self.is_nextest => {
                let (package, binary) = binary.split_once("::").unwrap_or((binary, binary));
                (binary_id(package, binary), test)
            }
            _ => (self.suite.clone(), name),
        }
    }

    pub(super) fn end(&mut self, sink: &mut dyn Sink) {
        if self.began == 0 || self.began != self.ended || self.late {
            return;
        }
        self.late = true;
        let mut open: Vec<String> = self.open.drain().collect();
        open.sort_unstable();
        for id in open {
            // nextest begins ignored tests and, if they are filtered out too, does not end them.
            let (suite, name) = self.split(&id);
            let test = TestId { suite: &suite, name };
            sink.event(Event::Finished(Finished::new(test, TestStatus::Skip, 0)));
        }
        sink.event(Event::Ended { counted: (!self.is_nextest).then_some(self.counted) });
    }
}

/// The id of a binary, as nextest prints it for people.
fn binary_id(package: &str, binary: &str) -> String {
    if package == binary { package.to_owned() } else { format!("{package}::{binary}") }
}

/// `name#2` is the second attempt.
fn attempts_of(name: &str) -> (&str, u32) {
    match name.rsplit_once('#').map(|(name, attempt)| (name, attempt.parse::<u32>())) {
        Some((name, Ok(attempts))) => (name, attempts.clamp(1, MOST_ATTEMPTS)),
        _ => (name, 1),
    }
}

fn failure_of<'a>(name: &'a str, line: &'a JsonLine<'_>) -> Failure<'a> {
    if line.reason == "time limit exceeded" {
        let kind = Some(FailureKind::Timeout);
        return Failure {
            kind,
            message: "timeout: the test's own time limit was exceeded",
            ..Failure::default()
        };
    }
    if line.stdout.is_empty() {
        let mut failure = rust_failure(name, &line.message);
        if line.message.starts_with("test did not panic") {
            failure.kind = Some(FailureKind::UnexpectedPass);
            failure.at = line
                .message
                .rsplit_once(" at ")
                .and_then(|(_, at)| super::place::trailing(at))
                .unwrap_or_default();
        }
        return failure;
    }
    rust_failure(name, &line.stdout)
}

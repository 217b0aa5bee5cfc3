//! What Python's unittest prints (Django's runner too): dots or a line a test, a block a failure, and a summary.

mod names;
mod summary;

use std::collections::{HashMap, HashSet};

use super::by_line::LineReader;
use super::python_crash::PythonCrash;
use super::{Head, Stream, python_failure};
use crate::{
    Attempt, Event, Failure, FailureKind, Finished, HeadTail, Place, Problem, ProblemScope, Sink, TestId,
    TestStatus,
};
use names::{Header, Subject};
use summary::Summary;

const DOUBLE_RULE: &str = "======================================================================";
const RULE: &str = "----------------------------------------------------------------------";
/// Of a failure this much is kept at each end.
const ROOM: usize = 8 << 10;
/// So many failed tests are remembered by name; more are only counted.
const MOST_FAILED: usize = 50_000;

pub(super) fn looks_like(head: &Head<'_>) -> bool {
    let ran = head.text.lines().any(|line| Summary::ran(line).is_some());
    let block = head.text.contains(DOUBLE_RULE) && head.text.contains(RULE);
    let verbose = || head.text.lines().filter_map(Header::read).any(|(header, _)| header.is_dotted());
    ran && head.text.contains(RULE) || block && head.text.contains("Traceback (most") || verbose()
}

#[derive(Debug, Default)]
pub(super) struct UnittestText {
    /// The test whose status was not printed yet.
    current: Option<Header>,
    part: Part,
    /// Tests that failed, and whether that was told.
    failed: HashMap<String, bool>,
    /// Tests that were told as skipped: before Python 3.11 perhaps only a part of one was, and another failed.
    skipped: HashSet<String>,
    /// Tests that were told with their names.
    named: u64,
    /// Blocks of classes, modules and further parts of a test: they have a character, and are no tests.
    no_tests: u64,
    verbose: bool,
    dots: summary::Dots,
    placeholders: u64,
    summary: Option<Summary>,
    /// Whether the line before was the rule that stands above the summary.
    after_rule: bool,
    crash: Option<PythonCrash>,
}

#[derive(Debug, Default)]
enum Part {
    #[default]
    Progress,
    /// After a double rule: the title of a block.
    Title(Vec<String>),
    /// Below the title.
    Body(Block),
}

#[derive(Debug)]
struct Block {
    word: Word,
    subject: Subject,
    body: HeadTail,
    output: HeadTail,
    in_output: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    Error,
    Fail,
    UnexpectedSuccess,
}

impl LineReader for UnittestText {
    fn line(&mut self, _: Stream, line: &str, sink: &mut dyn Sink) {
        if let Some(crash) = &mut self.crash
            && crash.line(line)
        {
            return;
        }
        // The death of the test at hand is printed behind its name.
        let death = line.find("Fatal Python error: ").filter(|at| *at == 0 || line[..*at].ends_with("... "));
        if let Some(at) = death {
            self.crash = PythonCrash::begins(&line[at..]);
            self.progress(&line[..at], sink);
            return;
        }
        let after_rule = std::mem::replace(&mut self.after_rule, line == RULE);
        match std::mem::take(&mut self.part) {
            // A test that still runs printed it.
            Part::Progress if self.current.is_some() && !after_rule && Summary::ran(line).is_some() => {}
            Part::Progress => self.progress(line, sink),
            Part::Title(lines) => self.title(lines, line, sink),
            Part::Body(block) => self.body(block, line, sink),
        }
    }

    fn end(&mut self, sink: &mut dyn Sink) {
        if let Part::Body(block) = std::mem::take(&mut self.part) {
            self.tell(block, sink);
        }
        self.tell_crash(sink);
        self.tell_failed_without_block(sink);
        match self.summary.take() {
            Some(summary) if summary.is_final() => self.conclude(&summary, sink),
            _ => self.conclude_cut(sink),
        }
    }
}

impl UnittestText {
    fn progress(&mut self, line: &str, sink: &mut dyn Sink) {
        if line == DOUBLE_RULE {
            self.part = Part::Title(Vec::new());
        } else if let Some(ran) = Summary::ran(line) {
            self.summary = Some(ran);
        } else if self.summary.as_mut().is_some_and(|summary| summary.result(line)) {
        } else if let Some(count) = found(line) {
            sink.event(Event::Declared(count));
        } else {
            self.status_line(line, sink);
        }
    }

    /// `test_x (tests.T.test_x) ... ok`, in one line or with the test's output between.
    fn status_line(&mut self, line: &str, sink: &mut dyn Sink) {
        let mut rest = line;
        // Before Python 3.11 a test with failed subtests has no status: the next one stands in the same line.
        while let Some((header, after)) = Header::read(rest) {
            self.verbose = true;
            self.summary = None;
            if !line.starts_with("  ") {
                self.current = Some(header);
            }
            rest = after;
        }
        let began = rest.len() < line.len();
        if !began && self.current.is_none() {
            self.dots.read(line);
            return;
        }
        let status = rest.rsplit(" ... ").next().unwrap_or(rest).trim();
        let Some(status) = names::status(status) else { return };
        let Some(header) = self.current.take() else { return };
        self.told(&header, status, sink);
    }

    fn told(&mut self, header: &Header, status: (TestStatus, &str), sink: &mut dyn Sink) {
        let (status, reason) = status;
        if header.is_placeholder() || header.is_fixture() {
            return;
        }
        let (suite, name) = (header.class(), header.name());
        if status.is_failure() {
            self.remember(name, false);
            return;
        }
        self.named += 1;
        let failure = Failure { message: reason, ..Failure::default() };
        let again = status == TestStatus::Skip && self.skipped.len() < MOST_FAILED;
        if again {
            self.skipped.insert(name.clone());
        }
        sink.event(Event::Finished(Finished {
            failure: (!reason.is_empty()).then_some(failure),
            attempt: if again { Attempt::Repeat } else { Attempt::Only },
            ..Finished::new(TestId { suite: &suite, name: &name }, status, 0)
        }));
    }

    /// Whether a failed test was told already.
    fn remember(&mut self, name: String, told: bool) -> bool {
        if self.failed.len() >= MOST_FAILED && !self.failed.contains_key(&name) {
            return false;
        }
        let known = self.failed.entry(name).or_insert(false);
        std::mem::replace(known, *known || told)
    }

    fn title(&mut self, mut lines: Vec<String>, line: &str, sink: &mut dyn Sink) {
        if line == RULE {
            let title = lines.first().map(String::as_str).unwrap_or_default();
            match names::title(title) {
                Some((word, subject)) => {
                    let (body, output) = (HeadTail::new(ROOM), HeadTail::new(ROOM));
                    self.part = Part::Body(Block { word, subject, body, output, in_output: false });
                }
                None => self.part = Part::Progress,
            }
            return;
        }
        if let Some(ran) = Summary::ran(line) {
            // An unexpected success has no body: the rule below it is the one above the summary.
            self.summary = Some(ran);
            self.part = Part::Progress;
            return;
        }
        if lines.len() < 20 {
            lines.push(line.to_owned());
            self.part = Part::Title(lines);
        } else {
            self.progress(line, sink);
        }
    }

    fn body(&mut self, mut block: Block, line: &str, sink: &mut dyn Sink) {
        if line == DOUBLE_RULE {
            self.tell(block, sink);
            self.part = Part::Title(Vec::new());
            return;
        }
        if let Some(ran) = Summary::ran(line) {
            self.tell(block, sink);
            self.summary = Some(ran);
            return;
        }
        if line == "Stdout:" || line == "Stderr:" {
            block.in_output = true;
        } else if line != RULE {
            let text = if block.in_output { &mut block.output } else { &mut block.body };
            text.push_line(line);
        }
        self.part = Part::Body(block);
    }

    fn tell(&mut self, block: Block, sink: &mut dyn Sink) {
        let Block { word, subject, body, output, .. } = block;
        let body = body.into_text();
        let message = python_failure::exception(&body);
        let at = python_failure::place(&body).unwrap_or_default();
        match subject {
            Subject::Fixture { name, of } => {
                self.no_tests += 1;
                let kind = if name.starts_with("setUp") { FailureKind::Setup } else { FailureKind::Teardown };
                sink.event(Event::Problem(problem(of, kind, message, at)));
            }
            Subject::Placeholder(module) => {
                self.placeholders += 1;
                sink.event(Event::Problem(problem(module, python_failure::kind(message), message, at)));
            }
            Subject::Test(header) => {
                let name = header.name();
                if self.remember(name.clone(), true) {
                    self.no_tests += 1;
                    return;
                }
                let again = self.skipped.remove(&name);
                let suite = header.class();
                let test = TestId { suite: &suite, name: &name };
                if word == Word::UnexpectedSuccess {
                    unexpected_success(test, sink);
                } else {
                    let failure = Failure {
                        kind: Some(around_test(&body).unwrap_or_else(|| python_failure::kind(message))),
                        message,
                        stack: &body,
                        at,
                        ..Failure::default()
                    };
                    let attempt = if again { Attempt::Repeat } else { Attempt::Only };
                    failed(test, failure, &output.into_text(), attempt, sink);
                }
                self.named += u64::from(!again);
            }
        }
    }

    fn tell_crash(&mut self, sink: &mut dyn Sink) {
        let Some(crash) = self.crash.take() else { return };
        let stack = crash.stack();
        if let Some(header) = self.current.take() {
            let (suite, name) = (header.class(), header.name());
            let test = TestId { suite: &suite, name: &name };
            let failure = Failure {
                kind: Some(crash.kind),
                message: &crash.message,
                stack: &stack,
                at: crash.place(),
                ..Failure::default()
            };
            sink.event(Event::Finished(Finished::new(test, TestStatus::Crash, 0).failure(failure)));
            return;
        }
        let at = crash.place();
        sink.event(Event::Problem(Problem {
            scope: ProblemScope::Run,
            ..problem(String::new(), crash.kind, &crash.message, at)
        }));
    }

    /// Tests whose line says that they failed, in a run that was cut before it said how.
    fn tell_failed_without_block(&mut self, sink: &mut dyn Sink) {
        let mut untold: Vec<String> =
            self.failed.drain().filter(|(_, told)| !told).map(|(name, _)| name).collect();
        untold.sort();
        for name in untold {
            self.named += 1;
            let suite = name.rsplit_once('.').map_or("", |(class, _)| class);
            sink.event(Event::Finished(Finished::new(TestId { suite, name: &name }, TestStatus::Fail, 0)));
        }
    }

    /// What the summary counts and no line named.
    fn conclude(&self, summary: &Summary, sink: &mut dyn Sink) {
        let ran = self.ran(summary);
        let mut unnamed = ran.saturating_sub(self.named);
        if !self.verbose {
            for (status, count) in
                [(TestStatus::Skip, summary.skipped), (TestStatus::Xfail, summary.expected_failures)]
            {
                let count = count.min(unnamed);
                unnamed -= count;
                sink.event(Event::Counted { status, count });
            }
        }
        sink.event(Event::Counted { status: TestStatus::Pass, count: unnamed });
        if summary.is_ok() && (!self.failed.is_empty() || self.placeholders > 0) {
            sink.event(Event::Complaint("the summary says OK, but tests failed"));
        }
        sink.event(Event::Ended { counted: Some(ran) });
    }

    /// How many tests ran, and were skipped: Python 3.12.1 does not count those, all others do.
    fn ran(&self, summary: &Summary) -> u64 {
        let ran = summary.ran.saturating_sub(self.placeholders);
        let seen = if self.verbose {
            self.named
        } else {
            self.dots.total().saturating_sub(self.no_tests + self.placeholders)
        };
        let all = ran.saturating_add(summary.skipped);
        if seen > ran && (seen == all || self.verbose && seen < all) { seen } else { ran }
    }

    /// Without a summary, only what was printed until then is known.
    fn conclude_cut(&mut self, sink: &mut dyn Sink) {
        if !self.verbose {
            self.dots.tell(sink);
        }
        if let Some(header) = self.current.take() {
            let (suite, name) = (header.class(), header.name());
            sink.event(Event::Started { test: TestId { suite: &suite, name: &name }, at: Place::default() });
        }
    }
}

fn failed(test: TestId<'_>, failure: Failure<'_>, output: &str, attempt: Attempt, sink: &mut dyn Sink) {
    if !output.trim().is_empty() {
        sink.event(Event::Output { test, text: output });
    }
    let around = matches!(failure.kind, Some(FailureKind::Setup | FailureKind::Teardown));
    let status = if around { TestStatus::Error } else { TestStatus::Fail };
    sink.event(Event::Finished(Finished { attempt, ..Finished::new(test, status, 0).failure(failure) }));
}

/// Whether a traceback comes from the method that sets a test up, or cleans up after it.
fn around_test(traceback: &str) -> Option<FailureKind> {
    let first = traceback.lines().find(|line| python_failure::file_line(line).is_some())?;
    match first.rsplit(", in ").next()?.trim() {
        "setUp" | "asyncSetUp" => Some(FailureKind::Setup),
        "tearDown" | "asyncTearDown" => Some(FailureKind::Teardown),
        _ => None,
    }
}

fn unexpected_success(test: TestId<'_>, sink: &mut dyn Sink) {
    let kind = Some(FailureKind::UnexpectedPass);
    let file = module_file(test.suite);
    let at = Place { file: file.as_deref(), line: None };
    let failure = Failure { kind, message: "unexpected success", at, ..Failure::default() };
    sink.event(Event::Finished(Finished::new(test, TestStatus::Fail, 0).failure(failure)));
}

/// `tests.test_cart.TestCart` stands in `tests/test_cart.py`.
fn module_file(class: &str) -> Option<String> {
    let (module, _) = class.rsplit_once('.')?;
    Some(format!("{}.py", module.replace('.', "/")))
}

fn problem(name: String, kind: FailureKind, message: &str, at: Place<'_>) -> Problem {
    Problem::new(ProblemScope::Suite, name, Some(kind), message).at(at)
}

/// Django says beforehand how many tests it found.
fn found(line: &str) -> Option<u64> {
    line.strip_prefix("Found ")?.strip_suffix(" test(s).")?.parse().ok()
}

#[cfg(test)]
mod tests;

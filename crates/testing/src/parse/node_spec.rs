//! `node --test` with its `spec` reporter.
//!
//! Suites and tests with subtests are told like tests, after those that they hold: only leaves are counted. What tests
//! print stands between, so the runner's own counts at the end must fit.

use super::by_line::LineReader;
use super::{Head, Stream, js_failure, milliseconds, place};
use crate::{
    Event, Failure, FailureKind, Finished, HeadTail, Place, Problem, ProblemScope, Sink, TestId, TestStatus,
};

/// Bytes at each end of one failure, and of what was printed before it.
const DETAILS: usize = 8 << 10;
/// Failed tests without a place, which the list at the end has.
const MOST_UNPLACED: usize = 1000;
const DEEPEST: usize = 200;

pub(super) fn looks_like(head: &Head<'_>) -> bool {
    head.text.lines().any(|line| {
        line.starts_with("ℹ tests ")
            || Mark::of(line).is_some_and(|mark| mark.indent == 0 && mark.symbol != '▶' && mark.has_time)
    })
}

#[derive(Debug, Default)]
pub(super) struct NodeSpec {
    open: Vec<Container>,
    pending: Option<Pending>,
    printed: Option<HeadTail>,
    ours: Counts,
    containers: Counts,
    theirs: Counts,
    phase: Phase,
    unplaced: Vec<Unplaced>,
    place: Option<(String, u32)>,
    ended: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Phase {
    #[default]
    Tests,
    Counts,
    /// `✖ failing tests:`, all of them once more, each with its place.
    Again,
}

#[derive(Debug, Default, Clone, Copy)]
struct Counts {
    passed: u64,
    failed: u64,
    skipped: u64,
}

#[derive(Debug)]
struct Container {
    indent: usize,
    name: String,
    a_child_failed: bool,
}

/// A failure whose details follow.
#[derive(Debug)]
struct Pending {
    indent: usize,
    name: String,
    ms: u64,
    text: HeadTail,
    container: Option<Container>,
}

#[derive(Debug)]
struct Unplaced {
    leaf: String,
    name: String,
    ms: u64,
    message: String,
}

/// `✖ name (3.01ms) # why`.
struct Mark<'a> {
    indent: usize,
    symbol: char,
    name: &'a str,
    has_time: bool,
    ms: u64,
    directive: Option<&'a str>,
}

impl<'a> Mark<'a> {
    fn of(line: &'a str) -> Option<Self> {
        let text = line.trim_start_matches(' ');
        let indent = line.len() - text.len();
        let symbol = text.chars().next().filter(|symbol| matches!(symbol, '✔' | '✖' | '﹣' | '▶'))?;
        let text = text[symbol.len_utf8()..].strip_prefix(' ')?;
        let timed = text.match_indices(" (").filter_map(|(at, _)| {
            let (time, rest) = text[at + 2..].split_once("ms)")?;
            let directive = rest.strip_prefix(" # ");
            let ms = time.parse::<f64>().ok()?;
            (rest.is_empty() || directive.is_some()).then_some((at, ms, directive))
        });
        Some(match timed.last() {
            Some((at, ms, directive)) => Mark {
                indent,
                symbol,
                name: &text[..at],
                has_time: true,
                ms: milliseconds::of(ms),
                directive,
            },
            None => {
                let (name, directive) = match text.rsplit_once(" # ") {
                    Some((name, why)) if symbol == '﹣' => (name, Some(why)),
                    _ => (text, None),
                };
                Mark { indent, symbol, name, has_time: false, ms: 0, directive }
            }
        })
    }
}

impl LineReader for NodeSpec {
    fn line(&mut self, _: Stream, line: &str, sink: &mut dyn Sink) {
        match self.phase {
            Phase::Again => self.again(line, sink),
            _ if line.starts_with("ℹ ") => self.information(line, sink),
            Phase::Counts if line == "✖ failing tests:" => self.phase = Phase::Again,
            _ => self.test_line(line, sink),
        }
    }

    fn end(&mut self, sink: &mut dyn Sink) {
        self.settle(sink);
        for test in std::mem::take(&mut self.unplaced) {
            tell_unplaced(&test, Place::default(), sink);
        }
        if self.ended {
            self.check(sink);
            sink.event(Event::Ended { counted: None });
        }
    }
}

impl NodeSpec {
    fn test_line(&mut self, line: &str, sink: &mut dyn Sink) {
        let Some(mark) = Mark::of(line) else { return self.other_line(line, sink) };
        self.settle(sink);
        let closes =
            self.open.last().is_some_and(|open| open.indent == mark.indent && open.name == mark.name);
        if mark.symbol == '▶' && !(closes && mark.has_time) {
            if self.open.len() < DEEPEST {
                self.open.retain(|open| open.indent < mark.indent);
                let name = mark.name.to_owned();
                self.open.push(Container { indent: mark.indent, name, a_child_failed: false });
            }
            return;
        }
        let container = if closes { self.open.pop() } else { None };
        match (mark.symbol, mark.directive) {
            ('✖', None) => self.failed(&mark, container),
            ('▶', _) => {}
            (symbol, directive) => {
                let status = match (symbol, directive) {
                    (_, Some("EXPECTED FAILURE")) => TestStatus::Xfail,
                    ('✔', None) => TestStatus::Pass,
                    _ => TestStatus::Skip,
                };
                self.ended(&mark, status, container.is_some(), sink);
            }
        }
        if self.pending.is_none() {
            self.printed = None;
        }
    }

    fn other_line(&mut self, line: &str, sink: &mut dyn Sink) {
        if let Some(pending) = &mut self.pending {
            let inside = pending.indent + 2;
            if line.len() >= inside && line.as_bytes()[..inside].iter().all(|byte| *byte == b' ') {
                pending.text.push_line(&line[inside..]);
                return;
            }
            if line.is_empty() && pending.container.is_some() && pending.text.is_empty() {
                return;
            }
            return self.settle(sink);
        }
        let printed = self.printed.get_or_insert_with(|| HeadTail::new(DETAILS));
        printed.push_line(line);
    }

    fn ended(&mut self, mark: &Mark<'_>, status: TestStatus, is_container: bool, sink: &mut dyn Sink) {
        let counts = if is_container { &mut self.containers } else { &mut self.ours };
        match status {
            TestStatus::Pass | TestStatus::Xfail => counts.passed += 1,
            _ => counts.skipped += 1,
        }
        if is_container {
            return;
        }
        let name = self.path(mark.indent, mark.name);
        let failure = mark.directive.map(|why| Failure { message: why, ..Failure::default() });
        let test = TestId { suite: "", name: &name };
        sink.event(Event::Finished(Finished { failure, ..Finished::new(test, status, mark.ms) }));
    }

    fn failed(&mut self, mark: &Mark<'_>, container: Option<Container>) {
        let name = self.path(mark.indent, mark.name);
        for open in &mut self.open {
            open.a_child_failed = true;
        }
        let text = HeadTail::new(DETAILS);
        self.pending = Some(Pending { indent: mark.indent, name, ms: mark.ms, text, container });
    }

    /// The failure before is complete.
    fn settle(&mut self, sink: &mut dyn Sink) {
        let Some(pending) = self.pending.take() else { return };
        let printed = self.printed.take().map(HeadTail::into_text).unwrap_or_default();
        let text = pending.text.into_text();
        let said = text.trim().trim_matches('\'');
        if let Some(container) = &pending.container {
            self.containers.failed += 1;
            let own =
                !said.is_empty() && !said.ends_with("subtest failed") && !said.ends_with("subtests failed");
            if container.a_child_failed {
                if own {
                    sink.event(Event::Problem(problem(&pending.name, said, FailureKind::Setup)));
                }
                return;
            }
        }
        self.ours.failed += u64::from(pending.container.is_none());
        if said == "test failed" && is_file(&pending.name) {
            return sink.event(Event::Problem(broken_file(&pending.name, &printed)));
        }
        let (message, stack) = js_failure::message_and_stack(&text);
        let message = message.trim().trim_matches('\'');
        let Some(at) = js_failure::place_of(stack) else {
            if self.unplaced.len() < MOST_UNPLACED {
                let leaf = pending.name.rsplit(" > ").next().unwrap_or_default().to_owned();
                let message = message.to_owned();
                self.unplaced.push(Unplaced { leaf, name: pending.name, ms: pending.ms, message });
            }
            return;
        };
        let (class, bare) = js_failure::class_and_message(message);
        let failure = Failure {
            kind: Some(js_failure::kind_of(class, bare)),
            message,
            stack,
            at,
            expected: property(stack, "expected: "),
            actual: property(stack, "actual: "),
        };
        let test = TestId { suite: "", name: &pending.name };
        sink.event(Event::Finished(Finished::new(test, TestStatus::Fail, pending.ms).failure(failure)));
    }

    fn path(&self, indent: usize, name: &str) -> String {
        let outer = self.open.iter().filter(|open| open.indent < indent).map(|open| open.name.as_str());
        outer.chain([name]).collect::<Vec<_>>().join(" > ")
    }

    /// `ℹ tests 11`; the last of them is the duration.
    fn information(&mut self, line: &str, sink: &mut dyn Sink) {
        let mut words = line.split(' ').skip(1);
        let (Some(what), Some(count), None) = (words.next(), words.next(), words.next()) else { return };
        if what == "duration_ms" && self.phase == Phase::Counts {
            self.ended = true;
            return self.settle(sink);
        }
        let Ok(count) = count.parse::<u64>() else { return };
        match what {
            "tests" => {
                self.phase = Phase::Counts;
                self.theirs = Counts::default();
            }
            "pass" => self.theirs.passed = count,
            "fail" | "cancelled" => self.theirs.failed = self.theirs.failed.saturating_add(count),
            "skipped" | "todo" => self.theirs.skipped = self.theirs.skipped.saturating_add(count),
            _ => {}
        }
    }

    /// The runner also counts tests that hold others.
    fn check(&self, sink: &mut dyn Sink) {
        let fits = |theirs: u64, ours: u64, more: u64| theirs >= ours && theirs <= ours.saturating_add(more);
        let good = fits(self.theirs.passed, self.ours.passed, self.containers.passed)
            && fits(self.theirs.failed, self.ours.failed, self.containers.failed)
            && fits(self.theirs.skipped, self.ours.skipped, self.containers.skipped);
        if !good {
            sink.event(Event::Complaint("the results and the runner's own counts do not agree"));
        }
    }

    fn again(&mut self, line: &str, sink: &mut dyn Sink) {
        if let Some(at) = line.strip_prefix("test at ").and_then(place::trailing) {
            self.place = at.file.map(|file| (file.to_owned(), at.line.unwrap_or(0)));
        } else if let Some(mark) = Mark::of(line).filter(|mark| mark.indent == 0)
            && let Some((file, line)) = self.place.take()
            && let Some(at) = self.unplaced.iter().position(|test| test.leaf == mark.name)
        {
            tell_unplaced(&self.unplaced.remove(at), Place::new(&file, line), sink);
        }
    }
}

fn tell_unplaced(test: &Unplaced, at: Place<'_>, sink: &mut dyn Sink) {
    let (class, bare) = js_failure::class_and_message(&test.message);
    let kind = Some(js_failure::kind_of(class, bare));
    let failure = Failure { kind, message: &test.message, at, ..Failure::default() };
    let id = TestId { suite: "", name: &test.name };
    sink.event(Event::Finished(Finished::new(id, TestStatus::Fail, test.ms).failure(failure)));
}

pub(super) fn is_file(name: &str) -> bool {
    let extension = name.rsplit('.').next().unwrap_or_default();
    matches!(extension, "js" | "mjs" | "cjs" | "ts" | "mts" | "cts" | "jsx" | "tsx")
}

/// A file that ended badly by itself; what it printed on its way stands before.
pub(super) fn broken_file(file: &str, printed: &str) -> Problem {
    let (said, stack) = js_failure::message_and_stack(printed);
    let error = said.lines().find(|line| !js_failure::class_and_message(line).0.is_empty());
    let at_file =
        |place: &Place<'_>| place.file.is_some_and(|found| found.ends_with(file) || file.ends_with(found));
    let in_text = said.lines().filter_map(place::trailing).find(at_file);
    let in_stack = stack.lines().filter_map(place::js_frame).find(at_file);
    let line = in_text.or(in_stack).and_then(|place| place.line);
    let kind = match error.map(js_failure::class_and_message) {
        Some((class, message)) => js_failure::kind_of(class, message),
        None => FailureKind::Crash,
    };
    let message = error.unwrap_or("the file ended with a bad exit code").to_owned();
    Problem::new(ProblemScope::Suite, file, Some(kind), message).placed(Some(file.to_owned()), line)
}

fn problem(name: &str, text: &str, kind: FailureKind) -> Problem {
    let (message, stack) = js_failure::message_and_stack(text);
    let at = js_failure::place_of(stack).unwrap_or_default();
    Problem::new(ProblemScope::Suite, name, Some(kind), message).at(at)
}

/// A property of the error that is printed below its frames.
fn property<'a>(stack: &'a str, name: &str) -> Option<&'a str> {
    let value = stack.lines().find_map(|line| line.trim_start().strip_prefix(name))?;
    Some(value.strip_suffix(',').unwrap_or(value)).filter(|value| !matches!(*value, "[" | "{"))
}

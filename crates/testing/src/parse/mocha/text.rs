//! What Mocha prints for people: any reporter of its own that ends with the counts and the list of failures.

use super::{hook_of, js_failure};
use crate::parse::by_line::LineReader;
use crate::parse::{Head, Stream};
use crate::{
    Event, Failure, FailureKind, Finished, HeadTail, Place, Problem, ProblemScope, Sink, TestId, TestStatus,
};

/// Names of good tests that are kept until the counts confirm them.
const MOST_NAMES: usize = 50_000;
/// Bytes at each end of one failure.
const ENTRY: usize = 16 << 10;

pub(in crate::parse) fn looks_like(head: &Head<'_>) -> bool {
    head.text.lines().any(|line| {
        passing(line).is_some()
            || line.starts_with(" Exception during run: ")
            || line.starts_with("Error: No test files found")
            || line.contains("/node_modules/mocha/lib/")
    })
}

#[derive(Debug, Default)]
pub(in crate::parse) struct MochaText {
    phase: Phase,
    /// The titles of the suites that the line stands in, each with its indentation.
    path: Vec<(usize, String)>,
    passed: Vec<String>,
    pending: Vec<String>,
    failed: Vec<String>,
    counts: Counts,
    entry: Option<Entry>,
    told: u64,
    exception: Option<HeadTail>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Phase {
    #[default]
    Tests,
    /// `1 passing (75ms)`, `2 pending`, `7 failing`.
    Counts,
    /// The list of failures.
    Failures,
}

#[derive(Debug, Default)]
struct Counts {
    passing: u64,
    pending: u64,
    failing: u64,
}

/// One failure of the list: its titles, one a line, then what was thrown.
#[derive(Debug)]
struct Entry {
    number: u64,
    titles: Vec<String>,
    titled: bool,
    text: HeadTail,
}

impl LineReader for MochaText {
    fn line(&mut self, _: Stream, line: &str, sink: &mut dyn Sink) {
        if self.exception_line(line) {
            return;
        }
        if let Some(count) = passing(line) {
            if self.phase == Phase::Failures {
                sink.event(Event::Complaint(
                    "there are two summaries, and one of them was printed by a test",
                ));
            }
            self.phase = Phase::Counts;
            self.counts = Counts { passing: count, ..Counts::default() };
            return;
        }
        match self.phase {
            Phase::Tests => self.test_line(line),
            Phase::Counts => self.counts_line(line, sink),
            Phase::Failures => self.failure_line(line, sink),
        }
    }

    fn end(&mut self, sink: &mut dyn Sink) {
        if let Some(text) = self.exception.take() {
            sink.event(Event::Problem(exception(&text.into_text())));
        }
        // After its counts, a run without failures may still print: hooks of the process, other tools.
        if self.phase == Phase::Tests {
            return self.cut_short(sink);
        }
        if self.phase == Phase::Counts {
            self.tell_counts(sink);
        }
        self.end_entry(sink);
        if let Some(count @ 1..) = self.counts.failing.checked_sub(self.told) {
            sink.event(Event::Counted { status: TestStatus::Fail, count });
        }
        let Counts { passing, pending, failing } = self.counts;
        sink.event(Event::Ended { counted: Some(passing.saturating_add(pending).saturating_add(failing)) });
    }
}

impl MochaText {
    /// `    ✔ name (12ms)`, `    - pending`, `    1) failed`, or the title of a suite.
    fn test_line(&mut self, line: &str) {
        let text = line.trim_start();
        let indent = line.len() - text.len();
        if indent >= 2
            && let Some(name) = ["✔ ", "✓ ", "√ "].iter().find_map(|mark| text.strip_prefix(mark))
        {
            let name = self.full_title(indent, without_time(name));
            keep(&mut self.passed, name);
        } else if let Some(name) = text.strip_prefix("- ").filter(|_| indent >= 2) {
            let name = self.full_title(indent, name);
            keep(&mut self.pending, name);
        } else if let Some(name) = numbered(text, self.failed.len() as u64 + 1).filter(|_| indent >= 2) {
            let name = self.full_title(indent, name);
            keep(&mut self.failed, name);
        } else if indent >= 2 && !text.is_empty() && self.path.len() < 100 {
            self.path.retain(|(outer, _)| *outer < indent);
            self.path.push((indent, text.to_owned()));
        }
    }

    fn full_title(&self, indent: usize, name: &str) -> String {
        let suites = self.path.iter().filter(|(outer, _)| *outer < indent).map(|(_, title)| title.as_str());
        suites.chain([name]).collect::<Vec<_>>().join(" ")
    }

    fn counts_line(&mut self, line: &str, sink: &mut dyn Sink) {
        let text = line.trim();
        let number = |word: &str| text.strip_suffix(word)?.parse::<u64>().ok();
        if let Some(count) = number(" pending") {
            self.counts.pending = count;
        } else if let Some(count) = number(" failing") {
            self.counts.failing = count;
        } else if self.counts.failing > 0 && numbered(text, 1).is_some() {
            self.tell_counts(sink);
            self.phase = Phase::Failures;
            self.failure_line(line, sink);
        } else if !text.is_empty() && self.counts.failing == 0 {
            // More tests follow: a test printed the counts.
            self.phase = Phase::Tests;
            self.test_line(line);
        }
    }

    /// Names are believed if they are as many as the runner counted.
    fn tell_counts(&mut self, sink: &mut dyn Sink) {
        for (status, names, count) in [
            (TestStatus::Pass, &mut self.passed, self.counts.passing),
            (TestStatus::Skip, &mut self.pending, self.counts.pending),
        ] {
            let names = std::mem::take(names);
            if names.len() as u64 == count {
                for name in &names {
                    sink.event(Event::Finished(Finished::new(TestId { suite: "", name }, status, 0)));
                }
            } else {
                sink.event(Event::Counted { status, count });
            }
        }
        self.failed.clear();
    }

    fn failure_line(&mut self, line: &str, sink: &mut dyn Sink) {
        let number = self.entry.as_ref().map_or(1, |entry| entry.number + 1);
        let titled = self.entry.as_ref().is_none_or(|entry| entry.titled);
        if titled
            && number <= self.counts.failing
            && let Some(title) = line.strip_prefix("  ").and_then(|line| numbered(line, number))
        {
            self.end_entry(sink);
            let (title, titled) = title.strip_suffix(':').map_or((title, false), |title| (title, true));
            let titles = vec![title.to_owned()];
            self.entry = Some(Entry { number, titles, titled, text: HeadTail::new(ENTRY) });
            return;
        }
        let Some(entry) = &mut self.entry else { return };
        if entry.titled || entry.titles.len() > 50 {
            entry.text.push_line(line);
        } else {
            let title = line.trim();
            entry.titled = title.ends_with(':');
            entry.titles.push(title.strip_suffix(':').unwrap_or(title).to_owned());
        }
    }

    fn end_entry(&mut self, sink: &mut dyn Sink) {
        let Some(entry) = self.entry.take() else { return };
        self.told += 1;
        let name = entry.titles.join(" ");
        let text = unindented(&entry.text.into_text());
        let (said, stack) = js_failure::message_and_stack(&text);
        let said = said.trim_start();
        let (before_diff, diff) = said.split_once("\n+ expected - actual\n").unwrap_or((said, ""));
        let (class, message) = js_failure::class_and_message(before_diff.trim_end());
        let own = entry.titles.last().and_then(|title| hook_of(title));
        let sides = sides(diff);
        let test = TestId { suite: "", name: &name };
        let failure = Failure {
            kind: Some(own.unwrap_or_else(|| js_failure::kind_of(class, message))),
            message: if class.is_empty() { message } else { before_diff.trim_end() },
            stack,
            at: js_failure::place_of(stack).unwrap_or_else(|| file_in(message)),
            expected: sides.as_ref().map(|(expected, _)| expected.as_str()),
            actual: sides.as_ref().map(|(_, actual)| actual.as_str()),
        };
        sink.event(Event::Finished(Finished::new(test, TestStatus::Fail, 0).failure(failure)));
        // The number goes on with the next one.
        self.entry = None;
        if self.told < self.counts.failing {
            let number = self.told;
            self.entry = Some(Entry { number, titles: Vec::new(), titled: true, text: HeadTail::new(0) });
        }
    }

    /// The run was ended before its counts: what was told by name is all there is.
    fn cut_short(&mut self, sink: &mut dyn Sink) {
        for (status, names) in [
            (TestStatus::Pass, &self.passed),
            (TestStatus::Skip, &self.pending),
            (TestStatus::Fail, &self.failed),
        ] {
            for name in names {
                sink.event(Event::Finished(Finished::new(TestId { suite: "", name }, status, 0)));
            }
        }
    }

    /// What Mocha says if a file cannot be loaded; all that follows belongs to it.
    fn exception_line(&mut self, line: &str) -> bool {
        if let Some(text) = &mut self.exception {
            text.push_line(line);
            return true;
        }
        let begins = [" Exception during run: ", "Error: No test files found", "Error: Cannot find module "];
        if self.phase != Phase::Tests || !begins.iter().any(|begin| line.starts_with(begin)) {
            return false;
        }
        let mut text = HeadTail::new(ENTRY);
        text.push_line(line.strip_prefix(begins[0]).unwrap_or(line));
        self.exception = Some(text);
        true
    }
}

fn keep(names: &mut Vec<String>, name: String) {
    if names.len() < MOST_NAMES {
        names.push(name);
    }
}

/// `  1 passing (75ms)`.
fn passing(line: &str) -> Option<u64> {
    let (count, time) = line.strip_prefix("  ")?.split_once(" passing (")?;
    (time.ends_with(')') && time.starts_with(|c: char| c.is_ascii_digit())).then(|| count.parse().ok())?
}

/// What follows `7) `, if that is the number.
fn numbered(text: &str, number: u64) -> Option<&str> {
    let (found, rest) = text.split_once(") ")?;
    (found.parse() == Ok(number)).then_some(rest)
}

/// Without the time that slow tests have: `name (75ms)`, `name: 0ms`.
fn without_time(name: &str) -> &str {
    let in_brackets = name.strip_suffix("ms)").and_then(|name| name.rsplit_once(" ("));
    let after_colon = name.strip_suffix("ms").and_then(|name| name.rsplit_once(": "));
    match in_brackets.or(after_colon) {
        Some((name, time)) if time.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => name,
    }
}

fn unindented(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for line in text.lines() {
        // A message is indented by five or six, if at all.
        let inner = line.strip_prefix("      ").or_else(|| line.strip_prefix("     "));
        plain.push_str(inner.unwrap_or(line));
        plain.push('\n');
    }
    plain
}

/// The two sides of a difference: lines with `-` came, lines with `+` were expected.
fn sides(diff: &str) -> Option<(String, String)> {
    let (mut expected, mut actual) = (String::new(), String::new());
    for line in diff.lines().filter(|line| !line.trim().is_empty()) {
        let (to_expected, to_actual) = (!line.starts_with('-'), !line.starts_with('+'));
        let text = line.strip_prefix(['+', '-', ' ']).unwrap_or(line);
        for (to, side) in [(to_expected, &mut expected), (to_actual, &mut actual)] {
            if to {
                side.push_str(text);
                side.push('\n');
            }
        }
    }
    (!diff.trim().is_empty()).then(|| (expected.trim_end().to_owned(), actual.trim_end().to_owned()))
}

/// Mocha ends the message of a time limit with the file of the test.
fn file_in(message: &str) -> Place<'_> {
    let file = message.trim_end().strip_suffix(')').and_then(|message| Some(message.rsplit_once(" (")?.1));
    Place { file: file.filter(|file| file.starts_with('/')), line: None }
}

fn exception(text: &str) -> Problem {
    let (said, stack) = js_failure::message_and_stack(text);
    // A syntax error begins with its place; the error itself comes last.
    let place = said.lines().next().and_then(crate::parse::place::trailing);
    let error = said.lines().rev().find(|line| {
        let (class, _) = js_failure::class_and_message(line);
        !class.is_empty()
    });
    let error = if place.is_some() { error.unwrap_or(said) } else { said };
    let (class, message) = js_failure::class_and_message(error);
    let importer =
        said.lines().find_map(|line| line.split_once(" imported from ")).map(|(_, file)| file.trim());
    let importer = Place { file: importer, line: None };
    let at = place.or_else(|| js_failure::place_of(stack)).unwrap_or(importer);
    let kind = if message.starts_with("No test files found") {
        FailureKind::Config
    } else {
        js_failure::kind_of(class, message)
    };
    Problem::new(ProblemScope::Run, "", Some(kind), error.trim()).at(at)
}

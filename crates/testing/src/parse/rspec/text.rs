//! What `RSpec` prints for people: its progress and documentation formatters.

use crate::parse::by_line::LineReader;
use crate::parse::tally::Tally;
use crate::parse::{Head, Stream, ruby_failure};
use crate::{
    Event, Failure, FailureKind, Finished, HeadTail, Place, Problem, ProblemScope, Sink, TestId, TestStatus,
};

/// Bytes at each end of one failure.
const ENTRY: usize = 16 << 10;
/// Names of good examples that are kept until the counts confirm them.
const MOST_NAMES: usize = 50_000;

pub(in crate::parse) fn looks_like(head: &Head<'_>) -> bool {
    head.text.lines().any(|line| {
        summary(line).is_some()
            || line.starts_with("Finished in ") && line.contains(" (files took ")
            || line.starts_with("Pending: (Failures listed here are expected")
            || line.starts_with("     Failure/Error: ")
            || line.starts_with("An error occurred while loading ./")
    })
}

#[derive(Debug, Default)]
pub(in crate::parse) struct RspecText {
    phase: Phase,
    entry: Option<Entry>,
    outside: Option<HeadTail>,
    named: Tally,
    dots: Tally,
    /// The last line of the documentation: a group if a deeper one follows, else an example.
    last: Option<(usize, String)>,
    groups: Vec<(usize, String)>,
    passed: Vec<String>,
    /// Examples that the documentation has.
    documented: u64,
    /// Whether something was printed between that may hide an example.
    noise: bool,
    after_finished: bool,
    after_blank: bool,
    summary: Option<Summary>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Phase {
    #[default]
    Examples,
    Pending,
    Failures,
    Over,
}

#[derive(Debug)]
struct Entry {
    number: u64,
    name: String,
    text: HeadTail,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Summary {
    examples: u64,
    failures: u64,
    pending: u64,
}

impl LineReader for RspecText {
    fn line(&mut self, _: Stream, line: &str, sink: &mut dyn Sink) {
        let after_finished = std::mem::take(&mut self.after_finished);
        let after_blank = std::mem::replace(&mut self.after_blank, line.is_empty());
        if let Some(summary) = summary(line).filter(|_| after_finished) {
            self.summary = Some(summary);
            self.phase = Phase::Over;
            return;
        }
        match line {
            "Failures:" if after_blank => return self.section(Phase::Failures, sink),
            _ if line.starts_with("Pending: (Failures listed here are expected") => {
                return self.section(Phase::Pending, sink);
            }
            _ if line.starts_with("Finished in ") && line.contains(" second") => {
                self.section(Phase::Over, sink);
                self.after_finished = true;
                return;
            }
            _ => {}
        }
        match self.phase {
            Phase::Examples => self.example_line(line, after_blank, sink),
            Phase::Pending | Phase::Failures => self.entry_line(line, sink),
            Phase::Over => {}
        }
    }

    fn end(&mut self, sink: &mut dyn Sink) {
        self.section(Phase::Over, sink);
        let Some(Summary { examples, failures, pending }) = self.summary else { return self.cut_short(sink) };
        let passed = examples.saturating_sub(failures).saturating_sub(pending);
        if self.passed.len() as u64 == passed {
            for name in &self.passed {
                let test = TestId { suite: "", name };
                sink.event(Event::Finished(Finished::new(test, TestStatus::Pass, 0)));
            }
            self.named.passed = passed;
        }
        // An example that ends the process is counted, but never shown.
        let shown = self.dots.sum().saturating_add(self.documented);
        if !self.noise && shown < examples {
            sink.event(Event::Complaint("an example was counted that never came to its end"));
        }
        Tally { passed, failed: failures, skipped: pending }.count_unnamed(self.named, sink);
        sink.event(Event::Ended { counted: Some(examples) });
    }
}

impl RspecText {
    fn section(&mut self, phase: Phase, sink: &mut dyn Sink) {
        self.end_entry(sink);
        self.end_outside(sink);
        self.example_ends(0);
        self.phase = phase;
    }

    fn example_line(&mut self, line: &str, after_blank: bool, sink: &mut dyn Sink) {
        if line.starts_with("An error occurred ") {
            self.end_outside(sink);
            self.outside = Some(HeadTail::new(ENTRY));
        }
        if let Some(text) = &mut self.outside {
            return text.push_line(line);
        }
        if !line.is_empty() && line.bytes().all(|byte| matches!(byte, b'.' | b'F' | b'*')) {
            for mark in line.bytes() {
                self.dots.add(match mark {
                    b'.' => TestStatus::Pass,
                    b'F' => TestStatus::Fail,
                    _ => TestStatus::Skip,
                });
            }
            return;
        }
        let text = line.trim_start();
        let indent = line.len() - text.len();
        // The outermost groups follow an empty line; what else stands there was printed.
        if text.is_empty() || indent % 2 == 1 || indent == 0 && !after_blank {
            self.noise |= !text.is_empty();
            return;
        }
        // What is printed without a line end has marks of examples in it; and some formatters draw bars.
        self.noise |= line.contains(['\r', '|']) || indent == 0 && line.contains(['.', 'F', '*']);
        self.example_ends(indent);
        self.last = Some((indent, text.to_owned()));
    }

    /// The line before was a group if this one stands deeper, else an example.
    fn example_ends(&mut self, indent: usize) {
        let Some((last, text)) = self.last.take() else { return };
        self.groups.retain(|(group, _)| *group < last);
        if indent > last {
            if self.groups.len() < 100 {
                self.groups.push((last, text));
            }
            return;
        }
        self.documented += u64::from(last > 0);
        let other = text.contains(" (FAILED - ") || text.contains(" (PENDING: ");
        if last > 0 && !other && self.passed.len() < MOST_NAMES {
            let name = self.groups.iter().map(|(_, group)| group.as_str()).chain([text.as_str()]);
            self.passed.push(name.collect::<Vec<_>>().join(" "));
        }
    }

    fn entry_line(&mut self, line: &str, sink: &mut dyn Sink) {
        let number = self.entry.as_ref().map_or(1, |entry| entry.number + 1);
        if let Some(rest) = line.strip_prefix("  ")
            && let Some((found, name)) = rest.split_once(") ")
            && found.parse() == Ok(number)
        {
            self.end_entry(sink);
            self.entry = Some(Entry { number, name: name.to_owned(), text: HeadTail::new(ENTRY) });
        } else if let Some(entry) = &mut self.entry {
            entry.text.push_line(line.strip_prefix("     ").unwrap_or(line));
        }
    }

    fn end_entry(&mut self, sink: &mut dyn Sink) {
        let Some(entry) = self.entry.take() else { return };
        let text = entry.text.into_text();
        if self.phase == Phase::Pending {
            self.named.skipped += 1;
            let reason = text.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or_default();
            let test = TestId { suite: "", name: &entry.name };
            let failure = Failure { message: reason, ..Failure::default() };
            return sink.event(Event::Finished(Finished::new(test, TestStatus::Skip, 0).failure(failure)));
        }
        self.named.failed += 1;
        let fixed = text.starts_with("Expected pending ");
        let name = if fixed { entry.name.strip_suffix(" FIXED").unwrap_or(&entry.name) } else { &entry.name };
        let error = Error::of(&text);
        let kind = if fixed { FailureKind::UnexpectedPass } else { error.kind() };
        let failure = Failure {
            kind: Some(kind),
            message: &error.message,
            stack: &error.stack,
            at: error.place().unwrap_or_default(),
            expected: value(&error.message, "expected: "),
            actual: value(&error.message, "got: "),
        };
        let test = TestId { suite: "", name };
        sink.event(Event::Finished(Finished::new(test, TestStatus::Fail, 0).failure(failure)));
    }

    fn end_outside(&mut self, sink: &mut dyn Sink) {
        if let Some(text) = self.outside.take()
            && let Some(problem) = outside_error(&text.into_text())
        {
            sink.event(Event::Problem(problem));
        }
    }

    /// The run was ended before its counts: what the dots say is all there is.
    fn cut_short(&mut self, sink: &mut dyn Sink) {
        for name in &self.passed {
            sink.event(Event::Finished(Finished::new(TestId { suite: "", name }, TestStatus::Pass, 0)));
        }
        self.dots.count_unnamed(self.named, sink);
    }
}

/// A failure in its parts: the line of source, the error, the frames.
struct Error {
    class: String,
    message: String,
    stack: String,
}

impl Error {
    fn of(text: &str) -> Self {
        let (mut said, mut stack) = (String::new(), String::new());
        for line in text.lines() {
            let frame = line.trim_start().starts_with("# ") && ruby_failure::frame(line).is_some();
            let part = if frame { &mut stack } else { &mut said };
            part.push_str(line);
            part.push('\n');
        }
        let said = said.trim();
        // The source may go over several lines; the error stands after the first empty one.
        let error = match said.strip_prefix("Failure/Error:") {
            Some(rest) => rest.split_once("\n\n").map_or(rest, |(_, error)| error),
            None => said,
        };
        let error = unindented(error);
        let (class, message) = ruby_failure::class_and_message(&error);
        let message =
            if class.is_empty() { error.trim().to_owned() } else { format!("{class}: {}", message.trim()) };
        Self { class: class.to_owned(), message, stack }
    }

    fn kind(&self) -> FailureKind {
        match ruby_failure::kind_of(&self.class, &self.message) {
            FailureKind::Error if self.class.is_empty() => FailureKind::Assertion,
            kind => kind,
        }
    }

    fn place(&self) -> Option<Place<'_>> {
        ruby_failure::place_of(self.stack.lines())
    }
}

/// An error outside of examples, as `RSpec` tells it: `An error occurred while loading ./spec/bad_spec.rb.`
pub(super) fn outside_error(text: &str) -> Option<Problem> {
    let (title, rest) = text.trim_start().split_once('\n')?;
    let what = title.strip_prefix("An error occurred ")?;
    let file = what.strip_prefix("while loading ").map(|file| file.trim_end_matches('.'));
    let error = Error::of(rest);
    let (scope, kind) = match file {
        Some(_) => (ProblemScope::Suite, error.kind()),
        None if what.contains("suite)") => (ProblemScope::Run, FailureKind::Setup),
        None if what.contains("after") => (ProblemScope::Suite, FailureKind::Teardown),
        None => (ProblemScope::Suite, FailureKind::Setup),
    };
    let at = error.place().unwrap_or(Place { file, line: None });
    let name = file.map_or_else(|| what.trim_end_matches('.').to_owned(), str::to_owned);
    Some(Problem::new(scope, name, Some(kind), error.message.clone()).at(at))
}

/// `11 examples, 7 failures, 2 pending, 1 error occurred outside of examples`.
fn summary(line: &str) -> Option<Summary> {
    let mut summary = Summary { examples: 0, failures: 0, pending: 0 };
    let (mut examples, mut failures) = (false, false);
    for part in line.split(", ") {
        let (number, what) = part.split_once(' ')?;
        let number = number.parse().ok()?;
        match what {
            "example" | "examples" => (summary.examples, examples) = (number, true),
            "failure" | "failures" => (summary.failures, failures) = (number, true),
            "pending" => summary.pending = number,
            _ if what.ends_with("occurred outside of examples") => {}
            _ => return None,
        }
    }
    (examples && failures).then_some(summary)
}

/// What stands after a label, to the end of its line.
pub(super) fn value<'a>(message: &'a str, label: &str) -> Option<&'a str> {
    message.lines().find_map(|line| line.trim_start().strip_prefix(label))
}

/// Without the indentation that all lines share.
fn unindented(text: &str) -> String {
    let shared =
        text.lines().filter(|line| !line.trim().is_empty()).map(|line| line.len() - line.trim_start().len());
    let shared = shared.min().unwrap_or(0);
    text.lines().map(|line| line.get(shared..).unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

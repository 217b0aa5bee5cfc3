//! Lua's busted, with its terminal outputs.

use super::by_line::LineReader;
use super::tally::Tally;
use super::{Head, Stream, place};
use crate::{
    Event, Failure, FailureKind, Finished, HeadTail, Place, Problem, ProblemScope, Sink, TestId, TestStatus,
};

/// Bytes at each end of one failure.
const ENTRY: usize = 16 << 10;

pub(super) fn looks_like(head: &Head<'_>) -> bool {
    head.text.lines().any(|line| counts(line).is_some())
}

#[derive(Debug, Default)]
pub(super) struct Busted {
    entry: Option<Entry>,
    counts: Option<Tally>,
    named: Tally,
    broken: u64,
    dots: Tally,
}

#[derive(Debug)]
struct Entry {
    status: TestStatus,
    place: String,
    name: Option<String>,
    text: HeadTail,
}

impl LineReader for Busted {
    fn line(&mut self, _: Stream, line: &str, sink: &mut dyn Sink) {
        if let Some(counts) = counts(line) {
            // A later one: the one before was printed by a test.
            self.counts = Some(counts);
            return;
        }
        if self.counts.is_none() {
            return self.dots(line);
        }
        if let Some((status, place)) = title(line) {
            self.end_entry(sink);
            let place = place.to_owned();
            self.entry = Some(Entry { status, place, name: None, text: HeadTail::new(ENTRY) });
        } else if let Some(entry) = &mut self.entry {
            if entry.name.is_none() {
                entry.name = Some(line.to_owned());
            } else {
                entry.text.push(line);
                entry.text.push("\n");
            }
        } else {
            self.dots(line);
        }
    }

    fn end(&mut self, sink: &mut dyn Sink) {
        self.end_entry(sink);
        let Some(mut counts) = self.counts else { return self.dots.count_unnamed(self.named, sink) };
        counts.failed = counts.failed.saturating_sub(self.broken);
        counts.count_unnamed(self.named, sink);
        sink.event(Event::Ended { counted: Some(counts.sum()) });
    }
}

impl Busted {
    /// `+-.*`, or `●◼◌✱`: passed, failed, pending, error.
    fn dots(&mut self, line: &str) {
        let status = |mark: char| match mark {
            '+' | '●' => Some(TestStatus::Pass),
            '-' | '◼' | '*' | '✱' => Some(TestStatus::Fail),
            '.' | '◌' => Some(TestStatus::Skip),
            _ => None,
        };
        if line.chars().all(|mark| status(mark).is_some()) {
            line.chars().filter_map(status).for_each(|status| self.dots.add(status));
        }
    }

    fn end_entry(&mut self, sink: &mut dyn Sink) {
        let Some(entry) = self.entry.take() else { return };
        let text = entry.text.into_text();
        let name = entry.name.unwrap_or_default();
        let Some((file, line)) = entry.place.rsplit_once(" @ ") else {
            self.broken += 1;
            return sink.event(Event::Problem(broken_file(&name, &entry.place)));
        };
        let hook = name.rsplit(' ').next().unwrap_or_default();
        let kind = match (entry.status, hook) {
            (TestStatus::Fail, _) => FailureKind::Assertion,
            (_, "setup" | "before_each" | "lazy_setup" | "strict_setup") => FailureKind::Setup,
            (_, "teardown" | "after_each" | "lazy_teardown") => FailureKind::Teardown,
            _ if text.contains("(a nil value)") => FailureKind::NullDeref,
            _ => FailureKind::Error,
        };
        let defined = Place { file: Some(file), line: line.parse().ok() };
        let (message, stack) = text.split_once("\nstack traceback:\n").unwrap_or((&text, ""));
        let (at, said) = match place::leading(message.trim()) {
            Some((at, said)) if place::is_own(&at) => (at, said),
            _ => (defined, message.trim()),
        };
        let expected = after(said, "Expected:\n");
        let failure = Failure {
            kind: (entry.status != TestStatus::Skip).then_some(kind),
            message: said,
            stack,
            at,
            expected,
            actual: after(said, "Passed in:\n").filter(|_| expected.is_some()),
        };
        self.named.add(entry.status);
        let test = TestId { suite: file, name: &name };
        sink.event(Event::Finished(Finished::new(test, entry.status, 0).failure(failure)));
    }
}

/// A file that cannot be loaded stands where others have their place: `Error -> spec/bad_spec.lua:1: unexpected symbol`.
fn broken_file(file: &str, said: &str) -> Problem {
    let at = place::leading(said);
    Problem::new(ProblemScope::Suite, file, Some(FailureKind::Compile), at.map_or(said, |(_, said)| said))
        .placed(
            Some(at.and_then(|(at, _)| at.file).unwrap_or(file).to_owned()),
            at.and_then(|(at, _)| at.line),
        )
}

fn after<'a>(text: &'a str, label: &str) -> Option<&'a str> {
    text.split_once(label)?.1.lines().next()
}

fn title(line: &str) -> Option<(TestStatus, &str)> {
    let (word, place) = line.split_once(" -> ").or_else(|| line.split_once(" → "))?;
    match word {
        "Failure" => Some((TestStatus::Fail, place)),
        "Error" => Some((TestStatus::Error, place)),
        "Pending" => Some((TestStatus::Skip, place)),
        _ => None,
    }
}

/// `1 success / 1 failure / 3 errors / 1 pending : 0.001672 seconds`.
fn counts(line: &str) -> Option<Tally> {
    let (counts, time) = line.split_once(" : ")?;
    if !time.ends_with(" seconds") {
        return None;
    }
    let mut numbers = [0u64; 4];
    let words = ["success", "failure", "error", "pending"];
    let mut parts = counts.split(" / ");
    for (number, expected) in numbers.iter_mut().zip(words) {
        let (count, word) = parts.next()?.split_once(' ')?;
        if !word.starts_with(expected) {
            return None;
        }
        // What a test printed without a line end may stand before.
        *number = count.parse().ok()?;
    }
    let [passed, failures, errors, skipped] = numbers;
    Some(Tally { passed, failed: failures.saturating_add(errors), skipped })
}

//! What a `GoogleTest` binary prints.

use super::by_line::LineReader;
use super::frames;
use super::{Head, Stream};
use crate::{Attempt, Event, Failure, FailureKind, Finished, HeadTail, Place, Sink, TestId, TestStatus};

const ROOM: usize = 8 << 10;
/// The marks that end a test, with what they mean.
const ENDS: [(&str, TestStatus); 3] = [
    ("[       OK ] ", TestStatus::Pass),
    ("[  FAILED  ] ", TestStatus::Fail),
    ("[  SKIPPED ] ", TestStatus::Skip),
];

/// Whether this is such a text.
pub(super) fn looks_like(head: &Head<'_>) -> bool {
    head.text
        .lines()
        .any(|line| line.starts_with("[==========] ") && line.contains(" from ") && line.contains(" test"))
}

#[derive(Debug)]
pub(super) struct Gtest {
    running: Option<String>,
    text: HeadTail,
    attempt: Attempt,
    /// What was told in this round, to hold against its summary.
    told: [u64; 3],
    summary: [u64; 3],
    counted: Option<u64>,
    in_summary: bool,
}

impl Default for Gtest {
    fn default() -> Self {
        Self {
            running: None,
            text: HeadTail::new(ROOM),
            attempt: Attempt::Only,
            told: [0; 3],
            summary: [0; 3],
            counted: None,
            in_summary: false,
        }
    }
}

impl LineReader for Gtest {
    fn line(&mut self, stream: Stream, line: &str, sink: &mut dyn Sink) {
        if stream == Stream::Err {
            return;
        }
        if let Some(rest) = line.strip_prefix("[==========] ") {
            self.frame(rest, sink);
        } else if self.in_summary {
            self.summarise(line);
        } else if let Some(name) = line.strip_prefix("[ RUN      ] ") {
            self.text = HeadTail::new(ROOM);
            self.running = Some(name.to_owned());
            sink.event(Event::Started { test: id(name), at: Place::default() });
        } else if !self.ended(line, sink) {
            self.text.push_line(line);
        }
    }

    fn end(&mut self, sink: &mut dyn Sink) {
        self.conclude(sink);
    }
}

impl Gtest {
    /// `Running 7 tests from 2 test suites.`, and at the end `7 tests from 2 test suites ran. (0 ms total)`.
    fn frame(&mut self, rest: &str, sink: &mut dyn Sink) {
        if let Some(rest) = rest.strip_prefix("Running ") {
            if self.in_summary {
                // `--gtest_repeat` runs them all again.
                self.conclude(sink);
                self.attempt = Attempt::Repeat;
            } else if let Some((count, _)) = frames::number(rest) {
                sink.event(Event::Declared(u64::from(count)));
            }
        } else if rest.contains(" ran.") {
            self.counted = frames::number(rest).map(|(count, _)| u64::from(count));
            self.in_summary = true;
        }
    }

    /// The end of the test that runs; text before the mark is what it printed last. In brief mode nothing announces
    /// a test.
    fn ended(&mut self, line: &str, sink: &mut dyn Sink) -> bool {
        for (kind, (mark, status)) in ENDS.into_iter().enumerate() {
            let Some(at) = line.rfind(mark) else { continue };
            let rest = &line[at + mark.len()..];
            // With `--gtest_print_time=0` there is none.
            let untimed = self.running.as_ref().filter(|running| without_parameter(rest) == running.as_str());
            let Some((name, ms)) = name_and_time(rest).or(untimed.map(|_| (without_parameter(rest), 0)))
            else {
                continue;
            };
            if self.running.as_ref().is_some_and(|running| running != name) {
                continue;
            }
            self.text.push(&line[..at]);
            self.running = None;
            self.told[kind] += 1;
            let text = std::mem::replace(&mut self.text, HeadTail::new(ROOM)).into_text();
            tell(name, status, ms, self.attempt, &text, sink);
            return true;
        }
        false
    }

    /// `[  PASSED  ] 3 tests.`
    fn summarise(&mut self, line: &str) {
        for (kind, mark) in ["[  PASSED  ] ", "[  FAILED  ] ", "[  SKIPPED ] "].into_iter().enumerate() {
            let Some(rest) = line.strip_prefix(mark) else { continue };
            if let Some((count, rest)) = frames::number(rest)
                && rest.starts_with(" test")
            {
                self.summary[kind] = u64::from(count);
            }
        }
    }

    /// A round is over: what it counted without naming it (brief mode) is told as that.
    fn conclude(&mut self, sink: &mut dyn Sink) {
        if !self.in_summary {
            return;
        }
        if self.attempt == Attempt::Only {
            for (status, kind) in [(TestStatus::Pass, 0), (TestStatus::Fail, 1), (TestStatus::Skip, 2)] {
                let count = self.summary[kind].saturating_sub(self.told[kind]);
                if count > 0 {
                    sink.event(Event::Counted { status, count });
                }
            }
        }
        if self.told[0] > self.summary[0] || self.told[1] > self.summary[1] {
            sink.event(Event::Complaint("the summary counts fewer tests than were told"));
        }
        let counted = self.counted.filter(|_| self.attempt == Attempt::Only);
        sink.event(Event::Ended { counted });
        (self.told, self.summary, self.in_summary) = ([0; 3], [0; 3], false);
    }
}

fn id(name: &str) -> TestId<'_> {
    TestId { suite: name.rsplit_once('.').map_or("", |(suite, _)| suite), name }
}

/// `Nums/P.Less/2, where GetParam() = 3 (0 ms)`; without a time it is a line of the summary.
fn name_and_time(text: &str) -> Option<(&str, u64)> {
    let (name, time) = text.strip_suffix(" ms)")?.rsplit_once(" (")?;
    Some((without_parameter(name), time.parse().ok()?))
}

fn without_parameter(name: &str) -> &str {
    name.split_once(", where ").map_or(name, |(name, _)| name)
}

fn tell(name: &str, status: TestStatus, ms: u64, attempt: Attempt, text: &str, sink: &mut dyn Sink) {
    let test = id(name);
    let finished = Finished { attempt, ..Finished::new(test, status, ms) };
    if status == TestStatus::Pass {
        return sink.event(Event::Finished(finished));
    }
    let (message, at) = first_failure(text);
    let thrown = message.starts_with("C++ exception") || message.contains(" exception with ");
    let kind = if thrown { FailureKind::Error } else { FailureKind::Assertion };
    let kind = (status == TestStatus::Fail).then_some(kind);
    let failure = Failure { kind, message, at, stack: text, ..Failure::default() };
    sink.event(Event::Finished(finished.failure(failure)));
}

/// What stands between the first `file:line: Failure` and the next.
fn first_failure(text: &str) -> (&str, Place<'_>) {
    let is_head = |line: &str| {
        let line = line.trim_end();
        line.ends_with(": Failure") || line.ends_with(": Skipped") || line.contains(": error: ")
    };
    let (mut start, mut end, mut at, mut place) = (None, text.len(), 0, Place::default());
    for line in text.split_inclusive('\n') {
        if is_head(line) {
            if start.is_some() {
                end = at;
                break;
            }
            place = frames::place_of_line(line.trim_end()).unwrap_or_default();
            // Microsoft's form has the message in the same line.
            start = Some(line.find(": error: ").map_or(at + line.len(), |mark| at + mark + 9));
        }
        at += line.len();
    }
    (text[start.unwrap_or(0)..end].trim(), place)
}

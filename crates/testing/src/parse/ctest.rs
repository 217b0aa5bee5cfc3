//! What `CTest` prints.

use std::collections::{BTreeMap, BTreeSet};

use super::by_line::LineReader;
use super::frames::{self, Deepest};
use super::{Head, Stream};
use crate::{Attempt, Event, Failure, FailureKind, Finished, HeadTail, Place, Sink, TestId, TestStatus};

const ROOM: usize = 4 << 10;
/// Tests that run at the same time; nobody has more cores.
const RUNNING: usize = 1024;
/// A longer name is not one of a test.
const LONGEST_NAME: usize = 1 << 10;

/// Whether this is such a text.
pub(super) fn looks_like(head: &Head<'_>) -> bool {
    head.text.lines().any(|line| {
        line.starts_with("Test project /")
            || line.starts_with("Internal ctest changing into directory: ")
            || (line.starts_with("Test project ") && line.get(14..16) == Some(":\\"))
            || (line.starts_with("Test project ") && line.get(14..16) == Some(":/"))
    })
}

#[derive(Debug, Default)]
pub(super) struct Ctest {
    running: BTreeMap<u64, Running>,
    /// A failed test, while its output may follow.
    ended: Option<(String, Outcome, u64, Attempt, HeadTail)>,
    /// Tests that failed so far: `--repeat` may run them again.
    failed: BTreeSet<u64>,
    total: Option<u64>,
    done: u64,
    is_over: bool,
}

#[derive(Debug)]
struct Running {
    name: String,
    output: HeadTail,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Outcome {
    status: TestStatus,
    kind: Option<FailureKind>,
    /// As `CTest` calls it in its list of failures.
    word: &'static str,
}

impl LineReader for Ctest {
    fn line(&mut self, stream: Stream, line: &str, sink: &mut dyn Sink) {
        if stream == Stream::Err || self.is_over {
            return;
        }
        if let Some((number, name)) = started(line) {
            self.tell(sink);
            self.start(number, name, sink);
        } else if let Some(result) = result(line).filter(|result| self.fits(result)) {
            self.tell(sink);
            self.end_test(&result, sink);
        } else if let Some(failed) = summary(line) {
            self.tell(sink);
            self.conclude(failed, sink);
        } else if line == "No tests were found!!!" {
            sink.event(Event::Ended { counted: None });
        } else {
            self.output(line);
        }
    }

    fn end(&mut self, sink: &mut dyn Sink) {
        self.tell(sink);
    }
}

impl Ctest {
    fn start(&mut self, number: u64, name: &str, sink: &mut dyn Sink) {
        if self.running.len() < RUNNING && !self.running.contains_key(&number) {
            let at = Place::default();
            sink.event(Event::Started { test: TestId { suite: "", name }, at });
            self.running.insert(number, Running { name: name.to_owned(), output: HeadTail::new(ROOM) });
        }
    }

    /// A line that a test prints is no result: that has number and name of a test that runs, and counts on.
    fn fits(&self, result: &ResultLine<'_>) -> bool {
        let counts_on = result.done.is_none_or(|(done, total)| {
            (self.done..=total).contains(&done) && self.total.is_none_or(|known| known == total)
        });
        let after =
            self.running.get(&result.number).and_then(|it| result.rest.strip_prefix(it.name.as_str()));
        counts_on && after.is_some_and(|after| after.starts_with([' ', '.']))
    }

    fn end_test(&mut self, result: &ResultLine<'_>, sink: &mut dyn Sink) {
        let Some(running) = self.running.remove(&result.number) else { return };
        if let Some((done, total)) = result.done {
            self.done = done;
            if self.total.is_none() {
                self.total = Some(total);
                sink.event(Event::Declared(total));
            }
        }
        let rest = result.rest[running.name.len()..].trim_start_matches([' ', '.']);
        let outcome = outcome(rest);
        let ms = seconds(rest);
        let again = self.failed.contains(&result.number);
        let attempt = if again || outcome.status.is_failure() { Attempt::Retry } else { Attempt::Only };
        if !outcome.status.is_failure() {
            self.failed.remove(&result.number);
        } else if self.failed.len() < RUNNING {
            self.failed.insert(result.number);
        }
        self.ended = Some((running.name, outcome, ms, attempt, running.output));
    }

    fn output(&mut self, line: &str) {
        // Verbose output has the test's number in front.
        if let Some((number, text)) = line.split_once(": ")
            && let Some(running) = number.parse().ok().and_then(|number| self.running.get_mut(&number))
        {
            running.output.push_line(text);
        } else if let Some((.., output)) = &mut self.ended {
            output.push_line(line);
        }
    }

    fn tell(&mut self, sink: &mut dyn Sink) {
        let Some((name, outcome, ms, attempt, output)) = self.ended.take() else { return };
        let test = TestId { suite: "", name: &name };
        let finished = Finished { attempt, ..Finished::new(test, outcome.status, ms) };
        if outcome.status == TestStatus::Pass {
            return sink.event(Event::Finished(finished));
        }
        let text = output.into_text();
        let is_failure = outcome.status == TestStatus::Fail;
        if is_failure && !text.trim().is_empty() {
            sink.event(Event::Output { test, text: &text });
        }
        let at = frames::place_in(&text, Deepest::First).filter(|_| is_failure).unwrap_or_default();
        let failure = Failure { kind: outcome.kind, message: outcome.word, at, ..Failure::default() };
        sink.event(Event::Finished(finished.failure(failure)));
    }

    /// The summary counts only what was not disabled, so the count of the last line is the one to hold against.
    fn conclude(&mut self, failed: u64, sink: &mut dyn Sink) {
        if failed != self.failed.len() as u64 && self.failed.len() < RUNNING {
            sink.event(Event::Complaint("the summary counts other failures than were told"));
        }
        for running in std::mem::take(&mut self.running).into_values() {
            sink.event(Event::Container(TestId { suite: "", name: &running.name }));
        }
        self.is_over = true;
        sink.event(Event::Ended { counted: self.total });
    }
}

/// `      Start  3: gtest_unit`.
fn started(line: &str) -> Option<(u64, &str)> {
    let (number, name) = line.strip_prefix("    ")?.trim_start().strip_prefix("Start ")?.split_once(": ")?;
    Some((number.trim().parse().ok()?, name)).filter(|_| name.len() <= LONGEST_NAME)
}

struct ResultLine<'a> {
    /// None for all but the first run of the same test.
    done: Option<(u64, u64)>,
    number: u64,
    /// Name, dots, result and time.
    rest: &'a str,
}

/// ` 3/10 Test  #3: gtest_unit .......................***Failed    0.01 sec`.
fn result(line: &str) -> Option<ResultLine<'_>> {
    let (before, rest) = line.split_once("Test ")?;
    let rest = rest.trim_start().strip_prefix('#')?;
    let (number, rest) = rest.split_once(": ")?;
    let done = match before.trim() {
        "" => None,
        counts => {
            let (done, total) = counts.split_once('/')?;
            Some((done.trim().parse().ok()?, total.trim().parse().ok()?))
        }
    };
    Some(ResultLine { done, number: number.trim().parse().ok()?, rest })
}

/// `33% tests passed, 6 tests failed out of 9`.
fn summary(line: &str) -> Option<u64> {
    let (percent, rest) = line.split_once("% tests passed, ")?;
    let (failed, rest) = frames::number(rest)?;
    let is_summary = percent.parse::<u32>().is_ok() && rest.contains(" failed out of ");
    is_summary.then_some(u64::from(failed))
}

fn outcome(rest: &str) -> Outcome {
    let of = |status, kind, word| Outcome { status, kind, word };
    let fail = |kind, word| of(TestStatus::Fail, Some(kind), word);
    let (before, mark) = rest.split_once("***").unwrap_or((rest, ""));
    if mark.is_empty() && before.starts_with("Passed") {
        return of(TestStatus::Pass, None, "");
    }
    let words: [(&str, Outcome); 9] = [
        ("Skipped", of(TestStatus::Skip, None, "Skipped")),
        ("Not Run (Disabled)", of(TestStatus::Skip, None, "Disabled")),
        ("Not Run", fail(FailureKind::Exit, "Not Run")),
        ("Timeout", fail(FailureKind::Timeout, "Timeout")),
        ("Exception: SegFault", fail(FailureKind::Crash, "SEGFAULT")),
        ("Exception: Illegal", fail(FailureKind::Crash, "ILLEGAL")),
        ("Exception: Numerical", fail(FailureKind::Crash, "NUMERICAL")),
        ("Exception", fail(FailureKind::Crash, "Subprocess aborted")),
        ("", fail(FailureKind::Exit, "Failed")),
    ];
    words
        .into_iter()
        .find(|(word, _)| mark.starts_with(word))
        .map_or(fail(FailureKind::Exit, "Failed"), |it| it.1)
}

fn seconds(rest: &str) -> u64 {
    let time = rest.strip_suffix(" sec").and_then(|rest| rest.rsplit(' ').next());
    let seconds: f64 = time.and_then(|time| time.parse().ok()).unwrap_or(0.0);
    std::time::Duration::try_from_secs_f64(seconds)
        .ok()
        .and_then(|time| u64::try_from(time.as_millis()).ok())
        .unwrap_or(0)
}

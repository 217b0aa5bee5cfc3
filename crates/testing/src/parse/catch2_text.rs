//! What a Catch2 binary prints.

use super::by_line::LineReader;
use super::frames;
use super::{Head, Stream};
use crate::{Event, Failure, FailureKind, Finished, HeadTail, Place, Sink, TestId, TestStatus};

const ROOM: usize = 8 << 10;
/// A name of more lines than this is none.
const LONGEST_NAME: usize = 64;

/// Whether this is such a text.
pub(super) fn looks_like(head: &Head<'_>) -> bool {
    head.text.lines().any(|line| {
        (line.contains(" is a Catch v") || line.contains(" is a Catch2 v"))
            && line.ends_with(" host application.")
    }) || head.text.lines().any(|line| line.starts_with("All tests passed (") && line.contains(" test case"))
}

/// Reads it. Only tests that did not pass are named, in a header between lines; a summary counts all.
#[derive(Debug, Default)]
pub(super) struct Catch2Text {
    state: State,
    name: Vec<String>,
    case: Option<Case>,
    told: [u64; 3],
    is_over: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    #[default]
    Between,
    /// After the first line of dashes.
    Name,
    /// After the second, where the file and then dots stand.
    Place,
}

#[derive(Debug)]
struct Case {
    name: String,
    failed: bool,
    skipped: bool,
    /// Between the first failure and the empty line after it.
    in_failure: bool,
    text: HeadTail,
    file: Option<String>,
    line: Option<u32>,
}

impl LineReader for Catch2Text {
    fn line(&mut self, stream: Stream, line: &str, sink: &mut dyn Sink) {
        if stream == Stream::Err || self.is_over {
            return;
        }
        match self.state {
            _ if is_ruler(line, '-') => self.ruler(sink),
            State::Name => {
                // Catch2 breaks names at the width of a screen.
                if self.name.len() < LONGEST_NAME && line.len() < 1 << 10 {
                    self.name.push(line.to_owned());
                }
            }
            State::Place => {
                if is_ruler(line, '.') {
                    self.state = State::Between;
                }
            }
            State::Between => self.between(line, sink),
        }
    }

    fn end(&mut self, sink: &mut dyn Sink) {
        self.tell(sink);
    }
}

impl Catch2Text {
    fn ruler(&mut self, sink: &mut dyn Sink) {
        if self.state != State::Name {
            self.state = State::Name;
            self.name.clear();
            return;
        }
        self.state = State::Place;
        // Sections are indented below the name; a long name goes on in lines that are not.
        let name: Vec<&str> =
            self.name.iter().take_while(|line| !line.starts_with("  ")).map(|line| line.trim()).collect();
        let name = name.join(" ");
        if self.case.as_ref().is_none_or(|case| case.name != name) {
            self.tell(sink);
            let at = Place::default();
            sink.event(Event::Started { test: TestId { suite: "", name: &name }, at });
            self.case = Some(Case::new(name));
        }
    }

    fn between(&mut self, line: &str, sink: &mut dyn Sink) {
        if let Some((version, _)) = line.split_once(" host application.") {
            if let Some((_, version)) = version.rsplit_once(" v") {
                sink.event(Event::Version(version));
            }
        } else if let Some(rest) = line.strip_prefix("test cases: ") {
            self.tell(sink);
            self.conclude(rest, sink);
        } else if let Some(rest) = line.strip_prefix("All tests passed (") {
            self.tell(sink);
            let count =
                rest.rsplit(" in ").next().and_then(frames::number).map_or(0, |(count, _)| u64::from(count));
            self.told[0] += count;
            self.is_over = true;
            sink.event(Event::Counted { status: TestStatus::Pass, count });
            sink.event(Event::Ended { counted: None });
        } else if line == "No tests ran" || line.starts_with("No test cases matched") {
            sink.event(Event::Ended { counted: None });
        } else if let Some(case) = &mut self.case {
            case.line(line);
        }
    }

    /// `5 | 2 passed | 1 failed | 1 skipped | 1 failed as expected`.
    fn conclude(&mut self, counts: &str, sink: &mut dyn Sink) {
        let mut parts = counts.split('|').map(str::trim);
        let total = parts.next().and_then(|total| total.parse::<u64>().ok());
        for part in parts {
            let Some((count, what)) = part.split_once(' ') else { continue };
            let Ok(count) = count.trim().parse::<u64>() else { continue };
            let (status, told) = match what.trim() {
                "passed" => (TestStatus::Pass, self.told[0]),
                "failed" => (TestStatus::Fail, self.told[1]),
                "skipped" => (TestStatus::Skip, self.told[2]),
                _ => (TestStatus::Xfail, 0),
            };
            let count = count.saturating_sub(told);
            if count > 0 {
                sink.event(Event::Counted { status, count });
            }
        }
        self.is_over = true;
        sink.event(Event::Ended { counted: total });
    }

    fn tell(&mut self, sink: &mut dyn Sink) {
        let Some(case) = self.case.take() else { return };
        let test = TestId { suite: "", name: &case.name };
        let status = match (case.failed, case.skipped) {
            (true, _) => TestStatus::Fail,
            (false, true) => TestStatus::Skip,
            // A header alone (warnings, or all results wanted) says nothing of how it ended.
            (false, false) => return sink.event(Event::Container(test)),
        };
        self.told[if case.failed { 1 } else { 2 }] += 1;
        let text = case.text.into_text();
        let thrown = text.contains("due to unexpected exception") || text.contains("due to a fatal error");
        let kind = match thrown {
            _ if !case.failed => None,
            _ if text.contains("fatal error condition") => Some(FailureKind::Crash),
            true => Some(FailureKind::Error),
            false => Some(FailureKind::Assertion),
        };
        let at = Place { file: case.file.as_deref(), line: case.line };
        let failure = Failure { kind, message: text.trim(), at, ..Failure::default() };
        sink.event(Event::Finished(Finished::new(test, status, 0).failure(failure)));
    }
}

impl Case {
    fn new(name: String) -> Self {
        Self {
            name,
            failed: false,
            skipped: false,
            in_failure: false,
            text: HeadTail::new(ROOM),
            file: None,
            line: None,
        }
    }

    fn line(&mut self, line: &str) {
        let failed = line.ends_with(": FAILED:") || line.ends_with("): FAILED:");
        if failed || line.ends_with(": SKIPPED:") {
            let is_first = failed && !self.failed;
            self.failed |= failed;
            self.skipped |= !failed;
            self.in_failure = is_first || self.text.is_empty();
            if is_first && let Some(place) = frames::place_of_line(line) {
                self.file = place.file.map(str::to_owned);
                self.line = place.line;
            }
        } else if line.is_empty() {
            self.in_failure = false;
        } else if self.in_failure {
            self.text.push_line(line);
        }
    }
}

/// A line of nothing but one character, as wide as a screen.
fn is_ruler(line: &str, of: char) -> bool {
    line.len() >= 60 && line.chars().all(|c| c == of)
}

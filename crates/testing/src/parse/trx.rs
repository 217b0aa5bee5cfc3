//! The report of .NET's test platform (`--logger trx`).

use super::Head;
use super::frames::{self, Deepest};
use super::wording::{compared, kind_of};
use super::xml::{Attributes, XmlReader};
use crate::{
    Event, Failure, FailureKind, Finished, HeadTail, Place, Problem, ProblemScope, Sink, TestId, TestStatus,
};

/// Results inside results: rows of data-driven tests. Nobody nests them deeper.
const DEEPEST: usize = 8;
const ROOM: usize = 8 << 10;

/// Whether this is such a report.
pub(super) fn looks_like(head: &Head<'_>) -> bool {
    let text = head.text.trim_start_matches('\u{feff}').trim_start();
    text.starts_with('<') && text.contains("<TestRun") && text.contains("TeamTest")
}

/// Reads one document.
#[derive(Debug, Default)]
pub(super) struct Trx {
    results: Vec<TestResult>,
    part: Option<Part>,
    has_rows: bool,
    counted: Option<u64>,
    /// What the platform says about the run as a whole, if that is bad.
    bad_end: Option<HeadTail>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Message,
    StackTrace,
    Output,
    RunError,
}

#[derive(Debug)]
struct TestResult {
    name: String,
    outcome: String,
    ms: u64,
    holds_rows: bool,
    message: HeadTail,
    stack: HeadTail,
    output: HeadTail,
}

impl XmlReader for Trx {
    fn open(&mut self, name: &str, attributes: Attributes<'_>, _: &mut dyn Sink) {
        match name {
            "UnitTestResult" | "TestResult" if self.results.len() < DEEPEST => {
                self.results.push(TestResult::new(attributes));
            }
            "InnerResults" => {
                self.has_rows = true;
                if let Some(result) = self.results.last_mut() {
                    result.holds_rows = true;
                }
            }
            "Message" if !self.results.is_empty() => self.part = Some(Part::Message),
            "StackTrace" if !self.results.is_empty() => self.part = Some(Part::StackTrace),
            "StdOut" | "StdErr" | "DebugTrace" if !self.results.is_empty() => self.part = Some(Part::Output),
            "Counters" => self.counted = attributes.get("total").and_then(|total| total.parse().ok()),
            "RunInfo" => {
                let outcome = attributes.get("outcome").unwrap_or_default();
                self.bad_end =
                    matches!(&*outcome, "Error" | "Failed" | "Aborted").then(|| HeadTail::new(ROOM));
            }
            "Text" if self.bad_end.is_some() => self.part = Some(Part::RunError),
            _ => {}
        }
    }

    fn close(&mut self, name: &str, sink: &mut dyn Sink) {
        match name {
            "UnitTestResult" | "TestResult" => {
                if let Some(result) = self.results.pop() {
                    result.tell(sink);
                }
            }
            "Message" | "StackTrace" | "StdOut" | "StdErr" | "DebugTrace" | "Text" => self.part = None,
            "RunInfo" => {
                if let Some(error) = self.bad_end.take() {
                    sink.event(Event::Problem(of_run(error.into_text())));
                }
            }
            // A test with rows is counted or not, as its adapter likes.
            "TestRun" => sink.event(Event::Ended { counted: self.counted.filter(|_| !self.has_rows) }),
            _ => {}
        }
    }
    fn text(&mut self, text: &str) {
        if self.part.is_none() {
            return;
        }
        let result = self.results.last_mut();
        match (self.part, result) {
            (Some(Part::RunError), _) => {
                if let Some(error) = &mut self.bad_end {
                    error.push(text);
                }
            }
            (Some(Part::Message), Some(result)) => result.message.push(text),
            (Some(Part::StackTrace), Some(result)) => result.stack.push(text),
            (Some(Part::Output), Some(result)) => result.output.push(text),
            _ => {}
        }
    }
}

fn of_run(message: String) -> Problem {
    let crashed =
        ["crash", "aborted", "terminated", "Stack overflow"].iter().any(|word| message.contains(word));
    Problem::new(ProblemScope::Run, "", crashed.then_some(FailureKind::Crash), message)
}

impl TestResult {
    fn new(attributes: Attributes<'_>) -> Self {
        let text = |name| attributes.get(name).unwrap_or_default().into_owned();
        Self {
            name: text("testName"),
            outcome: text("outcome"),
            ms: milliseconds(&text("duration")),
            holds_rows: false,
            message: HeadTail::new(ROOM),
            stack: HeadTail::new(ROOM),
            output: HeadTail::new(ROOM),
        }
    }

    fn tell(self, sink: &mut dyn Sink) {
        if self.holds_rows {
            return;
        }
        let test = TestId { suite: class_of(&self.name), name: &self.name };
        let status = match &*self.outcome {
            "Passed" | "PassedButRunAborted" | "Warning" | "Completed" => TestStatus::Pass,
            "NotExecuted" | "Inconclusive" | "NotRunnable" => TestStatus::Skip,
            "Pending" => return sink.event(Event::NotRun(test)),
            "InProgress" => return sink.event(Event::Started { test, at: Place::default() }),
            "Aborted" | "Disconnected" => TestStatus::Crash,
            _ => TestStatus::Fail,
        };
        let finished = Finished::new(test, status, self.ms);
        if status == TestStatus::Pass {
            return sink.event(Event::Finished(finished));
        }
        let [message, stack, output] =
            [self.message, self.stack, self.output].map(|text| text.into_text().replace("\r\n", "\n"));
        if status == TestStatus::Fail && !output.trim().is_empty() {
            sink.event(Event::Output { test, text: &output });
        }
        let said =
            if message.is_empty() && status == TestStatus::Skip { output.trim() } else { message.trim() };
        let (expected, actual) = compared(&message).unzip();
        let is_failure = status == TestStatus::Fail;
        let kind = match &*self.outcome {
            "Timeout" => Some(FailureKind::Timeout),
            _ => kind_of("", &message).or(Some(FailureKind::Error)).filter(|_| is_failure),
        };
        let at = frames::place_in(&stack, Deepest::First).unwrap_or_default();
        let failure = Failure { kind, message: said, stack: &stack, at, expected, actual };
        sink.event(Event::Finished(finished.failure(failure)));
    }
}

/// `Shop.Tests.CartTests` of `Shop.Tests.CartTests.Data(v: "a.b")`.
fn class_of(name: &str) -> &str {
    let method = name.split('(').next().unwrap_or(name);
    if method.contains(' ') {
        return "";
    }
    method.rsplit_once('.').map_or("", |(class, _)| class)
}

/// `00:00:01.5000000`.
fn milliseconds(duration: &str) -> u64 {
    let mut seconds = 0.0;
    for part in duration.split(':') {
        seconds = seconds * 60.0 + part.parse::<f64>().unwrap_or(0.0);
    }
    super::milliseconds::of_seconds(seconds)
}

//! Catch2's own XML (`-r xml`).

use super::Head;
use super::wording::kind_of;
use super::xml::{Attributes, XmlReader};
use crate::{Event, Failure, FailureKind, Finished, HeadTail, Place, Sink, TestId, TestStatus};

const ROOM: usize = 4 << 10;

/// Whether this is such a report.
pub(super) fn looks_like(head: &Head<'_>) -> bool {
    let text = head.text.trim_start_matches('\u{feff}').trim_start();
    text.starts_with('<') && (text.contains("<Catch2TestRun") || text.contains("<Catch name="))
}

/// Reads one document.
#[derive(Debug, Default)]
pub(super) struct Catch2Xml {
    case: Option<Case>,
    /// The first thing that went wrong in the test, while it is read.
    is_first: bool,
    text: Option<HeadTail>,
    counted: Option<u64>,
}

#[derive(Debug, Default)]
struct Case {
    name: String,
    file: String,
    line: Option<u32>,
    fails: u32,
    message: String,
    exception: bool,
    status: Option<TestStatus>,
    ms: u64,
}

impl XmlReader for Catch2Xml {
    fn open(&mut self, name: &str, attributes: Attributes<'_>, sink: &mut dyn Sink) {
        match name {
            "TestCase" => {
                let case = Case::new(attributes);
                let at = Place { file: Some(&case.file), line: case.line };
                sink.event(Event::Started { test: TestId { suite: "", name: &case.name }, at });
                self.case = Some(case);
            }
            "Catch2TestRun" => {
                if let Some(version) = attributes.get("catch2-version") {
                    sink.event(Event::Version(&version));
                }
            }
            "Expression" | "Exception" | "Failure" | "FatalErrorCondition" => self.failed(name, attributes),
            "Original" | "Expanded" | "Info" => self.text = Some(HeadTail::new(ROOM)),
            "OverallResult" => self.overall(attributes),
            "OverallResultsCases" => {
                let parts = ["successes", "failures", "expectedFailures", "skips"];
                let count =
                    |name| attributes.get(name).and_then(|count| count.parse::<u64>().ok()).unwrap_or(0);
                self.counted = Some(parts.into_iter().fold(0, |sum, part| count(part).saturating_add(sum)));
            }
            _ => {}
        }
    }

    fn close(&mut self, name: &str, sink: &mut dyn Sink) {
        match name {
            "Original" | "Expanded" | "Info" | "Exception" | "Failure" | "FatalErrorCondition" => {
                self.said(name)
            }
            "Expression" => self.is_first = false,
            "TestCase" => {
                if let Some(case) = self.case.take() {
                    case.tell(sink);
                }
            }
            "Catch" | "Catch2TestRun" => sink.event(Event::Ended { counted: self.counted }),
            _ => {}
        }
    }

    fn text(&mut self, text: &str) {
        if let Some(kept) = &mut self.text {
            kept.push(text);
        }
    }
}

impl Catch2Xml {
    fn failed(&mut self, name: &str, attributes: Attributes<'_>) {
        let Some(case) = &mut self.case else { return };
        self.is_first = false;
        if attributes.get("success").is_some_and(|success| success == "true") {
            return;
        }
        case.fails += 1;
        if case.fails > 1 {
            return;
        }
        self.is_first = true;
        case.exception = name != "Expression";
        if let Some(file) = attributes.get("filename") {
            case.file = file.into_owned();
            case.line = attributes.get("line").and_then(|line| line.parse().ok());
        }
        if name != "Expression" {
            self.text = Some(HeadTail::new(ROOM));
        }
    }

    fn overall(&mut self, attributes: Attributes<'_>) {
        let Some(case) = &mut self.case else { return };
        let is = |name, value| attributes.get(name).is_some_and(|it| it == value);
        let skips = attributes.get("skips").is_some_and(|skips| skips != "0");
        case.status = Some(match (is("success", "true"), case.fails > 0) {
            (false, _) => TestStatus::Fail,
            // A test that is declared to fail is good if it does.
            (true, true) => TestStatus::Xfail,
            (true, false) if skips => TestStatus::Skip,
            (true, false) => TestStatus::Pass,
        });
        let seconds = attributes.get("durationInSeconds").and_then(|time| time.parse().ok()).unwrap_or(0.0);
        case.ms = super::milliseconds::of_seconds(seconds);
    }

    fn said(&mut self, name: &str) {
        let text = self.text.take().map(HeadTail::into_text).unwrap_or_default();
        let Some(case) = self.case.as_mut().filter(|_| self.is_first) else { return };
        if name == "Expanded" {
            case.message.push_str("\nwith expansion: ");
        }
        case.message.push_str(text.trim());
        if !matches!(name, "Original" | "Expanded") {
            self.is_first = false;
        }
    }
}

impl Case {
    fn new(attributes: Attributes<'_>) -> Self {
        let text = |name| attributes.get(name).unwrap_or_default().into_owned();
        let line = attributes.get("line").and_then(|line| line.parse().ok());
        Self { name: text("name"), file: text("filename"), line, ..Self::default() }
    }

    fn tell(self, sink: &mut dyn Sink) {
        let test = TestId { suite: "", name: &self.name };
        // Without its own word on how it ended, a test is as good as what failed in it.
        let by_count = if self.fails > 0 { TestStatus::Fail } else { TestStatus::Pass };
        let finished = Finished::new(test, self.status.unwrap_or(by_count), self.ms);
        let kind = if self.exception { Some(FailureKind::Error) } else { Some(FailureKind::Assertion) };
        let failure = Failure {
            kind: kind_of("", &self.message).filter(|kind| *kind == FailureKind::NullDeref).or(kind),
            message: &self.message,
            at: Place { file: Some(&self.file), line: self.line },
            ..Failure::default()
        };
        let good = finished.status == TestStatus::Pass;
        sink.event(Event::Finished(if good { finished } else { finished.failure(failure) }));
    }
}

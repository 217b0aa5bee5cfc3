//! `RSpec`: its JSON report, and (in `text`) what it prints for people.

mod text;

use serde::Deserialize;
use serde_json::Value;

use super::json::{JsonReader, JsonReport};
use super::{Head, milliseconds, ruby_failure};
use crate::{Event, Failure, FailureKind, Finished, Place, Sink, TestId, TestStatus};
pub(super) use text::{RspecText, looks_like as looks_like_text};

pub(super) fn looks_like_json(head: &Head<'_>) -> bool {
    let found = |at: &str| head.text.contains(at);
    found("{\"version\":\"") && (found("\"examples\":[") || found("\"summary_line\":\""))
        || found("\"errors_outside_of_examples_count\":") && found("\"summary_line\":")
}

#[derive(Debug, Deserialize)]
struct Example {
    full_description: String,
    status: String,
    #[serde(default)]
    file_path: String,
    #[serde(default)]
    line_number: Option<u32>,
    #[serde(default)]
    run_time: Option<f64>,
    #[serde(default)]
    pending_message: Option<String>,
    #[serde(default)]
    exception: Option<Exception>,
}

#[derive(Debug, Deserialize)]
struct Exception {
    class: String,
    #[serde(default)]
    message: Option<String>,
    #[serde(default)]
    backtrace: Option<Vec<String>>,
}

#[derive(Debug, Deserialize)]
struct Summary {
    example_count: u64,
}

/// The report, one document at the end.
pub(super) type RspecJson = JsonReport<Reading>;

#[derive(Debug, Default)]
pub(super) struct Reading {
    summary: Option<Summary>,
}

impl JsonReader for Reading {
    const PATHS: &'static [&'static str] = &["version", "messages[]", "examples[]", "summary", ""];

    fn element(&mut self, path: &str, element: Value, sink: &mut dyn Sink) {
        match path {
            "version" => {
                if let Some(version) = element.as_str() {
                    sink.event(Event::Version(version));
                }
            }
            "messages[]" => {
                if let Some(message) = element.as_str()
                    && let Some(problem) = text::outside_error(message)
                {
                    sink.event(Event::Problem(problem));
                }
            }
            "examples[]" => {
                if let Ok(example) = serde_json::from_value::<Example>(element) {
                    example.tell(sink);
                }
            }
            "summary" => self.summary = serde_json::from_value(element).ok(),
            _ => {
                if let Some(summary) = self.summary.take() {
                    sink.event(Event::Ended { counted: Some(summary.example_count) });
                }
            }
        }
    }

    fn end_of_input(&mut self, is_inside: bool, _: &mut dyn Sink) -> bool {
        is_inside && self.summary.is_some()
    }
}

impl Example {
    fn tell(&self, sink: &mut dyn Sink) {
        let status = match self.status.as_str() {
            "passed" => TestStatus::Pass,
            "pending" => TestStatus::Skip,
            "failed" => TestStatus::Fail,
            _ => return,
        };
        let test = TestId { suite: &self.file_path, name: &self.full_description };
        let ms = milliseconds::of_seconds(self.run_time.unwrap_or(0.0));
        let finished = Finished::new(test, status, ms);
        let Some(exception) = self.exception.as_ref().filter(|_| status == TestStatus::Fail) else {
            let reason = self.pending_message.as_deref().unwrap_or_default();
            let failure = (!reason.is_empty()).then(|| Failure { message: reason, ..Failure::default() });
            return sink.event(Event::Finished(Finished { failure, ..finished }));
        };
        let frames = exception.backtrace.as_deref().unwrap_or_default();
        let stack = frames.join("\n");
        let at = ruby_failure::place_of(frames.iter().map(String::as_str));
        let message = exception.said(self.pending_message.as_deref());
        let failure = Failure {
            kind: Some(ruby_failure::kind_of(&exception.class, &message)),
            message: &message,
            stack: &stack,
            at: at.unwrap_or(Place { file: Some(&self.file_path), line: self.line_number }),
            expected: text::value(&message, "expected: "),
            actual: text::value(&message, "got: "),
        };
        sink.event(Event::Finished(finished.failure(failure)));
    }
}

impl Exception {
    /// The message, with its class where that says more; of a pending example that passed, as people see it.
    fn said(&self, pending: Option<&str>) -> String {
        let message = self.message.as_deref().unwrap_or_default().trim();
        match (ruby_failure::kind_of(&self.class, message), pending) {
            (FailureKind::UnexpectedPass, Some(why)) => {
                format!("Expected pending '{why}' to fail. No error was raised.")
            }
            (FailureKind::Assertion, _) => message.to_owned(),
            _ => format!("{}: {message}", self.class),
        }
    }
}

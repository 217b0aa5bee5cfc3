//! Mocha: its JSON report, its stream of JSON, and (in `text`) what it prints for people.

mod text;

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;

use super::by_line::LineReader;
use super::json::{JsonReader, JsonReport};
use super::{Head, Stream, js_failure, milliseconds};
use crate::{Attempt, Event, Failure, FailureKind, Finished, Place, Sink, TestId, TestStatus};
pub(super) use text::{MochaText, looks_like as looks_like_text};

/// Attempts of one test that are told one by one.
const MOST_RETRIES: u32 = 100;

pub(super) fn looks_like_json(head: &Head<'_>) -> bool {
    let mut last = "";
    head.text.lines().any(|line| {
        let begins = line.contains("{\"stats\":{\"suites\":");
        let pretty =
            last.ends_with('{') && line.trim() == "\"stats\": {" && head.text.contains("\"suites\":");
        last = line.trim_end();
        begins || pretty
    })
}

pub(super) fn looks_like_stream(head: &Head<'_>) -> bool {
    head.text.lines().any(|line| line.ends_with("}]") && line.contains("[\"start\",{\"total\":"))
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Test<'a> {
    #[serde(borrow, default)]
    title: Cow<'a, str>,
    #[serde(borrow, default)]
    full_title: Cow<'a, str>,
    #[serde(borrow, default)]
    file: Option<Cow<'a, str>>,
    #[serde(default)]
    duration: Option<f64>,
    #[serde(default)]
    current_retry: Option<u32>,
    /// A message in the stream, an object in the report.
    #[serde(borrow, default)]
    err: Option<Thrown<'a>>,
    #[serde(borrow, default)]
    stack: Option<Cow<'a, str>>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Thrown<'a> {
    Message(#[serde(borrow)] Cow<'a, str>),
    Error(#[serde(borrow)] Error<'a>),
    Other(serde::de::IgnoredAny),
}

/// What was thrown; anything can be, so no field has a certain type.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Error<'a> {
    #[serde(borrow)]
    stack: Text<'a>,
    #[serde(borrow)]
    message: Text<'a>,
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow)]
    actual: Text<'a>,
    #[serde(borrow)]
    expected: Text<'a>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Text<'a> {
    Text(#[serde(borrow)] Cow<'a, str>),
    Other(serde::de::IgnoredAny),
}

impl Default for Text<'_> {
    fn default() -> Self {
        Self::Other(serde::de::IgnoredAny)
    }
}

impl Text<'_> {
    fn get(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Other(_) => None,
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Stats {
    passes: u64,
    pending: u64,
    failures: u64,
}

/// The report: `{"stats": …, "tests": […], "pending": […], "failures": […], "passes": […]}`. Every test is in one of the
/// last three, and what failed in a hook is in `failures` only.
pub(super) type MochaJson = JsonReport<Reading>;

#[derive(Debug, Default)]
pub(super) struct Reading {
    stats: Option<Stats>,
    reports: u64,
}

impl JsonReader for Reading {
    const PATHS: &'static [&'static str] = &["stats", "pending[]", "failures[]", "passes[]", ""];

    fn element(&mut self, path: &str, element: Value, sink: &mut dyn Sink) {
        match path {
            "stats" => {
                self.stats = serde_json::from_value(element).ok();
                self.reports += u64::from(self.stats.is_some());
            }
            "" => end_report(self.stats.take(), self.reports, sink),
            // What a test prints can be JSON too: only what follows `stats` is the report.
            _ if self.stats.is_none() => {}
            "passes[]" => tell(&element, TestStatus::Pass, sink),
            "pending[]" => tell(&element, TestStatus::Skip, sink),
            _ => tell(&element, TestStatus::Fail, sink),
        }
    }

    fn end_of_input(&mut self, is_inside: bool, _: &mut dyn Sink) -> bool {
        is_inside && self.stats.is_some()
    }
}

fn end_report(stats: Option<Stats>, reports: u64, sink: &mut dyn Sink) {
    let Some(stats) = stats else { return };
    if reports > 1 {
        sink.event(Event::Complaint("there are two reports, and one of them was printed by a test"));
    }
    let counted = stats.passes.saturating_add(stats.pending).saturating_add(stats.failures);
    sink.event(Event::Ended { counted: Some(counted) });
}

fn tell(element: &Value, status: TestStatus, sink: &mut dyn Sink) {
    if let Ok(test) = Test::deserialize(element) {
        test.tell(status, sink);
    }
}

impl Test<'_> {
    fn tell(&self, status: TestStatus, sink: &mut dyn Sink) {
        let file = self.file.as_deref().unwrap_or_default();
        let test = TestId { suite: file, name: &self.full_title };
        let retries = self.current_retry.unwrap_or(0).min(MOST_RETRIES);
        let attempt = if retries > 0 { Attempt::Retry } else { Attempt::Only };
        for _ in 0..retries {
            sink.event(Event::Finished(Finished { attempt, ..Finished::new(test, TestStatus::Fail, 0) }));
        }
        let ms = milliseconds::of(self.duration.unwrap_or(0.0));
        let failure = (status == TestStatus::Fail).then(|| self.failure(file));
        sink.event(Event::Finished(Finished { failure, attempt, ..Finished::new(test, status, ms) }));
    }

    fn failure<'a>(&'a self, file: &'a str) -> Failure<'a> {
        let (message, stack, class, expected, actual) = match &self.err {
            Some(Thrown::Error(error)) => (
                error.message.get().unwrap_or_default(),
                error.stack.get().unwrap_or_default(),
                error.name.get().unwrap_or_default(),
                error.expected.get(),
                error.actual.get(),
            ),
            Some(Thrown::Message(message)) => (message.as_ref(), "", "", None, None),
            _ => ("", "", "", None, None),
        };
        let stack = self.stack.as_deref().unwrap_or(stack);
        let class = if class.is_empty() { js_failure::class_and_message(stack).0 } else { class };
        let (_, frames) = js_failure::message_and_stack(stack);
        let fallback = Place { file: (!file.is_empty()).then_some(file), line: None };
        let kind = hook_of(&self.title).unwrap_or_else(|| js_failure::kind_of(class, message));
        let at = js_failure::place_of(frames).unwrap_or(fallback);
        let message = if message.is_empty() { stack } else { message };
        Failure { kind: Some(kind), message, stack: frames, at, expected, actual }
    }
}

/// A failed hook is told as if it were a test: `"before each" hook: connect db for "one"`.
fn hook_of(title: &str) -> Option<FailureKind> {
    let hook = title.strip_prefix('"')?;
    let (when, rest) = hook.split_once("\" hook")?;
    if !(rest.is_empty() || rest.starts_with([':', ' '])) {
        return None;
    }
    match when {
        "before all" | "before each" => Some(FailureKind::Setup),
        "after all" | "after each" => Some(FailureKind::Teardown),
        _ => None,
    }
}

/// The stream: one array a line, `["pass",{…}]`.
#[derive(Debug, Default)]
pub(super) struct MochaStream {
    over: bool,
}

impl LineReader for MochaStream {
    fn line(&mut self, stream: Stream, line: &str, sink: &mut dyn Sink) {
        if self.over || stream == Stream::Err || !line.ends_with("}]") {
            return;
        }
        // What a test printed without a line end stands before.
        let event = line.match_indices("[\"").find_map(|(at, _)| {
            serde_json::from_str::<(String, Value)>(&line[at..]).ok().filter(|(_, value)| value.is_object())
        });
        let Some((event, value)) = event else { return };
        match event.as_str() {
            "pass" => tell(&value, TestStatus::Pass, sink),
            "fail" => tell(&value, TestStatus::Fail, sink),
            "start" => {
                if let Some(total) = value["total"].as_u64() {
                    sink.event(Event::Declared(total));
                }
            }
            "end" => {
                self.over = true;
                end_stream(value, sink);
            }
            _ => {}
        }
    }

    fn end(&mut self, _: &mut dyn Sink) {}
}

/// Pending tests are only counted, and only here.
fn end_stream(stats: Value, sink: &mut dyn Sink) {
    let Ok(stats) = serde_json::from_value::<Stats>(stats) else { return };
    if stats.pending > 0 {
        sink.event(Event::Counted { status: TestStatus::Skip, count: stats.pending });
    }
    end_report(Some(stats), 1, sink);
}

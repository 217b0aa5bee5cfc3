//! One `<testcase>`, from its tag to its end.

use crate::parse::frames::{self, Deepest};
use crate::parse::java;
use crate::parse::wording::{compared, kind_of};
use crate::parse::xml::Attributes;
use crate::{Failure, FailureKind, HeadTail, Place, TestStatus};

use super::dialect::Dialect;

/// Bytes at each end of a failure's text: enough for the frames of any trace that a person would read.
const ROOM_FOR_BODY: usize = 32 << 10;
/// Bytes at each end of what a test printed.
const ROOM_FOR_OUTPUT: usize = 4 << 10;
/// A message is what a person reads; some writers put whole documents there.
const LONGEST_MESSAGE: usize = 16 << 10;

/// What is known of the test so far. Its buffers are used again for the next.
#[derive(Debug)]
pub(super) struct Case {
    pub name: String,
    pub class: String,
    /// `PHPUnit` alone writes the class a second time, with its namespace.
    pub has_class: bool,
    pub php_class: String,
    pub file: String,
    pub line: Option<u32>,
    pub status: String,
    pub ms: u64,
    pub outcome: Option<Outcome>,
    /// Also skipped, though something failed: planned tests of `node:test`.
    pub skipped: bool,
    pub exception: String,
    pub message: String,
    pub body: HeadTail,
    pub output: HeadTail,
    /// How often it failed before.
    pub reruns: u32,
    pub rerun_message: String,
    pub rerun_body: HeadTail,
}

/// The element that tells how a test ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Failure,
    Error,
    Skipped,
    Warning,
}

impl Default for Case {
    fn default() -> Self {
        Self {
            name: String::new(),
            class: String::new(),
            has_class: false,
            php_class: String::new(),
            file: String::new(),
            line: None,
            status: String::new(),
            ms: 0,
            outcome: None,
            skipped: false,
            exception: String::new(),
            message: String::new(),
            body: HeadTail::new(ROOM_FOR_BODY),
            output: HeadTail::new(ROOM_FOR_OUTPUT),
            reruns: 0,
            rerun_message: String::new(),
            rerun_body: HeadTail::new(ROOM_FOR_BODY),
        }
    }
}

impl Case {
    /// Begins anew.
    pub(super) fn begin(&mut self, attributes: Attributes<'_>) {
        self.clear();
        for (name, value) in attributes.all() {
            match name {
                "name" => set(&mut self.name, &value),
                "classname" => set(&mut self.class, &value),
                "class" => {
                    self.has_class = true;
                    set(&mut self.php_class, &value);
                }
                "file" | "filepath" => set(&mut self.file, &value),
                "line" | "lineno" => self.line = value.parse().ok(),
                "status" => set(&mut self.status, &value),
                // GoogleTest tells more here than in the status.
                "result" if value == "suppressed" || value == "skipped" => set(&mut self.status, &value),
                "time" | "duration" => self.ms = milliseconds(&value),
                _ => {}
            }
        }
    }

    pub(super) fn clear(&mut self) {
        for text in [
            &mut self.name,
            &mut self.class,
            &mut self.php_class,
            &mut self.file,
            &mut self.status,
            &mut self.exception,
            &mut self.message,
            &mut self.rerun_message,
        ] {
            text.clear();
        }
        (self.has_class, self.skipped, self.line, self.ms, self.reruns) = (false, false, None, 0, 0);
        self.outcome = None;
        for (text, room) in [
            (&mut self.body, ROOM_FOR_BODY),
            (&mut self.output, ROOM_FOR_OUTPUT),
            (&mut self.rerun_body, ROOM_FOR_BODY),
        ] {
            if !text.is_empty() {
                *text = HeadTail::new(room);
            }
        }
    }

    /// Takes an element that tells how it ended: the worst counts, the first of equals has the word.
    pub(super) fn end_with(&mut self, outcome: Outcome, attributes: Attributes<'_>) {
        self.skipped |= outcome == Outcome::Skipped;
        let is_worse = match (self.outcome, outcome) {
            (None | Some(Outcome::Warning), _) => true,
            (Some(Outcome::Skipped), new) => matches!(new, Outcome::Failure | Outcome::Error),
            (Some(Outcome::Failure | Outcome::Error), _) => false,
        };
        if is_worse {
            self.outcome = Some(outcome);
            self.message.clear();
            self.exception.clear();
            if !self.body.is_empty() {
                self.body = HeadTail::new(ROOM_FOR_BODY);
            }
            for (name, value) in attributes.all() {
                match name {
                    "message" => set(&mut self.message, &value),
                    "type" => set(&mut self.exception, &value),
                    _ => {}
                }
            }
            shorten(&mut self.message);
        } else if !self.body.is_empty() {
            self.body.push("\n");
        }
    }

    /// Takes an attempt that failed and was followed by another.
    pub(super) fn rerun(&mut self, attributes: Attributes<'_>) {
        self.reruns += 1;
        if self.reruns == 1 {
            let message = attributes.get("message").or_else(|| attributes.get("type")).unwrap_or_default();
            self.rerun_message.push_str(&message);
            shorten(&mut self.rerun_message);
        }
    }

    pub(super) fn status(&self, dialect: Dialect) -> TestStatus {
        if dialect == Dialect::Own && self.outcome.is_some() {
            return match &*self.exception {
                "error" => TestStatus::Error,
                "crash" => TestStatus::Crash,
                "timeout" => TestStatus::Timeout,
                "skip" => TestStatus::Skip,
                "xfail" => TestStatus::Xfail,
                "not_run" => TestStatus::NotRun,
                _ => TestStatus::Fail,
            };
        }
        let planned = self.skipped && dialect == Dialect::NodeTest;
        match self.outcome {
            Some(Outcome::Failure | Outcome::Error) if planned => TestStatus::Skip,
            Some(Outcome::Error)
                if dialect == Dialect::Phpunit && self.exception.ends_with("RiskyTestError") =>
            {
                TestStatus::Pass
            }
            Some(Outcome::Error) if dialect == Dialect::Pytest => {
                if self.message.contains("' crashed while running '") {
                    TestStatus::Crash
                } else {
                    TestStatus::Error
                }
            }
            Some(Outcome::Failure | Outcome::Error) => TestStatus::Fail,
            Some(Outcome::Skipped) if self.exception == "pytest.xfail" => TestStatus::Xfail,
            Some(Outcome::Skipped) if dialect == Dialect::Ctest && self.did_not_run() => TestStatus::Fail,
            Some(Outcome::Skipped) => TestStatus::Skip,
            Some(Outcome::Warning) | None => match &*self.status {
                "skipped" | "disabled" | "ignored" | "pending" | "notrun" | "suppressed" => TestStatus::Skip,
                "failed" | "failure" | "error" => TestStatus::Fail,
                _ => TestStatus::Pass,
            },
        }
    }

    /// `CTest` says `skipped` of what it could not even start, and means a failure.
    fn did_not_run(&self) -> bool {
        self.status == "notrun" && !self.message.starts_with("SKIP_") && self.message != "Disabled"
    }

    /// What there is to say about a test that did not pass.
    pub(super) fn told(&mut self, dialect: Dialect) -> Told {
        let body =
            std::mem::replace(&mut self.body, HeadTail::new(ROOM_FOR_BODY)).into_text().replace("\r\n", "\n");
        let body = body.trim_matches('\n');
        let body = if dialect == Dialect::Phpunit { without_name(body) } else { body };
        let mut message = self.message.replace("\r\n", "\n");
        if message.trim().is_empty() || (dialect == Dialect::Pytest && message == "collection failure") {
            message = if dialect == Dialect::Pytest {
                errors_of_pytest(body)
            } else {
                before_frames(body).to_owned()
            };
        }
        // Its message is only where the panic was; what it said stands below.
        if dialect == Dialect::Nextest && message.contains(" panicked at ") && body.lines().count() > 1 {
            before_frames(body).clone_into(&mut message);
        }
        if message.is_empty() && matches!(self.outcome, Some(Outcome::Failure | Outcome::Error)) {
            message.clone_from(&self.exception);
        }
        let mut told = Told { kind: self.kind(dialect, &message, body), message, ..Told::default() };
        if dialect == Dialect::Ctest && self.did_not_run() {
            told.message = format!("Not Run: {}", told.message);
        }
        self.locate(dialect, body, &mut told);
        if let Some((expected, actual)) = compared(&told.message).or_else(|| compared(body)) {
            told.expected = Some(expected.to_owned());
            told.actual = Some(actual.to_owned());
        }
        body.clone_into(&mut told.stack);
        told
    }

    fn locate(&mut self, dialect: Dialect, body: &str, told: &mut Told) {
        let deepest = if dialect == Dialect::Pytest || body.contains("Traceback (most recent") {
            Deepest::Last
        } else {
            Deepest::First
        };
        if dialect == Dialect::Java
            && let Some(found) = java::place_in(body, &self.class)
        {
            told.file = Some(found.file);
            told.line = Some(found.line);
            return;
        }
        let output = if dialect == Dialect::Ctest && body.is_empty() {
            self.output.clone().into_text()
        } else {
            String::new()
        };
        let found = frames::place_in(body, deepest)
            .or_else(|| frames::place_in(&told.message, deepest))
            .or_else(|| frames::place_in(&output, deepest));
        match found {
            Some(place) => {
                told.line = place.line;
                told.file = place.file.map(str::to_owned);
            }
            None if !self.file.is_empty() => {
                told.file = Some(std::mem::take(&mut self.file));
                // pytest counts lines from 0 here.
                told.line = self.line.map(|line| line + u32::from(dialect == Dialect::Pytest));
            }
            None => {}
        }
    }

    fn kind(&self, dialect: Dialect, message: &str, body: &str) -> Option<FailureKind> {
        if dialect == Dialect::Pytest && self.outcome == Some(Outcome::Error) {
            return if message.contains("' crashed while running '") {
                Some(FailureKind::Crash)
            } else if self.message.starts_with("failed on teardown") {
                Some(FailureKind::Teardown)
            } else if self.message.starts_with("failed on setup") {
                Some(FailureKind::Setup)
            } else {
                kind_of(&self.exception, message).or(Some(FailureKind::Error))
            };
        }
        if dialect == Dialect::Ctest {
            return Some(match message {
                "Timeout" => FailureKind::Timeout,
                "SEGFAULT" | "ILLEGAL" | "INTERRUPT" | "NUMERICAL" | "OTHER_FAULT" | "Subprocess aborted" => {
                    FailureKind::Crash
                }
                _ => FailureKind::Exit,
            });
        }
        match &*self.exception {
            "test abort" => return Some(FailureKind::Crash),
            "test timeout" => return Some(FailureKind::Timeout),
            _ => {}
        }
        // `node:test` wraps what was thrown.
        let cause = body.lines().find(|line| line.trim_start().starts_with("cause: "));
        let first = cause.or_else(|| body.lines().next()).unwrap_or_default();
        let by_words = kind_of(&self.exception, message).or_else(|| kind_of("", first));
        by_words.or(match self.outcome {
            Some(Outcome::Failure) if self.exception.is_empty() => None,
            Some(Outcome::Failure | Outcome::Error) => Some(FailureKind::Error),
            _ => None,
        })
    }
}

/// What a test that did not pass says, in its own texts.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub kind: Option<FailureKind>,
    pub message: String,
    pub stack: String,
    pub file: Option<String>,
    pub line: Option<u32>,
    pub expected: Option<String>,
    pub actual: Option<String>,
}

impl Told {
    pub(super) fn failure(&self) -> Failure<'_> {
        Failure {
            kind: self.kind,
            message: self.message.trim(),
            stack: &self.stack,
            at: Place { file: self.file.as_deref(), line: self.line },
            expected: self.expected.as_deref(),
            actual: self.actual.as_deref(),
        }
    }
}

fn set(text: &mut String, value: &str) {
    text.clear();
    text.push_str(value);
}

fn shorten(text: &mut String) {
    text.truncate(text.floor_char_boundary(LONGEST_MESSAGE));
}

/// Seconds; some write thousands with a comma.
fn milliseconds(value: &str) -> u64 {
    let seconds: f64 = value.parse().or_else(|_| value.replace(',', "").parse()).unwrap_or(0.0);
    crate::parse::milliseconds::of_seconds(seconds)
}

/// `PHPUnit` repeats the test's name before what it says.
fn without_name(body: &str) -> &str {
    match body.split_once('\n') {
        Some((first, rest)) if first.contains("::") => rest,
        _ => body,
    }
}

/// The lines that pytest marks with `E`.
fn errors_of_pytest(body: &str) -> String {
    let marked: Vec<&str> = body
        .lines()
        .filter_map(|line| line.strip_prefix("E "))
        .map(|line| line.strip_prefix("  ").unwrap_or(line))
        .collect();
    if marked.is_empty() { body.to_owned() } else { marked.join("\n") }
}

/// A text up to its first frame.
fn before_frames(body: &str) -> &str {
    let mut end = 0;
    for line in body.split_inclusive('\n') {
        let start = line.trim_start();
        let is_frame = start.starts_with("at ")
            || start.starts_with("❯ ")
            || start.starts_with("stack traceback:")
            || start.starts_with("stack backtrace:")
            || start.starts_with("note: run with `RUST_BACKTRACE");
        let is_place = line == start
            && frames::place_of_line(start.trim_end())
                .is_some_and(|place| place.file.is_some_and(|file| start.starts_with(file)) && end > 0);
        if is_frame || is_place {
            break;
        }
        end += line.len();
    }
    let message = body[..end].trim();
    if message.is_empty() { body.trim() } else { message }
}

//! What our own reporters write: one JSON object a line, the same for every runner.
//!
//! `run` tells the runner, `declared` how many tests (more) there will be, `suite_start` and `suite_end` frame a file,
//! `start` and `end` a test, `problem` tells what is wrong outside of tests, and `finish` that the runner came to its
//! end. Fields are those of [`Event`] below.

use serde::Deserialize;

use super::by_line::LineReader;
use super::{Head, Stream, jest_json, js_failure, json, milliseconds, place, python_failure};
use crate::event::Event as Told;
use crate::{
    Attempt, Failure, FailureKind, Finished, Place, Problem, ProblemScope, Sink, TestId, TestStatus,
};

/// Whether a text is written by our reporter in this runner.
pub(super) fn is_of(runner: &str, head: &Head<'_>) -> bool {
    let Some(first) = head.text.lines().find(|line| !line.trim().is_empty()) else { return false };
    serde_json::from_str::<Event>(first).is_ok_and(|event| event.ev == "run" && event.runner == runner)
}

#[derive(Debug, Default)]
pub(super) struct Reporter {
    runner: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Event {
    ev: String,
    runner: String,
    version: Option<String>,
    count: Option<u64>,
    suite: String,
    test: String,
    status: Option<Status>,
    /// Whether it was run again because it failed, or this is such a run.
    retry: bool,
    /// How often it ran, where only the last run is told.
    attempts: Option<u32>,
    ms: f64,
    kind: Option<FailureKind>,
    message: Option<String>,
    /// The whole text of the failure, as the runner has it.
    stack: String,
    /// The deepest first.
    frames: Vec<(String, Option<u32>)>,
    file: Option<String>,
    line: Option<u32>,
    expected: Option<String>,
    actual: Option<String>,
    output: String,
    scope: Option<ProblemScope>,
    name: String,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    Pass,
    Fail,
    Error,
    Skip,
    Xfail,
    Flaky,
    Crash,
}

impl LineReader for Reporter {
    const LONGEST_LINE: usize = json::LONGEST_LINE;

    fn line(&mut self, stream: Stream, line: &str, sink: &mut dyn Sink) {
        if let Some(event) = json::event::<Event>(line).filter(|_| stream == Stream::Out) {
            self.event(&event, sink);
        }
    }

    fn end(&mut self, _: &mut dyn Sink) {}
}

impl Reporter {
    fn event(&mut self, event: &Event, sink: &mut dyn Sink) {
        let test = TestId { suite: &event.suite, name: &event.test };
        match event.ev.as_str() {
            "run" => {
                self.runner.clone_from(&event.runner);
                if let Some(version) = &event.version {
                    sink.event(Told::Version(version));
                }
            }
            "declared" => sink.event(Told::Declared(event.count.unwrap_or(0))),
            "suite_start" => sink.event(Told::SuiteStarted(&event.suite)),
            "suite_end" => sink.event(Told::SuiteEnded(&event.suite)),
            "start" if !event.test.is_empty() => {
                sink.event(Told::Started {
                    test,
                    at: Place { file: event.file.as_deref(), line: event.line },
                });
            }
            "end" => self.end_of_test(event, test, sink),
            "problem" => sink.event(Told::Problem(self.problem(event))),
            "finish" => sink.event(Told::Ended { counted: event.count }),
            _ => {}
        }
    }

    fn end_of_test(&self, event: &Event, test: TestId<'_>, sink: &mut dyn Sink) {
        let status = match event.status {
            Some(Status::Pass) if event.attempts.is_some_and(|attempts| attempts > 1) => TestStatus::Flaky,
            Some(Status::Pass) | None => TestStatus::Pass,
            Some(Status::Fail) => TestStatus::Fail,
            Some(Status::Error) => TestStatus::Error,
            Some(Status::Skip) => TestStatus::Skip,
            Some(Status::Xfail) => TestStatus::Xfail,
            Some(Status::Flaky) => TestStatus::Flaky,
            Some(Status::Crash) => TestStatus::Crash,
        };
        if !event.output.is_empty() {
            sink.event(Told::Output { test, text: &event.output });
        }
        let message = self.message(event);
        let failure = Failure {
            kind: event.kind.or_else(|| status.is_failure().then(|| self.kind(event, &message))),
            message: &message,
            stack: &event.stack,
            at: self.place(event),
            expected: event.expected.as_deref(),
            actual: event.actual.as_deref(),
        };
        let attempt = if event.retry { Attempt::Retry } else { Attempt::Only };
        let told = status != TestStatus::Pass;
        sink.event(Told::Finished(Finished {
            failure: told.then_some(failure),
            attempt,
            ..Finished::new(test, status, milliseconds::of(event.ms))
        }));
    }

    fn problem(&self, event: &Event) -> Problem {
        if self.runner == "jest" && event.scope == Some(ProblemScope::Suite) {
            let printed = event.message.as_deref().unwrap_or(&event.stack);
            return jest_json::file_problem(&event.name, &crate::strip_ansi(printed));
        }
        let message = self.message(event);
        let scope = event.scope.unwrap_or(ProblemScope::Run);
        let kind = event.kind.or_else(|| (scope == ProblemScope::Suite).then(|| self.load_kind(&message)));
        let at = self.place(event);
        let own = at.file.or_else(|| (scope == ProblemScope::Suite).then_some(event.name.as_str()));
        Problem::new(scope, event.name.clone(), kind, message)
            .placed(own.filter(|file| !file.is_empty()).map(str::to_owned), at.line)
    }

    /// What went wrong. Jest and pytest's collection give only the whole text.
    fn message(&self, event: &Event) -> String {
        let told = event.message.as_deref().map(crate::strip_ansi);
        match told {
            Some(message) => message.trim_matches('\n').to_owned(),
            None if self.runner == "pytest" => {
                python_failure::marked_message(&event.stack).unwrap_or_else(|| event.stack.clone())
            }
            None => js_failure::message_and_stack(&crate::strip_ansi(&event.stack)).0.to_owned(),
        }
    }

    fn kind(&self, event: &Event, message: &str) -> FailureKind {
        match self.runner.as_str() {
            "pytest" => python_failure::kind(message),
            "rspec" => ruby_kind(message),
            _ => {
                let named = event.stack.lines().next().unwrap_or_default();
                js_failure::kind_of_text(&format!("{named}\n{message}"), &event.stack)
            }
        }
    }

    fn load_kind(&self, message: &str) -> FailureKind {
        match self.runner.as_str() {
            "pytest" => python_failure::kind(message),
            "rspec" if message.starts_with("LoadError") => FailureKind::Import,
            "rspec" if message.contains("SyntaxError") => FailureKind::Compile,
            "rspec" => FailureKind::Error,
            _ => js_failure::load_kind(message),
        }
    }

    /// The deepest of the project's own frames, else the place that the reporter names.
    fn place<'a>(&self, event: &'a Event) -> Place<'a> {
        let told = Place { file: event.file.as_deref(), line: event.line };
        let told = if place::is_own(&told) { told } else { Place::default() };
        let mut frames = event.frames.iter().map(|(file, line)| Place { file: Some(file), line: *line });
        let framed = frames.find(place::is_own);
        let printed = || match self.runner.as_str() {
            "pytest" => python_failure::place(&event.stack),
            "rspec" => None,
            _ => js_failure::place_of(&event.stack),
        };
        // A syntax error has no frame of its own: its text names the place.
        let syntax = self.runner == "pytest" && event.stack.contains("SyntaxError");
        let found = if syntax { printed().or(framed) } else { framed.or_else(printed) };
        found.unwrap_or(told)
    }
}

fn ruby_kind(message: &str) -> FailureKind {
    if message.contains("for nil") {
        FailureKind::NullDeref
    } else if message.contains("expected") {
        FailureKind::Assertion
    } else {
        FailureKind::Error
    }
}

#[cfg(test)]
mod tests;

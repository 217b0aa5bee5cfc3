//! The shapes that our reporters wrote before they had one schema: recorded streams of pytest (a line a phase), `RSpec`
//! and Vitest are still read.

use serde::Deserialize;

use crate::event::Event as Told;
use crate::parse::pytest_phases::{Phase, Phases, test_id};
use crate::parse::{js_failure, milliseconds, place, python_failure};
use crate::{Failure, Finished, Place, Problem, ProblemScope, Sink, TestId, TestStatus};

/// Whether a recorded stream begins like those of this runner.
pub(super) fn is_of(runner: &str, text: &str) -> bool {
    let first = text.trim_start().lines().next().unwrap_or_default();
    let Ok(line) = serde_json::from_str::<Entry>(first) else { return false };
    match runner {
        "pytest" => line.ev == "session" && line.pytest.is_some(),
        "rspec" => line.ev == "start" && line.count.is_some() && line.id.is_none(),
        "vitest" => line.ev == "file_start",
        _ => false,
    }
}

/// Reads a line at a time.
#[derive(Debug, Default)]
pub(super) struct Early {
    phases: Phases,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Entry {
    ev: String,
    pytest: Option<String>,
    n: Option<u64>,
    count: Option<u64>,
    id: Option<String>,
    nodeid: String,
    longrepr: String,
    file: Option<String>,
    line: Option<u32>,
    when: String,
    outcome: String,
    dur: f64,
    rerun: Option<u32>,
    wasxfail: Option<String>,
    skip: Vec<String>,
    crash: Option<Crash>,
    frames: Vec<(String, u32, String)>,
    text: String,
    sections: Vec<(String, String)>,
    path: String,
    name: String,
    loc: Option<Location>,
    state: String,
    status: String,
    errors: Vec<Error>,
    unhandled: Vec<Error>,
    ms: f64,
    t: f64,
    flaky: bool,
    msg: String,
    bt: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Crash {
    path: String,
    line: Option<u32>,
    message: String,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Location {
    Printed(String),
    Line { line: u32 },
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Error {
    message: String,
    stack: String,
    expected: Option<String>,
    actual: Option<String>,
}

impl Early {
    pub(super) fn line(&mut self, line: &str, sink: &mut dyn Sink) {
        let Ok(line) = serde_json::from_str::<Entry>(line) else { return };
        match line.ev.as_str() {
            "session" => sink.event(Told::Version(line.pytest.as_deref().unwrap_or_default())),
            "collected" => sink.event(Told::Declared(line.n.unwrap_or(0))),
            "start" => match &line.id {
                Some(id) => start_item(id, &line, sink),
                None => sink.event(Told::Declared(line.count.unwrap_or(0))),
            },
            "phase" => {
                let id = line.id.clone().unwrap_or_default();
                self.phases.phase(&id, phase(line), sink);
            }
            "collect_error" => {
                sink.event(Told::Problem(python_failure::collection_problem(&line.nodeid, &line.longrepr)));
            }
            "file_start" => sink.event(Told::SuiteStarted(&line.path)),
            "file" => file_ended(&line, sink),
            "case_start" => start_case(&line, sink),
            "case" => end_case(&line, sink),
            "done" => {
                for error in &line.unhandled {
                    sink.event(Told::Problem(js_problem(ProblemScope::Run, "", error)));
                }
                sink.event(Told::Ended { counted: None });
            }
            "finish" => sink.event(Told::Ended { counted: None }),
            _ => {}
        }
    }

    pub(super) fn finish(&mut self, sink: &mut dyn Sink) {
        self.phases.finish(sink);
    }
}

fn start_item(id: &str, line: &Entry, sink: &mut dyn Sink) {
    sink.event(Told::Started {
        test: test_id(id),
        at: Place { file: line.file.as_deref(), line: line.line },
    });
}

fn phase(line: Entry) -> Phase {
    let message = match (&line.crash, line.skip.last()) {
        (Some(crash), _) => crash.message.clone(),
        (None, Some(reason)) => reason.strip_prefix("Skipped: ").unwrap_or(reason).to_owned(),
        (None, None) => line.text.clone(),
    };
    Phase {
        when: line.when,
        outcome: line.outcome,
        xfail: line.wasxfail,
        seconds: line.dur,
        retried: line.rerun.is_some(),
        subtest: false,
        message,
        stack: line.text,
        at: line.crash.map(|crash| (crash.path, crash.line)),
        frames: line.frames.into_iter().rev().map(|(file, line, _)| (file, line)).collect(),
        output: line.sections.into_iter().map(|(_, text)| text).collect(),
    }
}

/// Vitest's groups and names were joined by `>`, `RSpec`'s stand in full.
fn case(line: &Entry) -> (String, String) {
    let suite = match &line.id {
        Some(id) => id.split_once('[').map_or(id.as_str(), |(file, _)| file),
        None => &line.path,
    };
    (suite.to_owned(), line.name.replace(" > ", " "))
}

fn location(line: &Entry) -> Place<'_> {
    match &line.loc {
        Some(Location::Printed(printed)) => place::trailing(printed).unwrap_or_default(),
        Some(Location::Line { line: number }) => Place::new(&line.path, *number),
        None => Place::default(),
    }
}

fn start_case(line: &Entry, sink: &mut dyn Sink) {
    let (suite, name) = case(line);
    sink.event(Told::Started { test: TestId { suite: &suite, name: &name }, at: location(line) });
}

fn end_case(line: &Entry, sink: &mut dyn Sink) {
    let (suite, name) = case(line);
    let test = TestId { suite: &suite, name: &name };
    let status = match (line.state.as_str(), line.status.as_str()) {
        ("passed", _) if line.flaky => TestStatus::Flaky,
        ("passed", _) | (_, "passed") => TestStatus::Pass,
        ("failed", _) | (_, "failed") => TestStatus::Fail,
        _ => TestStatus::Skip,
    };
    let backtrace = line.bt.join("\n");
    let failure = match line.errors.first() {
        Some(error) => js_case_failure(error, line),
        None => Failure {
            kind: (status == TestStatus::Fail).then(|| super::ruby_kind(&line.msg)),
            message: line.msg.trim_matches('\n'),
            stack: &backtrace,
            at: line
                .bt
                .iter()
                .filter_map(|frame| ruby_frame(frame))
                .find(place::is_own)
                .unwrap_or(location(line)),
            ..Failure::default()
        },
    };
    let told = status != TestStatus::Pass;
    let ms = milliseconds::of(if line.ms > 0.0 { line.ms } else { line.t * 1000.0 });
    sink.event(Told::Finished(Finished {
        failure: told.then_some(failure),
        ..Finished::new(test, status, ms)
    }));
}

fn ruby_frame(frame: &str) -> Option<Place<'_>> {
    place::leading(frame).map(|(place, _)| place)
}

fn js_case_failure<'a>(error: &'a Error, line: &'a Entry) -> Failure<'a> {
    Failure {
        kind: Some(js_failure::kind_of_text(
            &format!("{}\n{}", first_line(&error.stack), error.message),
            &error.stack,
        )),
        message: &error.message,
        stack: &error.stack,
        at: js_failure::place_of(&error.stack).unwrap_or(location(line)),
        expected: error.expected.as_deref(),
        actual: error.actual.as_deref(),
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

fn file_ended(line: &Entry, sink: &mut dyn Sink) {
    for error in &line.errors {
        sink.event(Told::Problem(js_problem(ProblemScope::Suite, &line.path, error)));
    }
    sink.event(Told::SuiteEnded(&line.path));
}

fn js_problem(scope: ProblemScope, name: &str, error: &Error) -> Problem {
    let at = js_failure::place_of(&error.stack);
    Problem::new(scope, name, Some(js_failure::load_kind(&error.message)), error.message.clone()).placed(
        at.and_then(|at| at.file).or((!name.is_empty()).then_some(name)).map(str::to_owned),
        at.and_then(|at| at.line),
    )
}

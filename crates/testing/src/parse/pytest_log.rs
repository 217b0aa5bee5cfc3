//! pytest's `--report-log`: one JSON object a line, a report of a phase or of a collected node each.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::by_line::LineReader;
use super::json;
use super::pytest_phases::{Phase, Phases, test_id};
use super::{Head, Stream, python_failure};
use crate::{Event, Place, Sink};

pub(super) fn looks_like(head: &Head<'_>) -> bool {
    head.text
        .trim_start()
        .lines()
        .next()
        .is_some_and(|line| line.starts_with('{') && line.contains("\"$report_type\""))
}

#[derive(Debug, Default)]
pub(super) struct PytestLog {
    phases: Phases,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Line {
    #[serde(rename = "$report_type")]
    kind: String,
    pytest_version: Option<String>,
    nodeid: String,
    location: Option<(String, Option<u32>, Option<String>)>,
    outcome: String,
    longrepr: Option<Longrepr>,
    when: String,
    duration: f64,
    wasxfail: Option<String>,
    rerun: Option<u32>,
    sections: Vec<(String, String)>,
}

/// How pytest writes what went wrong.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Longrepr {
    Text(String),
    Skip(String, Option<u32>, String),
    Traceback { reprcrash: Option<Crash>, reprtraceback: Traceback },
    Other(IgnoredAny),
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Crash {
    path: String,
    lineno: Option<u32>,
    message: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Traceback {
    reprentries: Vec<Entry>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Entry {
    data: EntryData,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct EntryData {
    lines: Vec<String>,
    reprfileloc: Option<Crash>,
}

impl LineReader for PytestLog {
    const LONGEST_LINE: usize = json::LONGEST_LINE;

    fn line(&mut self, stream: Stream, line: &str, sink: &mut dyn Sink) {
        if let Some(line) = json::event::<Line>(line).filter(|_| stream == Stream::Out) {
            line.tell(&mut self.phases, sink);
        }
    }

    fn end(&mut self, sink: &mut dyn Sink) {
        self.phases.finish(sink);
    }
}

impl Line {
    fn tell(self, phases: &mut Phases, sink: &mut dyn Sink) {
        match self.kind.as_str() {
            "SessionStart" => sink.event(Event::Version(self.pytest_version.as_deref().unwrap_or_default())),
            "SessionFinish" => sink.event(Event::Ended { counted: None }),
            "CollectReport" if self.outcome == "failed" => {
                let failure = self.longrepr.map(Longrepr::told).unwrap_or_default();
                sink.event(Event::Problem(python_failure::collection_problem(&self.nodeid, &failure.stack)));
            }
            "CollectReport" | "WarningMessage" => {}
            _ => self.report(phases, sink),
        }
    }

    fn report(self, phases: &mut Phases, sink: &mut dyn Sink) {
        // The first that is told of a test is the end of its set-up.
        if self.when == "setup" {
            let (file, line) =
                self.location.as_ref().map_or((None, None), |(file, line, _)| (Some(file), *line));
            let at = Place { file: file.map(String::as_str), line: line.map(|line| line.saturating_add(1)) };
            sink.event(Event::Started { test: test_id(&self.nodeid), at });
        }
        let failure = self.longrepr.map(Longrepr::told).unwrap_or_default();
        let captured = self.sections.iter().filter(|(title, _)| title.starts_with("Captured "));
        let phase = Phase {
            subtest: self.kind != "TestReport",
            when: self.when,
            outcome: self.outcome,
            xfail: self.wasxfail,
            seconds: self.duration,
            retried: self.rerun.is_some(),
            output: captured.map(|(_, text)| text.as_str()).collect(),
            ..failure
        };
        phases.phase(&self.nodeid, phase, sink);
    }
}

impl Longrepr {
    fn told(self) -> Phase {
        match self {
            Self::Text(text) => Phase { message: text.clone(), stack: text, ..Phase::default() },
            Self::Skip(file, line, reason) => {
                let message = reason.strip_prefix("Skipped: ").unwrap_or(&reason).to_owned();
                Phase { message, at: Some((file, line)), ..Phase::default() }
            }
            Self::Traceback { reprcrash, reprtraceback } => {
                let (stack, mut frames) = reprtraceback.told();
                frames.reverse();
                let at = reprcrash.as_ref().map(|crash| (crash.path.clone(), crash.lineno));
                let message = reprcrash.map(|crash| crash.message).unwrap_or_default();
                Phase { message, stack, at, frames, ..Phase::default() }
            }
            Self::Other(_) => Phase::default(),
        }
    }
}

impl Traceback {
    /// As pytest prints it, and its frames.
    fn told(&self) -> (String, Vec<(String, u32)>) {
        let (mut text, mut frames) = (String::new(), Vec::new());
        for entry in &self.reprentries {
            for line in &entry.data.lines {
                text.push_str(line);
                text.push('\n');
            }
            if let Some(place) = &entry.data.reprfileloc {
                let line = place.lineno.unwrap_or_default();
                text.push_str(&format!("\n{}:{line}: {}\n", place.path, place.message));
                frames.push((place.path.clone(), line));
            }
        }
        (text, frames)
    }
}

#[cfg(test)]
mod tests {
    use crate::parse::tests::read;

    #[test]
    fn a_subtest_can_only_make_its_test_fail() {
        let run = read(
            "pytest-reportlog",
            r#"{"$report_type": "TestReport", "nodeid": "a.py::t", "when": "setup", "outcome": "passed"}
{"$report_type": "SubTestReport", "nodeid": "a.py::t", "when": "call", "outcome": "passed"}
{"$report_type": "SubTestReport", "nodeid": "a.py::t", "when": "call", "outcome": "failed", "longrepr": "assert 1 == 2"}
{"$report_type": "TestReport", "nodeid": "a.py::t", "when": "call", "outcome": "passed"}
{"$report_type": "TestReport", "nodeid": "a.py::t", "when": "teardown", "outcome": "passed"}
"#,
        );
        assert_eq!((run.summary.total, run.summary.failed), (1, 1));
        assert_eq!(run.tests[0].error, "assert 1 == 2");
    }

    #[test]
    fn bytes_that_are_no_text_do_not_cost_the_report() {
        let run = read(
            "pytest-reportlog",
            r#"{"$report_type": "TestReport", "nodeid": "a.py::t", "when": "call", "outcome": "failed", "longrepr": "x", "sections": [["Captured stdout call", "\udcff\n"]]}
{"$report_type": "TestReport", "nodeid": "a.py::t", "when": "teardown", "outcome": "passed", "duration": 0.5}
"#,
        );
        assert_eq!((run.summary.failed, run.tests[0].output.as_str()), (1, "\u{fffd}\n"));
    }
}

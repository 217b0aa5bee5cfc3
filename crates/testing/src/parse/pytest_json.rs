//! The report of `pytest-json-report`: one JSON document, written at the end of the run.

use serde::Deserialize;
use serde_json::Value;

use super::json::{JsonReader, JsonReport};
use super::pytest_phases::{Phase, Phases, test_id};
use super::{Head, python_failure};
use crate::{Event, Place, Sink};

pub(super) fn looks_like(head: &Head<'_>) -> bool {
    let has = |field: &str| head.text.contains(field);
    has("\"exitcode\":") && has("\"created\":") && has("\"root\":") && head.text.trim_start().starts_with('{')
}

pub(super) type PytestJson = JsonReport<Reading>;

#[derive(Debug, Default)]
pub(super) struct Reading {
    phases: Phases,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Root {
    exitcode: Option<i32>,
    summary: Summary,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Summary {
    total: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Test {
    nodeid: String,
    lineno: Option<u32>,
    outcome: String,
    setup: Option<Stage>,
    call: Option<Stage>,
    teardown: Option<Stage>,
    /// A worker of xdist that died.
    #[serde(rename = "???")]
    died: Option<Stage>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Stage {
    outcome: String,
    duration: f64,
    crash: Option<Frame>,
    traceback: Vec<Frame>,
    longrepr: String,
    stdout: String,
    stderr: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Frame {
    path: String,
    lineno: u32,
    message: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Collected {
    nodeid: String,
    outcome: String,
    longrepr: String,
}

impl JsonReader for Reading {
    const PATHS: &'static [&'static str] = &["", "tests[]", "collectors[]"];

    fn element(&mut self, path: &str, element: Value, sink: &mut dyn Sink) {
        match path {
            "tests[]" => {
                if let Ok(test) = serde_json::from_value::<Test>(element) {
                    test.tell(&mut self.phases, sink);
                }
            }
            "collectors[]" => {
                if let Ok(node) = serde_json::from_value::<Collected>(element)
                    && node.outcome == "failed"
                {
                    let problem = python_failure::collection_problem(&node.nodeid, &node.longrepr);
                    sink.event(Event::Problem(problem));
                }
            }
            _ => end(element, sink),
        }
    }

    fn end_of_input(&mut self, is_inside: bool, sink: &mut dyn Sink) -> bool {
        self.phases.finish(sink);
        is_inside
    }
}

fn end(root: Value, sink: &mut dyn Sink) {
    if let Ok(root) = serde_json::from_value::<Root>(root)
        && root.exitcode.is_some()
    {
        sink.event(Event::Ended { counted: root.summary.total });
    }
}

impl Test {
    fn tell(self, phases: &mut Phases, sink: &mut dyn Sink) {
        let test = test_id(&self.nodeid);
        let at = Place { file: Some(test.suite), line: self.lineno.map(|line| line.saturating_add(1)) };
        sink.event(Event::Started { test, at });
        // Of a test that was interrupted in its call, only the set-up is told, and its outcome is called `passed`.
        let unfinished = self.call.is_none() && self.died.is_none() && passed(self.setup.as_ref());
        if unfinished {
            return;
        }
        let rerun = self.outcome == "rerun";
        if rerun {
            // Only the last run is told: that there was a failed one before is all that is known of it.
            let before = Phase {
                when: "???".to_owned(),
                outcome: "rerun".to_owned(),
                retried: true,
                ..Phase::default()
            };
            phases.phase(&self.nodeid, before, sink);
        }
        let stages =
            [("setup", self.setup), ("call", self.call), ("???", self.died), ("teardown", self.teardown)];
        for (when, stage) in stages {
            if let Some(stage) = stage {
                phases.phase(&self.nodeid, stage.phase(when, &self.outcome, rerun), sink);
            }
        }
    }
}

fn passed(stage: Option<&Stage>) -> bool {
    stage.is_some_and(|stage| stage.outcome == "passed")
}

impl Stage {
    fn phase(self, when: &str, outcome: &str, retried: bool) -> Phase {
        let skipped = self.outcome == "skipped";
        let reason = if skipped && outcome != "xfailed" { skip_reason(&self.longrepr) } else { None };
        let message = match (&self.crash, reason) {
            (_, Some(reason)) => reason.to_owned(),
            (Some(crash), None) => crash.message.clone(),
            (None, None) => self.longrepr.clone(),
        };
        Phase {
            when: when.to_owned(),
            outcome: self.outcome,
            xfail: (outcome == "xfailed" && skipped).then(|| message.clone()),
            seconds: self.duration,
            retried,
            subtest: false,
            message,
            at: self.crash.map(|crash| (crash.path, Some(crash.lineno))),
            frames: self.traceback.into_iter().rev().map(|frame| (frame.path, frame.lineno)).collect(),
            stack: self.longrepr,
            output: self.stdout + &self.stderr,
        }
    }
}

/// A skip is written as Python prints a tuple: `('x.py', 34, 'Skipped: not ready')`.
fn skip_reason(longrepr: &str) -> Option<&str> {
    let (_, reason) = longrepr.split_once("Skipped: ").or_else(|| longrepr.split_once(", '"))?;
    Some(reason.trim_end_matches([')', '\'', '"']))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::{Parser, Stream};
    use crate::{Collector, Ending, Limits, TestStatus};

    fn read(text: &str) -> crate::Collected {
        let mut collector = Collector::new(None, Limits::default());
        let mut parser = PytestJson::default();
        parser.feed(Stream::Out, text.as_bytes(), &mut collector);
        parser.finish(&mut collector);
        collector.finish(&Ending::of_status(130))
    }

    #[test]
    fn a_test_that_was_interrupted_did_not_pass() {
        let run = read(
            r#"{"created": 1, "exitcode": 2, "root": "/p", "summary": {"passed": 1, "total": 1},
                "tests": [{"nodeid": "a.py::t", "outcome": "passed", "setup": {"outcome": "passed"}, "teardown": {"outcome": "passed"}}]}"#,
        );
        assert_eq!((run.tests[0].status, run.summary.passed), (TestStatus::Timeout, 0));
    }

    #[test]
    fn the_reason_of_a_skip_is_taken_out_of_its_tuple() {
        assert_eq!(skip_reason("('/p/a.py', 34, 'Skipped: not ready')"), Some("not ready"));
        assert_eq!(skip_reason("('/p/a.py', 34, \"Skipped: it's\")"), Some("it's"));
    }
}

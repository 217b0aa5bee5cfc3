//! Jest's `--json`, and Vitest's JSON reporter, which took over its shape: one document at the end, file by file.

use serde::Deserialize;
use serde_json::Value;

use super::jest_block::Block;
use super::json::{JsonReader, JsonReport};
use super::{Head, js_failure, milliseconds};
use crate::{Event, Failure, Finished, Place, Problem, ProblemScope, Sink, TestId, TestStatus, strip_ansi};

pub(super) fn is_jest(head: &Head<'_>) -> bool {
    head.text.contains("\"numRuntimeErrorTestSuites\":") && head.text.contains("\"numTotalTests\":")
}

pub(super) fn is_vitest(head: &Head<'_>) -> bool {
    head.text.contains("\"numTotalTestSuites\":") && head.text.contains("\"numTotalTests\":")
}

pub(super) type JestJson = JsonReport<Reading>;

#[derive(Debug, Default)]
pub(super) struct Reading {
    /// The name of a file stands after its tests.
    waiting: Vec<Test>,
    /// Whether a test of the file at hand failed.
    failed: bool,
    /// Several runs may have printed to one place.
    counted: u64,
    /// Whether one of them was interrupted.
    interrupted: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Root {
    num_total_tests: Option<u64>,
    was_interrupted: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct File {
    name: String,
    status: String,
    message: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Test {
    full_name: String,
    title: String,
    status: String,
    duration: Option<f64>,
    invocations: Option<u32>,
    failure_messages: Option<Vec<String>>,
    failure_details: Vec<Details>,
    location: Option<Location>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Details {
    matcher_result: Option<Compared>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Compared {
    expected: Option<Value>,
    actual: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct Location {
    line: u32,
}

impl JsonReader for Reading {
    const PATHS: &'static [&'static str] = &["", "testResults[]", "testResults[].assertionResults[]"];

    fn element(&mut self, path: &str, element: Value, sink: &mut dyn Sink) {
        match path {
            "testResults[].assertionResults[]" => {
                let Ok(test) = serde_json::from_value::<Test>(element) else { return };
                self.failed |= test.status == "failed";
                self.waiting.push(test);
            }
            "testResults[]" => {
                let Ok(file) = serde_json::from_value::<File>(element) else { return };
                self.flush(&file.name, sink);
                self.end_file(&file, sink);
            }
            _ => self.end_run(element, sink),
        }
    }

    fn end_of_input(&mut self, is_inside: bool, sink: &mut dyn Sink) -> bool {
        self.flush("", sink);
        is_inside
    }
}

impl Reading {
    fn flush(&mut self, suite: &str, sink: &mut dyn Sink) {
        for test in self.waiting.drain(..) {
            test.tell(suite, sink);
        }
    }

    /// A file that failed without a failed test could not be loaded, or a hook of it failed.
    fn end_file(&mut self, file: &File, sink: &mut dyn Sink) {
        let message = strip_ansi(file.message.as_deref().unwrap_or_default());
        let says_so = message.contains("● Test suite failed to run");
        let failed = std::mem::take(&mut self.failed);
        if file.status == "failed" && (!failed || says_so) {
            sink.event(Event::Problem(file_problem(&file.name, &message)));
        }
    }

    fn end_run(&mut self, root: Value, sink: &mut dyn Sink) {
        let Ok(Root { num_total_tests: Some(total), was_interrupted }) = serde_json::from_value(root) else {
            return;
        };
        self.counted = self.counted.saturating_add(total);
        self.interrupted |= was_interrupted;
        if !self.interrupted {
            sink.event(Event::Ended { counted: Some(self.counted) });
        }
    }
}

/// What kept a file from being loaded, or its group from being set up, as the runner printed it.
pub(super) fn file_problem(file: &str, printed: &str) -> Problem {
    let (_, body) = printed.split_once("● Test suite failed to run").unwrap_or(("", printed));
    let block = Block::read(body, file);
    let message = if block.message.is_empty() {
        "it failed, and its report does not say why".to_owned()
    } else {
        block.message
    };
    let at = named_place(&message);
    Problem::new(ProblemScope::Suite, file, Some(js_failure::load_kind(&message)), message)
        .placed(block.file.or_else(|| Some(file.to_owned())), block.line.or(at))
}

/// The line that a bundler names: `╭─[ test/syntax.test.ts:3:13 ]` or `/p/a.test.ts:3:13: ERROR: …`.
fn named_place(message: &str) -> Option<u32> {
    message.lines().find_map(|line| {
        let word =
            line.split([' ', '[', '(']).find(|word| word.contains('.') && word.matches(':').count() >= 2)?;
        super::place::leading(word)?.0.line
    })
}

impl Test {
    fn tell(&self, suite: &str, sink: &mut dyn Sink) {
        let name = if self.full_name.trim().is_empty() { &self.title } else { &self.full_name };
        // Vitest 0 leaves the nameless root in the name.
        let test = TestId { suite, name: name.trim_start() };
        let messages = self.failure_messages.as_deref().unwrap_or_default();
        let retried = self.invocations.is_some_and(|times| times > 1) || !messages.is_empty();
        let status = match self.status.as_str() {
            "passed" if retried => TestStatus::Flaky,
            "passed" => TestStatus::Pass,
            "failed" => TestStatus::Fail,
            _ => TestStatus::Skip,
        };
        let text = messages.join("\n\n");
        let text = strip_ansi(&text);
        let side = |of: fn(&Compared) -> Option<&Value>| {
            self.failure_details.iter().find_map(|it| it.matcher_result.as_ref()).and_then(of).map(as_text)
        };
        let (expected, actual) = (side(|it| it.expected.as_ref()), side(|it| it.actual.as_ref()));
        let mut failure = Failure {
            expected: expected.as_deref(),
            actual: actual.as_deref(),
            ..js_failure::failure(&text)
        };
        if failure.at.file.is_none() && !suite.is_empty() {
            failure.at =
                Place { file: Some(suite), line: self.location.as_ref().map(|location| location.line) };
        }
        let told = matches!(status, TestStatus::Fail | TestStatus::Flaky);
        let ms = milliseconds::of(self.duration.unwrap_or_default());
        let end = Finished { failure: told.then_some(failure), ..Finished::new(test, status, ms) };
        sink.event(Event::Finished(end));
    }
}

fn as_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use crate::FailureKind;
    use crate::parse::tests::read;

    #[test]
    fn a_report_is_found_in_what_was_printed() {
        let run = read(
            "jest-json",
            "> jest --json\n{ a: 1 }\nno newline{\"numTotalTests\":1,\"testResults\":[{\"assertionResults\":[{\"fullName\":\"a b\",\"status\":\"passed\",\"failureMessages\":[]}],\"name\":\"/p/a.test.js\",\"status\":\"passed\",\"message\":\"\"}]}\nDone in 1s.\n",
        );
        assert_eq!((run.ended, run.counted, run.summary.passed), (true, Some(1), 1));
        assert_eq!((run.tests[0].name.as_str(), run.tests[0].package.as_str()), ("a b", "a.test.js"));
    }

    #[test]
    fn a_file_whose_last_hook_failed_is_a_problem_though_its_tests_passed() {
        let run = read(
            "jest-json",
            r#"{"numTotalTests":1,"testResults":[{"assertionResults":[{"fullName":"a","status":"passed"}],"name":"/p/a.test.js","status":"failed","message":"  ● Test suite failed to run\n\n    boom\n\n      at Object.<anonymous> (test/a.test.js:9:11)\n"}]}"#,
        );
        let problem = &run.problems[0];
        assert_eq!(
            (problem.message.as_str(), problem.line, problem.kind),
            ("boom", Some(9), Some(FailureKind::Error))
        );
    }

    #[test]
    fn a_run_that_was_interrupted_did_not_end() {
        assert!(!read("jest-json", r#"{"numTotalTests":0,"testResults":[],"wasInterrupted":true}"#).ended);
    }
}

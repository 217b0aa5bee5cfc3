//! `deno test`, as people see it.

use std::collections::HashMap;

use super::by_line::LineReader;
use super::tally::Tally;
use super::{Head, Stream, js_failure, place};
use crate::{
    Event, Failure, FailureKind, Finished, HeadTail, Place, Problem, ProblemScope, Sink, TestId, TestStatus,
};

/// Bytes at each end of one failure.
const DETAILS: usize = 8 << 10;
/// Failed tests that wait for their errors.
const MOST_WAITING: usize = 20_000;

pub(super) fn looks_like(head: &Head<'_>) -> bool {
    head.text.lines().any(|line| {
        suite_of(line).is_some()
            || line.starts_with("error: Test failed")
            || line.starts_with("error: No test modules found")
            || line.starts_with("TS") && line.contains(" [ERROR]: ")
            || final_counts(line).is_some()
    })
}

#[derive(Debug, Default)]
pub(super) struct Deno {
    phase: Phase,
    suite: String,
    /// The test that has begun and prints or has steps.
    open: Option<String>,
    failed: Vec<(String, String, u64)>,
    waiting: HashMap<String, usize>,
    told: Vec<bool>,
    named: Tally,
    entry: Option<(String, HeadTail)>,
    broken_files: u64,
    /// Failed tests that were named only with their errors.
    dots: u64,
    complaint: Option<HeadTail>,
    counts: Option<Tally>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Phase {
    #[default]
    Tests,
    /// Between `------- output -------` and its end.
    Output,
    Errors,
    Failures,
    Over,
}

impl LineReader for Deno {
    fn line(&mut self, stream: Stream, line: &str, sink: &mut dyn Sink) {
        if stream == Stream::Err || self.suite.is_empty() {
            self.complaint_line(line, sink);
        }
        if matches!(self.phase, Phase::Tests | Phase::Failures)
            && let Some(counts) = final_counts(line)
        {
            self.phase = Phase::Over;
            self.counts = Some(counts);
            return self.tell_rest(sink);
        }
        match (self.phase, line) {
            (Phase::Tests, "------- output -------") if self.open.is_some() => self.phase = Phase::Output,
            (Phase::Output, "----- output end -----") => self.phase = Phase::Tests,
            (Phase::Tests, " ERRORS ") => self.phase = Phase::Errors,
            (Phase::Errors, " FAILURES ") => {
                self.end_entry(sink);
                self.phase = Phase::Failures;
            }
            (Phase::Tests, _) => self.test_line(line, sink),
            (Phase::Errors, _) => self.error_line(line, sink),
            _ => {}
        }
    }

    fn end(&mut self, sink: &mut dyn Sink) {
        self.end_entry(sink);
        self.tell_rest(sink);
        self.end_complaint(sink);
        if let Some(counts) = self.counts {
            self.count(counts, sink);
        }
    }
}

impl Deno {
    fn test_line(&mut self, line: &str, sink: &mut dyn Sink) {
        if let Some((count, suite)) = suite_of(line).filter(|_| self.open.is_none()) {
            suite.clone_into(&mut self.suite);
            return sink.event(Event::Declared(count));
        }
        if line.starts_with(' ') {
            return;
        }
        if let Some((name, status, ms)) = result_of(line) {
            // What a test prints may look like a result, but not like its own.
            if self.open.as_deref().is_none_or(|open| open == name) {
                self.open = None;
                self.ended(name, status, ms, sink);
            }
        } else if let Some(name) = line.strip_suffix(" ...").filter(|_| self.open.is_none()) {
            self.open = Some(name.to_owned());
            let test = TestId { suite: &self.suite, name };
            sink.event(Event::Started { test, at: Place::default() });
        }
    }

    fn ended(&mut self, name: &str, status: TestStatus, ms: u64, sink: &mut dyn Sink) {
        match status {
            TestStatus::Pass => self.named.passed += 1,
            TestStatus::Skip => self.named.skipped += 1,
            _ => {
                self.named.failed += 1;
                if self.failed.len() < MOST_WAITING {
                    self.waiting.insert(name.to_owned(), self.failed.len());
                    self.told.push(false);
                    self.failed.push((self.suite.clone(), name.to_owned(), ms));
                    return;
                }
            }
        }
        let test = TestId { suite: &self.suite, name };
        sink.event(Event::Finished(Finished::new(test, status, ms)));
    }

    /// `adds up => ./cart_test.ts:1:6`, `steps ... step => ./cart_test.ts:8:11`, `./top_test.ts (uncaught error)`.
    fn error_line(&mut self, line: &str, sink: &mut dyn Sink) {
        let test =
            line.rsplit_once(" => ").map(|(name, at)| (name.split(" ... ").next().unwrap_or(name), at));
        // The reporter of dots has not named them before.
        let unnamed = self.named.failed == self.dots;
        if let Some((name, at)) = test
            && unnamed
            && (at.starts_with("./") || at.starts_with("file:"))
            && !self.waiting.contains_key(name)
        {
            self.dots += 1;
            self.ended(name, TestStatus::Fail, 0, sink);
        }
        let begins =
            test.is_some_and(|(name, _)| self.waiting.contains_key(name)) || uncaught(line).is_some();
        if begins {
            self.end_entry(sink);
            self.entry = Some((line.to_owned(), HeadTail::new(DETAILS)));
        } else if let Some((_, text)) = &mut self.entry {
            text.push_line(line);
        }
    }

    fn end_entry(&mut self, sink: &mut dyn Sink) {
        let Some((title, text)) = self.entry.take() else { return };
        let text = text.into_text();
        if let Some(file) = uncaught(&title) {
            self.broken_files += 1;
            return sink.event(Event::Problem(broken_file(file, &text)));
        }
        let (name, defined) = title.rsplit_once(" => ").unwrap_or((&title, ""));
        let name = name.split(" ... ").next().unwrap_or(name);
        let Some(at) = self.waiting.get(name).copied().filter(|at| !self.told[*at]) else { return };
        self.told[at] = true;
        let (suite, name, ms) = &self.failed[at];
        let (said, stack) = error_of(&text);
        let (class, message) = js_failure::class_and_message(said);
        let failure = Failure {
            kind: Some(js_failure::kind_of(class, message)),
            message: said,
            stack,
            at: js_failure::place_of(stack).or_else(|| place::trailing(defined)).unwrap_or_default(),
            ..Failure::default()
        };
        let test = TestId { suite, name };
        sink.event(Event::Finished(Finished::new(test, TestStatus::Fail, *ms).failure(failure)));
    }

    fn tell_rest(&mut self, sink: &mut dyn Sink) {
        let told = std::mem::take(&mut self.told);
        for ((suite, name, ms), _) in self.failed.iter().zip(told).filter(|(_, told)| !told) {
            sink.event(Event::Finished(Finished::new(TestId { suite, name }, TestStatus::Fail, *ms)));
        }
        self.failed.clear();
        self.waiting.clear();
    }

    /// The last line; what was not named is counted, files that could not be loaded are no tests.
    fn count(&mut self, counts: Tally, sink: &mut dyn Sink) {
        let failed = counts.failed.saturating_sub(self.broken_files);
        let counts = Tally { failed, ..counts };
        counts.count_unnamed(self.named, sink);
        sink.event(Event::Ended { counted: Some(counts.sum()) });
    }

    /// What Deno says before any test runs: types that do not fit, modules that are not there.
    fn complaint_line(&mut self, line: &str, sink: &mut dyn Sink) {
        let begins = line.starts_with("error: ") || line.starts_with("TS") && line.contains(" [ERROR]: ");
        if begins {
            self.end_complaint(sink);
            self.complaint = Some(HeadTail::new(DETAILS));
        } else if line.starts_with("Found ") || line.starts_with("Stack backtrace:") {
            return self.end_complaint(sink);
        }
        if let Some(text) = &mut self.complaint {
            text.push_line(line);
        }
    }

    fn end_complaint(&mut self, sink: &mut dyn Sink) {
        let Some(text) = self.complaint.take() else { return };
        let text = text.into_text();
        let (said, stack) = js_failure::message_and_stack(&text);
        let message = without_source(said.strip_prefix("error: ").unwrap_or(said));
        let summaries = ["Test failed", "Type checking failed", "Found "];
        if summaries.iter().any(|summary| message.starts_with(summary)) {
            return;
        }
        let types = message.starts_with("TS");
        let at = js_failure::place_of(stack).unwrap_or_default();
        let (scope, kind) = match (types, at.file.is_some()) {
            (true, _) => (ProblemScope::Build, FailureKind::Compile),
            (false, true) => (ProblemScope::Suite, js_failure::kind_of("", message)),
            (false, false) => (ProblemScope::Run, FailureKind::Config),
        };
        sink.event(Event::Problem(Problem::new(scope, "", Some(kind), message).at(at)));
    }
}

fn broken_file(file: &str, text: &str) -> Problem {
    let (said, stack) = error_of(text);
    let (class, message) = js_failure::class_and_message(said);
    let at = js_failure::place_of(stack).unwrap_or_default();
    Problem::new(ProblemScope::Suite, file, Some(js_failure::kind_of(class, message)), said)
        .placed(Some(at.file.unwrap_or(file).to_owned()), at.line)
}

/// The error and its frames, out of `error: Error: boom`, a line of source, and frames.
fn error_of(text: &str) -> (&str, &str) {
    let (said, stack) = js_failure::message_and_stack(text.trim());
    let said = without_source(said.strip_prefix("error: ").unwrap_or(said));
    (said.strip_prefix("(in promise) ").unwrap_or(said), stack)
}

/// Deno shows the line of source, and below it where in that line.
fn without_source(said: &str) -> &str {
    let Some((before, last)) = said.rsplit_once('\n') else { return said };
    if last.trim() != "^" && !last.trim().bytes().all(|byte| byte == b'~') {
        return said;
    }
    before.rsplit_once('\n').map_or(before, |(before, _)| before)
}

fn uncaught(line: &str) -> Option<&str> {
    line.strip_suffix(" (uncaught error)")
}

/// `running 5 tests from ./cart_test.ts`.
fn suite_of(line: &str) -> Option<(u64, &str)> {
    let (count, file) = line.strip_prefix("running ")?.split_once(" from ")?;
    let count = count.strip_suffix(" tests").or_else(|| count.strip_suffix(" test"))?;
    Some((count.parse().ok()?, file))
}

/// `name ... FAILED (due to 1 failed step) (5ms)`.
fn result_of(line: &str) -> Option<(&str, TestStatus, u64)> {
    let (name, result) = line.rsplit_once(" ... ")?;
    let (word, rest) = result.split_once(' ')?;
    let status = match word {
        "ok" => TestStatus::Pass,
        "FAILED" => TestStatus::Fail,
        "ignored" => TestStatus::Skip,
        _ => return None,
    };
    let time = rest.strip_suffix(')')?.rsplit_once('(')?.1;
    Some((name, status, milliseconds(time)?))
}

/// `5ms`, `221µs`, `1s`, `2m3s`.
fn milliseconds(time: &str) -> Option<u64> {
    if time.ends_with("µs") || time.ends_with("ns") {
        return Some(0);
    }
    if let Some(time) = time.strip_suffix("ms") {
        return time.parse().ok();
    }
    let (minutes, seconds) =
        time.strip_suffix('s')?.rsplit_once('m').unwrap_or(("0", time.strip_suffix('s')?));
    let seconds = minutes.parse::<u64>().ok()?.checked_mul(60)?.checked_add(seconds.parse().ok()?)?;
    seconds.checked_mul(1000)
}

/// `FAILED | 3 passed (1 step) | 2 failed (1 step) | 1 ignored (261ms)`.
fn final_counts(line: &str) -> Option<Tally> {
    let rest = line.strip_prefix("ok | ").or_else(|| line.strip_prefix("FAILED | "))?;
    let mut counts = Tally::default();
    for part in rest.split(" | ") {
        let mut words = part.split(' ');
        let number = words.next()?.parse::<u64>().ok()?;
        match words.next()? {
            "passed" => counts.passed = number,
            "failed" => counts.failed = number,
            "ignored" => counts.skipped = number,
            _ => {}
        }
    }
    Some(counts)
}

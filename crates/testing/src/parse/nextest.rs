//! cargo-nextest, as people see it, on standard error.

use std::collections::{HashMap, HashSet};

use super::by_line::LineReader;
use super::cargo::Build;
use super::rust_failure::rust_failure;
use super::{Head, Stream, milliseconds};
use crate::{
    Attempt, Event, Failure, FailureKind, Finished, HeadTail, Problem, ProblemScope, Sink, TestId, TestStatus,
};

/// Bytes at each end of what one failed test printed.
const OUTPUT: usize = 32 << 10;
/// Names of failed tests that are remembered until the end: what they printed may come only there.
const MOST_FAILED: usize = 50_000;

pub(super) fn looks_like(head: &Head<'_>) -> bool {
    head.text.lines().any(|line| {
        line.starts_with(" Nextest run ID ")
            || line.starts_with("    Starting ") && line.contains(" across ")
            || line.starts_with("     Summary [") && line.contains("run: ")
    })
}

#[derive(Debug, Default)]
pub(super) struct NextestText {
    build: Build,
    began: bool,
    /// The counts, once the end is told. Below them stand the failed tests again, or for the first time.
    over: Option<Counts>,
    /// The test that failed last, until what it printed is over.
    failed: Option<FailedTest>,
    /// The test that runs and prints, with `--no-capture`.
    running: Option<(String, HeadTail)>,
    /// Failed tests that were told.
    told: HashSet<String>,
    /// Failed tests of which nothing was printed yet.
    silent: HashMap<String, FailedTest>,
    passed: u64,
    errors: Vec<String>,
}

#[derive(Debug, Clone, Copy)]
struct Counts {
    ran: u64,
    passed: u64,
    skipped: u64,
}

#[derive(Debug)]
struct FailedTest {
    /// Suite and name.
    id: String,
    suite: String,
    name: String,
    word: String,
    ms: u64,
    attempt: Attempt,
    output: HeadTail,
    /// Before nextest 0.9.86, output was not indented.
    indented: bool,
}

impl LineReader for NextestText {
    fn line(&mut self, _: Stream, line: &str, sink: &mut dyn Sink) {
        if !self.began {
            self.build.line(line);
            if let Some(rest) = line.trim_start().strip_prefix("Starting ") {
                self.starting(rest, sink);
            } else if let Some(error) = line.strip_prefix("error: ")
                && self.errors.len() < 20
            {
                self.errors.push(error.to_owned());
            }
            return;
        }
        if let Some(rest) = line.strip_prefix("     Summary [").filter(|_| self.over.is_none()) {
            self.tell_failed(sink);
            return self.summary(rest);
        }
        if let Some(row) = Row::of(line) {
            return self.row(&row, sink);
        }
        let ruler = !line.is_empty() && line.chars().all(|c| c == '─');
        if ruler {
        } else if let Some((_, output)) = &mut self.running {
            output.push_line(line);
        } else if let Some(failed) = &mut self.failed {
            failed.push(line);
        }
    }

    fn end(&mut self, sink: &mut dyn Sink) {
        self.tell_failed(sink);
        let mut silent: Vec<_> = std::mem::take(&mut self.silent).into_iter().collect();
        silent.sort_by(|(a, _), (b, _)| a.cmp(b));
        for (_, failed) in silent {
            tell(failed, sink);
        }
        self.build.end(self.began, sink);
        if let Some(Counts { ran, passed, skipped }) = self.over {
            // With `--status-level fail` good tests are only counted.
            let unnamed = passed.saturating_sub(self.passed);
            for (status, count) in [(TestStatus::Pass, unnamed), (TestStatus::Skip, skipped)] {
                if count > 0 {
                    sink.event(Event::Counted { status, count });
                }
            }
            sink.event(Event::Ended { counted: Some(ran.saturating_add(skipped)) });
        }
        if !self.began
            && let Some(error) = self.errors.iter().find(|error| error.contains("test list failed"))
        {
            sink.event(Event::Problem(run_problem(error.clone())));
        }
    }
}

impl NextestText {
    /// `Starting 15 tests across 2 binaries (1 test skipped)`.
    fn starting(&mut self, rest: &str, sink: &mut dyn Sink) {
        let Some(count) = rest.split(' ').next().and_then(|count| count.parse().ok()) else { return };
        if rest.contains(" across ") {
            self.began = true;
            self.build.tests_begin();
            sink.event(Event::Declared(count));
        }
    }

    fn row(&mut self, row: &Row<'_>, sink: &mut dyn Sink) {
        let test = TestId { suite: row.suite, name: row.name };
        let attempt = if row.tried { Attempt::Retry } else { Attempt::Only };
        let id = format!("{} {}", row.suite, row.name);
        let printed = self.running.take_if(|(running, _)| *running == id).map(|(_, output)| output);
        match row.word {
            "PASS" | "LEAK" if self.over.is_some() => {}
            "PASS" | "LEAK" => {
                self.tell_failed(sink);
                self.passed += 1;
                sink.event(Event::Finished(Finished {
                    attempt,
                    ..Finished::new(test, TestStatus::Pass, row.ms)
                }));
            }
            "START" => {
                self.tell_failed(sink);
                self.running = Some((id, HeadTail::new(OUTPUT)));
                sink.event(Event::Started { test, at: crate::Place::default() });
            }
            "SLOW" => sink.event(Event::Started { test, at: crate::Place::default() }),
            "SKIP" | "TRMNTG" | "TERMINATING" | "DELAY" | "RETRY" | "SETUP" | "FLAKY" | "PAUSE"
            | "CONTINUE" => {}
            word => {
                self.tell_failed(sink);
                self.failed = Some(FailedTest {
                    id,
                    suite: row.suite.to_owned(),
                    name: row.name.to_owned(),
                    word: word.to_owned(),
                    ms: row.ms,
                    attempt,
                    output: printed.unwrap_or_else(|| HeadTail::new(OUTPUT)),
                    indented: true,
                });
            }
        }
    }

    fn tell_failed(&mut self, sink: &mut dyn Sink) {
        let Some(failed) = self.failed.take() else { return };
        let room = self.told.len() < MOST_FAILED && self.silent.len() < MOST_FAILED;
        if self.over.is_some() {
            // It was told above, unless it had nothing to say there, or was not named at all.
            let silent = self.silent.remove(&failed.id);
            let new = silent.is_some() || room && !self.told.contains(&failed.id);
            let failed = match silent {
                Some(before) => FailedTest { output: failed.output, ..before },
                None => failed,
            };
            if new {
                self.told.insert(failed.id.clone());
                tell(failed, sink);
            }
        } else if failed.output.is_empty() && failed.attempt == Attempt::Only && room {
            self.silent.insert(failed.id.clone(), failed);
        } else {
            if room {
                self.told.insert(failed.id.clone());
            }
            tell(failed, sink);
        }
    }

    /// `   2.030s] 15 tests run: 7 passed (1 flaky, 1 leaky), 7 failed, 1 timed out, 1 skipped`.
    fn summary(&mut self, rest: &str) {
        let Some((_, counts)) = rest.split_once("] ") else { return };
        let Some((run, parts)) = counts.split_once(" run: ") else { return };
        let Some(ran) = run.split([' ', '/']).next().and_then(|count| count.parse::<u64>().ok()) else {
            return;
        };
        let number = |word: &str| {
            let mut words = parts.split(", ").map(|part| part.split_once(' ').unwrap_or((part, "")));
            words.find(|(_, what)| what.split(' ').next() == Some(word))?.0.parse::<u64>().ok()
        };
        let (passed, skipped) = (number("passed").unwrap_or(0), number("skipped").unwrap_or(0));
        self.over = Some(Counts { ran, passed, skipped });
    }
}

fn tell(failed: FailedTest, sink: &mut dyn Sink) {
    let test = TestId { suite: &failed.suite, name: &failed.name };
    let text = failed.output.into_text();
    if !text.trim().is_empty() {
        sink.event(Event::Output { test, text: &text });
    }
    let told = said(&failed.word, &text);
    let failure = match &told {
        Some((kind, message)) => Failure { kind: Some(*kind), message, ..Failure::default() },
        None => rust_failure(&failed.name, &text),
    };
    let finished = Finished::new(test, TestStatus::Fail, failed.ms).failure(failure);
    sink.event(Event::Finished(Finished { attempt: failed.attempt, ..finished }));
}

impl FailedTest {
    fn push(&mut self, line: &str) {
        if line.starts_with("--- STDOUT:") || line.starts_with("--- STDERR:") {
            self.indented = false;
            return;
        }
        let is_title = |line: &str| {
            let line = line.trim();
            matches!(line.split(' ').next(), Some("stdout" | "stderr" | "output")) && line.ends_with("───")
        };
        if is_title(line) {
            return;
        }
        let line = if self.indented { line.strip_prefix("    ").unwrap_or(line) } else { line };
        self.output.push_line(line);
    }
}

/// One line on one test: `  TRY 2 FAIL [   0.007s] ( 5/15) shop tests::fails_eq`.
struct Row<'a> {
    word: &'a str,
    tried: bool,
    ms: u64,
    suite: &'a str,
    name: &'a str,
}

impl<'a> Row<'a> {
    fn of(line: &'a str) -> Option<Self> {
        let (left, rest) = line.split_once(" [")?;
        // Twelve columns, aligned to the right; what tests print is indented by four and has no such column.
        if left.chars().count() != 12 {
            return None;
        }
        let (time, rest) = rest.split_once("] ")?;
        let time = time.trim_start_matches('>').trim();
        // A test that begins has no time yet.
        let seconds: f64 = if time.is_empty() { 0.0 } else { time.strip_suffix('s')?.parse().ok()? };
        let ms = milliseconds::of_seconds(seconds);
        let rest = match rest.strip_prefix('(') {
            Some(counted) => counted.split_once(") ")?.1,
            None => rest,
        };
        let (suite, name) = rest.trim_start().split_once(' ')?;
        let left = left.trim_start();
        let (word, tried) = match left.strip_prefix("TRY ") {
            Some(tried) => (tried.split_once(' ')?.1.trim(), true),
            None => (left.split(' ').next()?, false),
        };
        let capital = !word.is_empty()
            && word.bytes().all(|byte| byte.is_ascii_uppercase() || matches!(byte, b'-' | b'0'..=b'9'));
        capital.then_some(Row { word, tried, ms, suite, name })
    }
}

/// What the word of a failed test says beyond that it failed.
fn said(word: &str, text: &str) -> Option<(FailureKind, String)> {
    match word {
        "FAIL" => None,
        "TIMEOUT" | "TMT" => {
            Some((FailureKind::Timeout, "timeout: the test's own time limit was exceeded".to_owned()))
        }
        "LEAK-FAIL" => Some((
            FailureKind::Teardown,
            "the test left a process behind that keeps its output open".to_owned(),
        )),
        "XFAIL" | "EXECFAIL" => Some((FailureKind::Exit, "the test could not be started".to_owned())),
        word => {
            let note = text.lines().rev().find_map(|line| line.trim().strip_prefix("(test aborted with "));
            let signal = note.map_or_else(|| word.to_owned(), |note| note.trim_end_matches(')').to_owned());
            Some((FailureKind::Crash, format!("the test's process was ended by {signal}")))
        }
    }
}

fn run_problem(message: String) -> Problem {
    Problem::new(ProblemScope::Run, "", Some(FailureKind::Config), message)
}

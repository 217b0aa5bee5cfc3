//! Elixir's `ExUnit`: dots or a line a test, failures on the way, counts at the end.

use super::by_line::LineReader;
use super::tally::Tally;
use super::{Head, Stream, milliseconds, place};
use crate::{
    Event, Failure, FailureKind, Finished, HeadTail, Place, Problem, ProblemScope, Sink, TestId, TestStatus,
};

/// Bytes at each end of one failure.
const ENTRY: usize = 16 << 10;
/// Good tests of one module that wait for its end.
const MOST_NAMES: usize = 50_000;

pub(super) fn looks_like(head: &Head<'_>) -> bool {
    let lines = || head.text.lines();
    lines().any(|line| {
        line.starts_with("== Compilation error in file ")
            || line.starts_with("Finished in ") && line.contains("s async, ")
            || line.starts_with("  * ") && line.contains(" [L#")
    }) || lines().any(|line| counts(line).is_some())
        && lines().any(|line| line.starts_with("Randomized with seed "))
        || lines().any(|line| line.starts_with("     stacktrace:"))
            && lines().any(|line| title(line).is_some_and(|(_, name)| name.ends_with(')')))
}

#[derive(Debug, Default)]
pub(super) struct ExUnit {
    entry: Option<Entry>,
    number: u64,
    module: String,
    /// Good tests of the module in the trace: a failure of the test, or of the whole module, may follow.
    passed: Vec<(String, u64)>,
    named: Tally,
    dots: Tally,
    compile: Option<(String, HeadTail)>,
    after_finished: bool,
    counts: Option<(Tally, u64)>,
}

#[derive(Debug)]
struct Entry {
    title: String,
    text: HeadTail,
}

impl LineReader for ExUnit {
    fn line(&mut self, _: Stream, line: &str, sink: &mut dyn Sink) {
        let after_finished = std::mem::take(&mut self.after_finished);
        if let Some(file) = line.strip_prefix("== Compilation error in file ") {
            self.end_compile(sink);
            self.compile = Some((file.trim_end_matches(" ==").to_owned(), HeadTail::new(ENTRY)));
            return;
        }
        if let Some((_, text)) = &mut self.compile {
            return text.push_line(line);
        }
        if after_finished && let Some(counts) = counts(line) {
            self.counts = Some(counts);
            return;
        }
        if line.starts_with("Finished in ") && line.contains(" second") {
            self.end_entry(sink);
            self.pass(sink);
            self.after_finished = true;
            return;
        }
        // The failure of a whole module has the number of the test before it.
        let next = title(line).filter(|(number, _)| *number == self.number + 1 || *number == self.number);
        if let Some((number, name)) = next {
            self.end_entry(sink);
            self.number = number;
            self.entry = Some(Entry { title: name.to_owned(), text: HeadTail::new(ENTRY) });
            return;
        }
        self.other_line(line, sink);
    }

    fn end(&mut self, sink: &mut dyn Sink) {
        self.end_entry(sink);
        self.pass(sink);
        self.end_compile(sink);
        match self.counts {
            Some((counts, invalid)) => {
                counts.count_unnamed(self.named, sink);
                if invalid > 0 {
                    sink.event(Event::Counted { status: TestStatus::NotRun, count: invalid });
                }
                sink.event(Event::Ended { counted: Some(counts.sum().saturating_add(invalid)) });
            }
            None => self.dots.count_unnamed(self.named, sink),
        }
    }
}

impl ExUnit {
    fn other_line(&mut self, line: &str, sink: &mut dyn Sink) {
        if let Some(entry) = &mut self.entry {
            if line.is_empty() || line.starts_with("     ") {
                return entry.text.push_line(line.strip_prefix("     ").unwrap_or(line));
            }
            self.end_entry(sink);
        }
        if let Some((module, rest)) = line.split_once(" [")
            && rest.ends_with(".exs]")
            && !module.contains(' ')
        {
            self.pass(sink);
            return module.clone_into(&mut self.module);
        }
        // Without a terminal, the line of a test that ends follows the line of its beginning.
        if let Some(at) = line.rfind("  * ").filter(|_| line.starts_with("  * ")) {
            return self.trace_line(&line[at + 4..], sink);
        }
        if !line.is_empty() && line.bytes().all(|mark| matches!(mark, b'.' | b'*' | b'?')) {
            for mark in line.bytes().filter(|mark| *mark != b'?') {
                self.dots.add(if mark == b'.' { TestStatus::Pass } else { TestStatus::Skip });
            }
        }
    }

    /// `test ok (0.1ms) [L#4]`, `test hangs [L#5]`, `test later (skipped) [L#13]`.
    fn trace_line(&mut self, text: &str, sink: &mut dyn Sink) {
        let Some((text, line)) = text.strip_suffix(']').and_then(|text| text.rsplit_once(" [L#")) else {
            return;
        };
        let result = text.strip_suffix(')').and_then(|text| text.rsplit_once(" ("));
        let timed =
            result.and_then(|(name, time)| Some((name, time.strip_suffix("ms")?.parse::<f64>().ok()?)));
        if let Some((name, ms)) = timed {
            if self.passed.len() >= MOST_NAMES {
                self.pass(sink);
            }
            self.passed.push((format!("{} {name}", self.module), milliseconds::of(ms)));
        } else if let Some((name, "skipped" | "excluded")) = result {
            self.named.skipped += 1;
            let name = format!("{} {name}", self.module);
            let test = TestId { suite: &self.module, name: &name };
            sink.event(Event::Finished(Finished::new(test, TestStatus::Skip, 0)));
        } else {
            let name = format!("{} {text}", self.module);
            let test = TestId { suite: &self.module, name: &name };
            let line = line.parse().ok();
            sink.event(Event::Started { test, at: Place { file: None, line } });
        }
    }

    /// No failure of the module followed.
    fn pass(&mut self, sink: &mut dyn Sink) {
        for (name, ms) in std::mem::take(&mut self.passed) {
            self.named.passed += 1;
            let suite = name.split(' ').next().unwrap_or_default();
            sink.event(Event::Finished(Finished::new(TestId { suite, name: &name }, TestStatus::Pass, ms)));
        }
    }

    fn end_entry(&mut self, sink: &mut dyn Sink) {
        let Some(entry) = self.entry.take() else { return };
        let text = entry.text.into_text();
        if let Some((module, what)) = entry.title.split_once(": failure on ") {
            // Its tests are told as if they had run.
            self.passed.clear();
            return sink.event(Event::Problem(module_problem(module, what, &text)));
        }
        let Some((test, module)) = entry.title.strip_suffix(')').and_then(|title| title.rsplit_once(" ("))
        else {
            return;
        };
        let name = format!("{module} {test}");
        self.passed.pop_if(|(passed, _)| *passed == name);
        self.named.failed += 1;
        let (defined, rest) = text.split_once('\n').unwrap_or((&text, ""));
        let error = Error::of(rest);
        let at = error.place().or_else(|| place::trailing(defined)).unwrap_or_default();
        let failure = Failure {
            kind: Some(error.kind()),
            message: error.message,
            stack: error.stack,
            at,
            expected: value(error.message, "right: "),
            actual: value(error.message, "left: "),
        };
        let test = TestId { suite: module, name: &name };
        sink.event(Event::Finished(Finished::new(test, TestStatus::Fail, 0).failure(failure)));
    }

    fn end_compile(&mut self, sink: &mut dyn Sink) {
        let Some((file, text)) = self.compile.take() else { return };
        let text = text.into_text();
        let said = text
            .trim()
            .strip_prefix("** (")
            .and_then(|text| text.split_once(") "))
            .map_or(text.trim(), |(_, said)| said);
        let at = place::leading(said).filter(|(at, _)| at.file == Some(file.as_str()));
        // Since 1.15 errors are told before, each with a drawing that ends with its place.
        let line = at.and_then(|(at, _)| at.line).or_else(|| {
            let drawn = text.lines().filter_map(|line| {
                line.trim().trim_start_matches(['└', '─', ' ']).strip_prefix(file.as_str())
            });
            drawn.into_iter().find_map(|rest| rest.trim_start_matches(':').split(':').next()?.parse().ok())
        });
        let message = at.map_or(said, |(_, rest)| rest).to_owned();
        let kind = Some(FailureKind::Compile);
        let name = file.clone();
        sink.event(Event::Problem(
            Problem::new(ProblemScope::Build, name, kind, message).placed(Some(file), line),
        ));
    }
}

struct Error<'a> {
    message: &'a str,
    stack: &'a str,
}

impl<'a> Error<'a> {
    fn of(text: &'a str) -> Self {
        let (message, stack) = text.split_once("stacktrace:\n").unwrap_or((text, ""));
        Self { message: message.trim_end(), stack: stack.trim_end() }
    }

    fn kind(&self) -> FailureKind {
        match self.message.strip_prefix("** (") {
            None => FailureKind::Assertion,
            Some(_) if self.message.contains("ExUnit.TimeoutError") => FailureKind::Timeout,
            Some(_) if self.message.contains(" nil.") || self.message.contains("nil\n") => {
                FailureKind::NullDeref
            }
            Some(_) => FailureKind::Error,
        }
    }

    /// Frames of dependencies have their application before: `(ecto 3.1.0) lib/ecto.ex:5: Ecto.get/2`.
    fn place(&self) -> Option<Place<'a>> {
        let own = self.stack.lines().map(str::trim_start).filter(|frame| !frame.starts_with('('));
        own.into_iter().find_map(|frame| place::leading(frame).map(|(at, _)| at))
    }
}

fn module_problem(module: &str, what: &str, text: &str) -> Problem {
    let error = Error::of(text);
    let at = error.place().unwrap_or_default();
    let kind = if what.starts_with("setup_all") { FailureKind::Setup } else { FailureKind::Teardown };
    Problem::new(ProblemScope::Suite, module, Some(kind), error.message).at(at)
}

/// `  1) test adds (CartTest)`.
fn title(line: &str) -> Option<(u64, &str)> {
    let (number, name) = line.strip_prefix("  ")?.split_once(") ")?;
    Some((number.trim_start().parse().ok()?, name))
}

fn value<'a>(message: &'a str, label: &str) -> Option<&'a str> {
    message.lines().find_map(|line| line.strip_prefix(label)).map(str::trim)
}

/// `1 doctest, 4 tests, 2 failures, 1 excluded, 2 invalid, 1 skipped`, and how many never ran.
fn counts(line: &str) -> Option<(Tally, u64)> {
    let (mut all, mut failed, mut skipped, mut invalid) = (0u64, None, 0u64, 0);
    for part in line.split(", ") {
        let (number, what) = part.split_once(' ')?;
        let number = number.parse::<u64>().ok()?;
        match what {
            "failure" | "failures" => failed = Some(number),
            "excluded" | "skipped" => skipped = skipped.saturating_add(number),
            "invalid" => invalid = number,
            "test" | "tests" | "doctest" | "doctests" | "property" | "properties" | "feature"
            | "features" => {
                all = all.saturating_add(number);
            }
            _ => return None,
        }
    }
    let failed = failed?;
    let passed = all.checked_sub(failed)?.checked_sub(skipped)?.checked_sub(invalid)?;
    Some((Tally { passed, failed, skipped }, invalid))
}

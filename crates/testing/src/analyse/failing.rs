//! Everything that failed in a run, tests and problems alike, seen in one way.

use super::denial::{Denied, Withheld, denied};
use super::frames::{Frame, frames};
use super::pattern::{FailurePattern, pattern_of, said};
use super::signature::{Quoted, signature};
use super::tree::Tree;
use crate::text::floor_char;
use crate::{Problem, ProblemScope, TestCase, TestReport, TestStatus};

#[derive(Debug)]
pub(crate) struct Failing<'a> {
    pub name: &'a str,
    pub source: Source<'a>,
    pub message: &'a str,
    pub pattern: FailurePattern,
    pub signature: String,
    /// Where to look, relative to the project.
    pub place: Option<(String, u32)>,
    /// The project's own frames, the deepest first.
    pub frames: Vec<OwnFrame<'a>>,
    pub denied: Option<Denied>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Source<'a> {
    Test(&'a TestCase),
    Problem(&'a Problem),
    /// The run as a whole, of which only the output is known.
    Output,
}

/// A frame in a file of the project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OwnFrame<'a> {
    pub file: String,
    pub line: u32,
    pub function: &'a str,
}

impl<'a> Failing<'a> {
    /// All that failed, in the order of the report.
    pub(crate) fn all(report: &'a TestReport, tree: &Tree, withheld: Option<&Withheld>) -> Vec<Self> {
        let tests = report.tests.iter().filter(|test| failed(test.status)).map(Source::Test);
        let problems = [&report.build_errors, &report.suite_errors, &report.run_errors]
            .into_iter()
            .flatten()
            .map(Source::Problem);
        let mut all: Vec<Source<'a>> = tests.chain(problems).collect();
        let nothing_else = all.is_empty() && report.summary.total == 0;
        if nothing_else && !report.success && !report.raw_output.trim().is_empty() {
            all.push(Source::Output);
        }
        all.into_iter().map(|source| Self::new(source, report, tree, withheld)).collect()
    }

    fn new(source: Source<'a>, report: &'a TestReport, tree: &Tree, withheld: Option<&Withheld>) -> Self {
        let (name, message, kind, stack) = match source {
            Source::Test(test) => {
                (test.name.as_str(), test.error.as_str(), test.kind, test.stack_trace.as_str())
            }
            Source::Problem(problem) => (problem.name.as_str(), problem.message.as_str(), problem.kind, ""),
            Source::Output => ("", report.raw_output.as_str(), None, ""),
        };
        let pattern = match source {
            Source::Test(test) if test.status == TestStatus::Timeout => FailurePattern::Timeout,
            Source::Test(test) if test.status == TestStatus::Crash && message.is_empty() => {
                FailurePattern::Crash
            }
            Source::Test(test) => pattern_of(kind, message, test.expected.is_some() && test.actual.is_some()),
            Source::Problem(_) | Source::Output => pattern_of(kind, message, false),
        };
        let quoted = if pattern.is_named_by_quotes() { Quoted::Keep } else { Quoted::Replace };
        let place = place_of(source).map(|(file, line)| (tree.relative(file), line));
        let text = if stack.is_empty() { message } else { stack };
        Self {
            name,
            source,
            message,
            pattern,
            signature: signature(telling(message), quoted),
            frames: own_frames(text, place.as_ref(), tree),
            place,
            denied: withheld.and_then(|withheld| denial_of(source, message, stack, withheld)),
        }
    }

    pub(crate) const fn is_test(&self) -> bool {
        matches!(self.source, Source::Test(_))
    }

    pub(crate) const fn scope(&self) -> Option<ProblemScope> {
        match self.source {
            Source::Test(_) => None,
            Source::Problem(problem) => Some(problem.scope),
            Source::Output => Some(ProblemScope::Run),
        }
    }

    /// The part of the message that says what happened.
    pub(crate) fn headline(&self) -> &'a str {
        match self.source {
            Source::Output => last_words(self.message),
            Source::Test(_) | Source::Problem(_) => headline(self.message),
        }
    }

    /// The function at its place, if the stack tells.
    pub(crate) fn function(&self) -> Option<&'a str> {
        let (file, line) = self.place.as_ref()?;
        let frame = self.frames.iter().find(|frame| frame.file == *file && frame.line == *line)?;
        Some(frame.function).filter(|name| !name.is_empty() && name.len() <= 80)
    }

    pub(crate) fn expected_and_actual(&self) -> Option<(&'a str, &'a str)> {
        match self.source {
            Source::Test(test) => Some((test.expected.as_deref()?, test.actual.as_deref()?)),
            Source::Problem(_) | Source::Output => None,
        }
    }
}

/// Whether a test has to be looked at.
pub(crate) const fn failed(status: TestStatus) -> bool {
    status.is_failure() || matches!(status, TestStatus::Timeout)
}

fn place_of(source: Source<'_>) -> Option<(&str, u32)> {
    match source {
        Source::Test(test) => Some((test.file.as_deref()?, test.line.unwrap_or(0))),
        Source::Problem(problem) => Some((problem.file.as_deref()?, problem.line.unwrap_or(0))),
        Source::Output => None,
    }
}

fn own_frames<'a>(text: &'a str, place: Option<&(String, u32)>, tree: &Tree) -> Vec<OwnFrame<'a>> {
    let own = frames(text).into_iter().filter_map(|Frame { file, line, function }| {
        let file = tree.own(file)?;
        Some(OwnFrame { file, line, function })
    });
    let mut own: Vec<OwnFrame<'a>> = own.collect();
    if let Some((file, line)) = place
        && *line > 0
        && !own.iter().any(|frame| frame.file == *file && frame.line == *line)
    {
        own.insert(0, OwnFrame { file: file.clone(), line: *line, function: "" });
    }
    own
}

/// What the error says counts; what the test expected to read does not, and what it printed proves nothing.
fn denial_of(source: Source<'_>, message: &str, stack: &str, withheld: &Withheld) -> Option<Denied> {
    let told = [message, stack].into_iter().filter_map(said).find(|told| told.pattern.is_environment())?;
    if let Source::Test(test) = source
        && let Some(expected) = test.expected.as_deref().and_then(said)
        && expected.pattern == told.pattern
    {
        return None;
    }
    denied(told, withheld)
}

/// The lines of a message that tell: without blank ones, at most three.
fn telling(message: &str) -> &str {
    let message = message.trim();
    let end = message.match_indices('\n').nth(2).map_or(message.len(), |(at, _)| at);
    &message[..end]
}

/// The one line that says what happened, of a message of many.
fn headline(message: &str) -> &str {
    const PREAMBLES: [&str; 5] =
        ["Traceback (most recent call last)", "File \"", "goroutine ", "stack backtrace", "● "];
    let mut lines = message.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.clone().next().unwrap_or("");
    let line = if PREAMBLES.iter().any(|start| first.starts_with(start)) {
        said(message).map(|said| said.line).or_else(|| lines.next_back()).unwrap_or(first)
    } else {
        first
    };
    shown(line)
}

/// The line of an output that says most; without one, its last.
fn last_words(output: &str) -> &str {
    let last = || output.lines().rev().map(str::trim).find(|line| !line.is_empty());
    shown(said(output).map(|said| said.line).or_else(last).unwrap_or(""))
}

fn shown(line: &str) -> &str {
    let line = line.strip_prefix("E   ").unwrap_or(line).trim();
    &line[..floor_char(line, 400)]
}

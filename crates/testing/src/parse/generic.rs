//! Any command: its exit status decides, and its text gives hints.
//!
//! Nothing here makes a test out of a line. Counts are only claimed, and believed if the exit status says the same;
//! places near the end of the output may tell why the status is bad.

use std::collections::VecDeque;

use super::by_line::LineReader;
use super::{Stream, place};
use crate::{Event, FailureKind, Place, Problem, ProblemScope, Sink};

/// Places that are told.
const MOST_HINTS: usize = 20;
/// Lines at the end that are looked at: what broke a command, and what sums it up, stand last.
const LAST_LINES: usize = 400;
/// A longer line is no message for people.
const LONGEST_LINE: usize = 2000;

#[derive(Debug, Default)]
pub(super) struct Generic {
    last: VecDeque<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Claim {
    passed: u64,
    failed: u64,
    skipped: u64,
}

impl LineReader for Generic {
    fn line(&mut self, _: Stream, line: &str, _: &mut dyn Sink) {
        if line.len() > LONGEST_LINE {
            return;
        }
        let full = self.last.len() == LAST_LINES;
        let mut kept = if full { self.last.pop_front().unwrap_or_default() } else { String::new() };
        line.clone_into(&mut kept);
        self.last.push_back(kept);
    }

    fn end(&mut self, sink: &mut dyn Sink) {
        let mut hints: Vec<Problem> = Vec::new();
        for problem in self.last.iter().rev().filter_map(|line| hint(line)) {
            if hints.len() < MOST_HINTS && !hints.contains(&problem) {
                hints.push(problem);
            }
        }
        for problem in hints.into_iter().rev() {
            sink.event(Event::Hint(problem));
        }
        if let Some(Claim { passed, failed, skipped }) = self.last.iter().rev().find_map(|line| claim(line)) {
            sink.event(Event::Claimed { passed, failed, skipped });
        }
        sink.event(Event::Ended { counted: None });
    }
}

/// `file:line:` or `file:line:column:` with a message, of a file that looks like one; or `file(line,column): message`.
fn hint(line: &str) -> Option<Problem> {
    let text = line.trim();
    let (at, message) = place::leading(text).or_else(|| in_brackets(text))?;
    let file = at.file?;
    let (_, extension) = file.rsplit('/').next()?.rsplit_once('.')?;
    let is_file = !extension.is_empty()
        && extension.len() <= 10
        && extension.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && !extension.bytes().all(|byte| byte.is_ascii_digit())
        && !file.contains("://")
        && !file.contains([' ', '"', '\'', '(', '<', '=']);
    let quiet = ["warning", "note", "info", "in "].iter().any(|word| message.starts_with(word));
    if !is_file || message.is_empty() || quiet || !place::is_own(&at) {
        return None;
    }
    Some(
        Problem::new(ProblemScope::Run, "", Some(FailureKind::Error), message)
            .placed(Some(file.to_owned()), at.line),
    )
}

fn in_brackets(text: &str) -> Option<(Place<'_>, &str)> {
    let (file, rest) = text.split_once('(')?;
    let (numbers, message) = rest.split_once("): ")?;
    let line = numbers.split(',').next()?.parse().ok()?;
    Some((Place::new(file, line), message))
}

/// A line that sums up a run, in one of the forms that many runners share: `12 passed, 3 failed, 1 skipped`,
/// `Tests: 3 failed, 12 passed`, `tests 15, failures 3`.
fn claim(line: &str) -> Option<Claim> {
    let mut claim = Claim { passed: 0, failed: 0, skipped: 0 };
    let text = line.trim().trim_matches(['=', '-', ' ']);
    let text = text.strip_prefix("Tests:").or_else(|| text.strip_prefix("Results:")).unwrap_or(text).trim();
    let (mut passed, mut parts) = (false, 0);
    for part in text.split([',', ';', '|']).map(str::trim) {
        let mut words = part.split(' ');
        let (Some(number), Some(word), more) = (words.next(), words.next(), words.next()) else {
            return None;
        };
        // `12 passed in 0.3s` and `12 passed (0.3s)` end a line.
        if more.is_some_and(|more| more != "in" && !more.starts_with('(') && more != "tests") {
            return None;
        }
        let number = number.parse::<u64>().ok()?;
        parts += 1;
        match word.to_ascii_lowercase().as_str() {
            "passed" | "passing" | "ok" | "succeeded" => (claim.passed, passed) = (number, true),
            "failed" | "failing" | "errors" | "error" | "broken" => {
                claim.failed = claim.failed.saturating_add(number);
            }
            "skipped" | "ignored" | "pending" | "todo" | "disabled" => {
                claim.skipped = claim.skipped.saturating_add(number);
            }
            "total" => {}
            _ => return None,
        }
    }
    (passed && parts >= 2 || parts == 1 && passed && claim.passed > 0).then_some(claim)
}

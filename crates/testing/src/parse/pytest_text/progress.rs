//! The progress that pytest prints: characters, or with `-v` a line a test.

use std::collections::{HashMap, HashSet};

use crate::parse::pytest_phases::test_id;
use crate::{Attempt, Event, Failure, Finished, Place, Sink, TestStatus};

/// So many names of tests that failed, or run again, are remembered.
const MOST_KEPT: usize = 50_000;

#[derive(Debug, Default)]
pub(super) struct Progress {
    /// How many tests were told with their names as passed, skipped or failed as expected.
    pub named: Tally,
    /// By character, where there are no names.
    pub dots: Tally,
    /// Whether there are names.
    pub verbose: bool,
    /// Whether the progress came to its end.
    pub complete: bool,
    /// Failed tests, in the order of their names' first appearance.
    pub failed: Vec<(String, TestStatus)>,
    at: HashMap<String, usize>,
    /// A good end that a failing clean-up may still change.
    held: Option<(String, TestStatus, String)>,
    /// The test whose status was not printed yet.
    current: Option<String>,
    reruns: HashSet<String>,
    /// Tests whose status came in a line of its own: parts of them may have failed before.
    apart: HashSet<String>,
    xdist: bool,
    /// How many lines have characters behind a file: a node is then something that a test printed.
    files: usize,
}

/// Numbers of tests by their end.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tally {
    pub passed: u64,
    pub failed: u64,
    pub errors: u64,
    pub skipped: u64,
    pub xfailed: u64,
}

impl Tally {
    fn add(&mut self, status: TestStatus) {
        match status {
            TestStatus::Fail => self.failed += 1,
            TestStatus::Error => self.errors += 1,
            TestStatus::Skip => self.skipped += 1,
            TestStatus::Xfail => self.xfailed += 1,
            _ => self.passed += 1,
        }
    }
}

impl Progress {
    pub(super) fn line(&mut self, line: &str, sink: &mut dyn Sink) {
        self.complete |= line.trim_end().ends_with("[100%]");
        self.files += usize::from(!self.verbose && file_and_characters(line));
        if let Some((status, node)) = worker_line(line) {
            self.xdist = true;
            self.ended(node.trim_end(), status, "", sink);
        } else if let Some((node, rest)) = node_line(line).filter(|_| self.files == 0) {
            self.node(node, rest, sink);
        } else if let Some((status, reason)) = status(without_percentage(line).trim())
            && let Some(node) = self.current.take()
        {
            self.ended(&node, status, reason, sink);
        } else {
            self.characters(line);
        }
    }

    fn node(&mut self, node: &str, rest: &str, sink: &mut dyn Sink) {
        self.verbose = true;
        match status(without_percentage(rest).trim()) {
            Some((status, reason)) => self.ended(node, status, reason, sink),
            None => {
                self.release(sink);
                self.current = Some(node.to_owned());
                sink.event(Event::Started { test: test_id(node), at: Place::default() });
            }
        }
    }

    fn ended(&mut self, node: &str, status: Word, reason: &str, sink: &mut dyn Sink) {
        self.verbose = true;
        let status = match status {
            Word::Ended(status) => status,
            Word::Part => return,
            Word::Rerun => {
                if self.reruns.len() < MOST_KEPT {
                    self.reruns.insert(node.to_owned());
                }
                return;
            }
        };
        if self.current.take_if(|current| current == node).is_some() && self.apart.len() < MOST_KEPT {
            self.apart.insert(node.to_owned());
        }
        // The clean-up of a test that was told already. With workers, such tests are told again.
        if !self.xdist
            && status == TestStatus::Error
            && self.held.as_ref().is_some_and(|(held, ..)| held == node)
        {
            self.held = None;
        }
        self.release(sink);
        if status.is_failure() {
            self.remember(node, status);
            return;
        }
        let status =
            if status == TestStatus::Pass && self.reruns.remove(node) { TestStatus::Flaky } else { status };
        self.held = Some((node.to_owned(), status, reason.to_owned()));
    }

    fn remember(&mut self, node: &str, status: TestStatus) {
        if self.failed.len() < MOST_KEPT && !self.at.contains_key(node) {
            self.at.insert(node.to_owned(), self.failed.len());
            self.failed.push((node.to_owned(), status));
        }
    }

    /// Tells the good end that was held back.
    fn release(&mut self, sink: &mut dyn Sink) {
        let Some((node, status, reason)) = self.held.take() else { return };
        self.named.add(status);
        let failure = Failure { message: &reason, ..Failure::default() };
        sink.event(Event::Finished(Finished {
            failure: (!reason.is_empty()).then_some(failure),
            attempt: self.attempt(&node),
            ..Finished::new(test_id(&node), status, 0)
        }));
    }

    /// With several workers, the error of a clean-up may come much later than the test's end; and that a part of a
    /// test failed may be told only at the end.
    pub(super) fn attempt(&self, node: &str) -> Attempt {
        if self.xdist || self.apart.contains(node) { Attempt::Repeat } else { Attempt::Only }
    }

    /// What was named as good, but for tests of which a clean-up or a part failed.
    pub(super) fn named_before(&self, teardowns: u64, parts: u64) -> Tally {
        let later = if self.xdist { teardowns } else { 0 } + if self.verbose { parts } else { 0 };
        Tally { passed: self.named.passed.saturating_sub(later), ..self.named }
    }

    pub(super) fn finish(&mut self, sink: &mut dyn Sink) {
        self.release(sink);
    }

    /// The only test that is known to run.
    pub(super) fn current(&self) -> Option<&str> {
        self.current.as_deref().filter(|_| !self.xdist)
    }

    /// A node and what stands behind it in the short summary. Nodes may hold spaces and dashes.
    pub(super) fn split_node<'a>(&self, text: &'a str) -> (&'a str, &'a str) {
        let splits = text.match_indices(" - ").map(|(at, _)| at);
        let known = splits.chain([text.len()]).find(|at| self.at.contains_key(&text[..*at]));
        let at = known.or_else(|| {
            let parameters = text.find('[').filter(|open| text.find(" - ").is_none_or(|dash| *open < dash));
            match parameters {
                Some(_) => text.find("] - ").map(|at| at + 1),
                None => text.find(" - "),
            }
        });
        match at {
            Some(at) => (&text[..at], text[at..].strip_prefix(" - ").unwrap_or("")),
            None => (text, ""),
        }
    }

    /// `tests/test_a.py ..F [ 50%]`, or only the characters.
    fn characters(&mut self, line: &str) {
        if self.verbose {
            return;
        }
        // What pytest-timeout prints comes in between.
        let line = line.split("+++").next().unwrap_or(line);
        let line = without_percentage(line).trim_end();
        let characters =
            line.rsplit_once(' ').filter(|(file, _)| file.contains('.')).map_or(line, |(_, it)| it);
        if characters.is_empty() || !characters.bytes().all(|byte| b".FEsxXRu,-".contains(&byte)) {
            return;
        }
        for byte in characters.bytes() {
            match byte {
                b'F' => self.dots.failed += 1,
                b'E' => self.dots.errors += 1,
                b's' => self.dots.skipped += 1,
                b'x' => self.dots.xfailed += 1,
                b'.' | b'X' => self.dots.passed += 1,
                _ => {}
            }
        }
    }
}

/// What a word says of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    Ended(TestStatus),
    /// It failed, and runs again.
    Rerun,
    /// It is of a part of the test.
    Part,
}

/// `SKIPPED (not ready)`.
fn status(text: &str) -> Option<(Word, &str)> {
    let words = [
        ("PASSED", Word::Ended(TestStatus::Pass)),
        ("FAILED", Word::Ended(TestStatus::Fail)),
        ("ERROR", Word::Ended(TestStatus::Error)),
        ("SKIPPED", Word::Ended(TestStatus::Skip)),
        ("XFAIL", Word::Ended(TestStatus::Xfail)),
        ("XPASS", Word::Ended(TestStatus::Pass)),
        ("RERUN", Word::Rerun),
    ];
    if is_part(text) {
        return Some((Word::Part, ""));
    }
    words.iter().find_map(|(word, status)| {
        let rest = text.strip_prefix(word)?;
        let reason = rest.strip_prefix(" (").and_then(|reason| reason.strip_suffix(')').or(Some(reason)));
        (rest.is_empty() || reason.is_some()).then(|| (*status, reason.unwrap_or_default()))
    })
}

const PARTS: [&str; 4] = ["SUBPASS", "SUBFAIL", "SUBSKIP", "SUBXFAIL"];

/// `SUBFAILED[message] (i=1)`; the plugin for older versions writes `[message] (i=1) SUBFAIL`.
fn is_part(text: &str) -> bool {
    let behind = text.starts_with(['[', '(']) && PARTS.iter().any(|word| text.ends_with(word));
    behind || PARTS.iter().any(|word| text.starts_with(word))
}

/// The node and message in a line of the short summary that is of a part of a test.
pub(super) fn failed_subtest(line: &str) -> Option<&str> {
    let failed = line.starts_with("SUBFAIL") || line.starts_with(['[', '(']) && line.contains(" SUBFAIL ");
    let colons = line.find("::").filter(|_| failed)?;
    let start = line[..colons].rfind(' ')?;
    Some(&line[start + 1..])
}

/// A line that begins with a node: it, and what stands behind.
fn node_line(line: &str) -> Option<(&str, &str)> {
    let (file, _) = line.split_once("::")?;
    let plausible =
        file.contains('.') && !file.contains(' ') && !file.starts_with(['[', '(', '"', '\'', '<']);
    if !plausible {
        return None;
    }
    let shown = without_percentage(line).trim_end();
    // The status is the first of pytest's words that nothing but a reason follows: a node may hold such words too.
    for (at, _) in shown.match_indices(' ') {
        if status(&shown[at + 1..]).is_some() {
            return Some((&line[..at], &line[at + 1..]));
        }
    }
    let end = if shown.contains('[') {
        shown.rfind(']').map_or(shown.len(), |at| at + 1)
    } else {
        shown.find(' ').unwrap_or(shown.len())
    };
    Some((&line[..end], &line[end..]))
}

/// `[gw0] [ 33%] PASSED tests/test_a.py::test_x`.
fn worker_line(line: &str) -> Option<(Word, &str)> {
    let (worker, rest) = line.strip_prefix("[gw")?.split_once("] ")?;
    worker.parse::<u32>().ok()?;
    let rest = if rest.starts_with('[') { rest.split_once("] ")?.1 } else { rest };
    let (word, node) = rest.split_once(' ')?;
    let (status, _) = status(word)?;
    node.contains("::").then_some((status, node))
}

/// `tests/test_a.py ..F`, perhaps with what a test printed behind it.
fn file_and_characters(line: &str) -> bool {
    let Some((file, rest)) = line.split_once(' ') else { return false };
    file.ends_with(".py")
        && !file.contains("::")
        && rest.starts_with(['.', 'F', 'E', 's', 'x', 'X', 'R', 'u', ','])
}

/// The line without `[ 50%]`, `[ 3/20]` or a duration (`86.07us`, `1m 12s`) at its end.
fn without_percentage(line: &str) -> &str {
    let trimmed = line.trim_end();
    let Some((before, inside)) = trimmed.strip_suffix(']').and_then(|rest| rest.rsplit_once('[')) else {
        return without_duration(trimmed).unwrap_or(line);
    };
    let inside = inside.trim();
    let number =
        |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let percentage = inside.strip_suffix('%').is_some_and(number);
    let fraction = inside.split_once('/').is_some_and(|(a, b)| number(a.trim()) && number(b.trim()));
    if percentage || fraction { before } else { line }
}

fn without_duration(line: &str) -> Option<&str> {
    let number = |text: &str| text.parse::<f64>().is_ok();
    let (before, last) = line.rsplit_once(' ')?;
    // The longest first: what ends with `ms` ends with `s` too.
    let units = ["ns", "us", "ms", "s"];
    let value = units.iter().find_map(|unit| last.strip_suffix(unit))?;
    let minutes = before.rsplit_once(' ').filter(|(_, it)| it.strip_suffix('m').is_some_and(number));
    number(value).then(|| minutes.map_or(before, |(before, _)| before))
}

/// Whether a line is progress by characters with pytest's percentage.
pub(super) fn is_percentage(line: &str) -> bool {
    let before = without_percentage(line);
    let characters = before.trim_end().rsplit(' ').next().unwrap_or_default();
    before.len() < line.len()
        && !characters.is_empty()
        && characters.bytes().all(|byte| b".FEsxXRu,-".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_may_hold_anything() {
        for (line, node) in [
            ("tests/t.py::test_x PASSED          [  5%]", "tests/t.py::test_x"),
            (
                "tests/t.py::test_u[\\u65e5 \\u2713] FAILED       [ 60%]",
                "tests/t.py::test_u[\\u65e5 \\u2713]",
            ),
            ("tests/t.py::test_u[a::b[c]] PASSED [ 70%]", "tests/t.py::test_u[a::b[c]]"),
            ("tests/t.py::test_u[x FAILED] PASSED", "tests/t.py::test_u[x FAILED]"),
            ("tests/t.py::test_s SKIPPED (was FAILED once) [1/2]", "tests/t.py::test_s"),
            ("tests/t.py::test_hangs printed", "tests/t.py::test_hangs"),
        ] {
            assert_eq!(node_line(line).map(|(node, _)| node), Some(node), "{line}");
        }
        assert_eq!(node_line("some text: a::b PASSED"), None);
    }
}

//! What pytest prints: progress, sections with a block a failure, a short summary, and a last line that counts.
//!
//! Names are taken from where pytest itself writes them: lines of `-v`, and the last short summary. What a test
//! printed stands in blocks, and blocks only explain tests that are named elsewhere.

mod blocks;
mod counts;
mod outside;
mod progress;
mod report;

use super::by_line::LineReader;
use super::{Head, Stream};
use crate::{Event, Sink};
use blocks::Blocks;
use counts::{Collected, Counts};
use outside::Outside;
use progress::Progress;

/// Names of failed tests take no more bytes than this; more tests are only counted.
const MOST_NAMES: usize = 3 << 20;

pub(super) fn looks_like(head: &Head<'_>) -> bool {
    let text = head.text;
    // Reports in other formats quote what pytest prints.
    if ["<", "{", "TAP version", "1.."].iter().any(|start| text.trim_start().starts_with(start)) {
        return false;
    }
    let said = [
        "= test session starts =",
        "= short test summary info =",
        "ImportError while loading conftest '",
        "INTERNALERROR> ",
        ": error: unrecognized arguments",
        "/_pytest/",
    ];
    said.iter().any(|words| text.contains(words)) && !text.contains("Ran 0 tests")
        || text.lines().any(|line| Counts::read(line).is_some() || progress::is_percentage(line))
}

#[derive(Debug, Default)]
pub(super) struct PytestText {
    section: Section,
    progress: Progress,
    blocks: Blocks,
    named: Vec<Named>,
    names: usize,
    /// By stream: each is read apart, so that the way in which they are mixed does not matter.
    outside: [Outside; 2],
    counts: Option<Counts>,
    collected: Option<Collected>,
    /// The root directory: stacks have absolute names, tests have not.
    root: Option<String>,
    /// Files that pytest says it could not collect, in the short summary.
    uncollected: Vec<String>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Section {
    /// Header and progress.
    #[default]
    Session,
    /// Blocks of failures and errors.
    Blocks,
    /// The short summary.
    Summary,
    /// Warnings, durations, coverage.
    Other,
}

/// A failed test of the short summary.
#[derive(Debug)]
struct Named {
    node: String,
    message: String,
    error: bool,
    /// Whether only a part of the test is named as failed; pytest counts it like a test.
    subtest: bool,
}

impl LineReader for PytestText {
    fn line(&mut self, stream: Stream, line: &str, sink: &mut dyn Sink) {
        // On standard error there is nothing else.
        if self.outside[stream as usize].line(line) || stream == Stream::Err {
            return;
        }
        if let Some(title) = section_title(line) {
            self.blocks.end();
            self.begin(title);
            return;
        }
        if let Some(counts) = Counts::read(line) {
            self.blocks.end();
            self.counts = Some(counts);
            return;
        }
        self.in_section(line, sink);
    }

    fn end(&mut self, sink: &mut dyn Sink) {
        self.blocks.end();
        self.progress.finish(sink);
        self.report(sink);
    }
}

impl PytestText {
    /// A section begins; a short summary that was printed before this one was none, nor are counts: they come last.
    fn begin(&mut self, title: &str) {
        if matches!(title, "test session starts" | "FAILURES" | "ERRORS" | "short test summary info") {
            self.counts = None;
        }
        self.section = match title {
            "test session starts" => Section::Session,
            "FAILURES" | "ERRORS" | "PASSES" | "XPASSES" | "XFAILURES" | "SUBTEST PASSES" => Section::Blocks,
            "short test summary info" => {
                self.named.clear();
                self.uncollected.clear();
                self.names = 0;
                Section::Summary
            }
            _ => Section::Other,
        };
        self.blocks.begin(title);
    }

    fn in_section(&mut self, line: &str, sink: &mut dyn Sink) {
        match self.section {
            Section::Session => self.session(line, sink),
            // A block may hold anything, also what looks like another section; so blocks are seen everywhere.
            Section::Blocks | Section::Other => self.blocks.line(line),
            Section::Summary => self.summary(line),
        }
    }

    fn session(&mut self, line: &str, sink: &mut dyn Sink) {
        if let Some(rest) = line.strip_prefix("platform ") {
            let version = rest.split(", ").find_map(|part| part.strip_prefix("pytest-"));
            if let Some(version) = version {
                sink.event(Event::Version(version.trim_end_matches(',')));
            }
        } else if let Some(root) = line.strip_prefix("rootdir: ") {
            self.root = Some(root.split(", ").next().unwrap_or(root).to_owned());
        } else if let Some(collected) = Collected::read(line).filter(|_| self.collected.is_none()) {
            self.collected = Some(collected);
            sink.event(Event::Declared(collected.items));
        } else {
            self.progress.line(line, sink);
        }
    }

    /// `FAILED tests/test_a.py::test_x - message`.
    fn summary(&mut self, line: &str) {
        let subtest = progress::failed_subtest(line);
        let (error, rest) = match (line.strip_prefix("FAILED ").or(subtest), line.strip_prefix("ERROR ")) {
            (Some(rest), _) => (false, rest),
            (None, Some(rest)) => (true, rest),
            (None, None) => return,
        };
        let (node, message) = self.progress.split_node(rest);
        self.names += line.len();
        if self.names > MOST_NAMES {
            return;
        }
        if error && !node.contains("::") {
            self.uncollected.push(node.to_owned());
            return;
        }
        let (node, message) = (node.to_owned(), message.to_owned());
        self.named.push(Named { node, message, error, subtest: subtest.is_some() });
    }
}

/// `===== title =====`.
fn section_title(line: &str) -> Option<&str> {
    let inner = line.strip_prefix('=')?.trim_start_matches('=').strip_prefix(' ')?;
    let title = inner.trim_end_matches('=').strip_suffix(' ')?;
    let known = [
        "test session starts",
        "FAILURES",
        "ERRORS",
        "PASSES",
        "XPASSES",
        "XFAILURES",
        "SUBTEST PASSES",
        "short test summary info",
        "warnings summary",
        "warnings summary (final)",
        "rerun test summary info",
        "tests coverage",
    ];
    let other = ["slowest ", "coverage: ", "inconsistent ", "flaky test report", "hypothesis ", "stack of "];
    let is_section =
        known.contains(&title) || other.iter().any(|words| title.to_lowercase().starts_with(words));
    (line.ends_with('=') && is_section).then_some(title)
}

#[cfg(test)]
mod tests;

//! What Vitest prints: a line a file (or a test), a block a failure, and a summary.

mod block;
mod tree;

use super::by_line::LineReader;
use super::tally::Tally;
use super::{Head, Stream, js_failure};
use crate::{
    Event, Failure, FailureKind, Finished, HeadTail, Problem, ProblemScope, Sink, TestId, TestStatus,
};
use block::Block;
use tree::Tree;

/// Of a failure this much is kept at each end.
const ROOM: usize = 8 << 10;

pub(super) fn looks_like(head: &Head<'_>) -> bool {
    head.text.lines().any(|line| {
        let line = line.trim_start();
        line.starts_with("RUN  v")
            || line.starts_with("DEV  v")
            || rule(line).is_some_and(|title| section(title).is_some())
    }) || head.text.contains(" Test Files  ") && head.text.contains("      Tests  ")
}

/// Reads it: the tree and the summary come on one stream, the blocks on the other, and it does not matter which comes
/// first.
#[derive(Debug, Default)]
pub(super) struct VitestText {
    pages: [Page; 2],
    seen: Seen,
}

/// What was told on both streams.
#[derive(Debug, Default)]
struct Seen {
    named: Tally,
    /// Failed tests have blocks; without any, the tree must do.
    blocks: bool,
    unhandled: u64,
}

#[derive(Debug, Default)]
struct Page {
    section: Section,
    titles: Vec<String>,
    block: Option<HeadTail>,
    tree: Tree,
    errors: Option<u64>,
    /// The tests by their ends, and all of them.
    counts: Option<(Tally, u64)>,
    version: String,
    files: bool,
    over: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Section {
    #[default]
    Progress,
    Suites,
    Tests,
    /// Before the first of them.
    Errors,
    /// One error that nobody handled.
    Unhandled,
}

impl LineReader for VitestText {
    fn line(&mut self, stream: Stream, line: &str, sink: &mut dyn Sink) {
        self.pages[stream as usize].line(line, &mut self.seen, sink);
    }

    fn end(&mut self, sink: &mut dyn Sink) {
        let Self { pages, seen } = self;
        for page in &mut *pages {
            page.close(seen, sink);
        }
        if !seen.blocks {
            for (suite, name) in pages.iter().flat_map(|page| page.tree.failed()) {
                seen.named.failed += 1;
                sink.event(Event::Finished(Finished::new(TestId { suite, name }, TestStatus::Fail, 0)));
            }
        }
        self.conclude(sink);
    }
}

impl VitestText {
    fn conclude(&self, sink: &mut dyn Sink) {
        let Self { pages, seen } = self;
        let errors = pages.iter().find_map(|page| page.errors).unwrap_or(0);
        if errors > 0 && seen.unhandled == 0 {
            sink.event(Event::Problem(Problem::new(
                ProblemScope::Run,
                "",
                Some(FailureKind::Error),
                "Vitest counts an error that no test is to blame for",
            )));
        }
        let counts = pages.iter().find_map(|page| page.counts);
        if let Some((counts, _)) = counts {
            counts.count_unnamed(seen.named, sink);
        }
        if pages.iter().any(|page| page.over) {
            sink.event(Event::Ended { counted: counts.map(|(_, total)| total) });
        }
    }
}

impl Page {
    fn line(&mut self, line: &str, seen: &mut Seen, sink: &mut dyn Sink) {
        if let Some(title) = rule(line) {
            self.rule(title, seen, sink);
        } else if let Some(test) = line.strip_prefix(" FAIL  ").filter(|_| self.section != Section::Progress)
        {
            if self.block.as_ref().is_some_and(|block| !block.is_empty()) {
                self.close(seen, sink);
            }
            self.titles.push(without_project(test).to_owned());
            self.block = Some(HeadTail::new(ROOM));
        } else if self.summary(line) {
            self.close(seen, sink);
            self.section = Section::Progress;
        } else if let Some(block) = &mut self.block {
            block.push_line(line);
        } else if self.section == Section::Progress {
            self.progress(line, seen, sink);
        }
    }

    /// `⎯⎯⎯ Failed Tests 6 ⎯⎯⎯` begins a section, `⎯⎯⎯[1/7]⎯` and a rule without words end a block.
    fn rule(&mut self, title: &str, seen: &mut Seen, sink: &mut dyn Sink) {
        // Below a plain rule, a block goes on with what its error holds.
        if title.is_empty() && self.section != Section::Unhandled {
            return;
        }
        self.close(seen, sink);
        if let Some(section) = section(title) {
            self.section = section;
            if section == Section::Unhandled {
                self.block = Some(HeadTail::new(ROOM));
            }
        } else if title.is_empty() {
            self.section = Section::Errors;
        }
    }

    fn progress(&mut self, line: &str, seen: &mut Seen, sink: &mut dyn Sink) {
        if let Some(version) = line.trim_start().strip_prefix("RUN  v") {
            version.split(' ').next().unwrap_or(version).clone_into(&mut self.version);
            sink.event(Event::Version(&self.version));
        } else if line.starts_with("No test files found, exiting with code ") {
            self.over = true;
        } else if let Some(test) = self.tree.line(line) {
            seen.named.add(test.status);
            let id = TestId { suite: &test.suite, name: &test.name };
            sink.event(Event::Finished(Finished::new(id, test.status, 0)));
        }
    }

    /// Takes a line of the summary; false if it is none.
    fn summary(&mut self, line: &str) -> bool {
        let Some((label, rest)) = tree::summary_line(line) else { return false };
        match label {
            "Test Files" => self.files = true,
            "Tests" => {
                if let Some((mut counts, total)) = tree::counts(rest) {
                    // Vitest 0 does not list the tests of a group whose set-up failed.
                    if self.version.starts_with("0.") {
                        counts.skipped += total.saturating_sub(counts.sum());
                    }
                    self.counts = Some((counts, total));
                }
            }
            "Errors" => self.errors = rest.split(' ').next().and_then(|count| count.parse().ok()),
            "Duration" => self.over = self.files,
            _ => return self.files,
        }
        true
    }

    /// The block at hand is over.
    fn close(&mut self, seen: &mut Seen, sink: &mut dyn Sink) {
        let (Some(block), titles) = (self.block.take(), std::mem::take(&mut self.titles)) else { return };
        let block = Block::read(&block.into_text());
        if self.section == Section::Unhandled {
            seen.unhandled += 1;
            sink.event(Event::Problem(block.problem(ProblemScope::Run, "", None)));
        }
        for title in titles {
            if self.section == Section::Suites {
                sink.event(Event::Problem(suite_problem(&title, &block)));
            } else {
                seen.blocks = true;
                seen.named.failed += 1;
                tell_failed(&title, &block, sink);
            }
        }
    }
}

fn tell_failed(title: &str, block: &Block, sink: &mut dyn Sink) {
    let (suite, name) = title.split_once(" > ").unwrap_or(("", title));
    let name = name.replace(" > ", " ");
    let failure = Failure {
        kind: Some(js_failure::kind_of_text(&block.message, &block.stack)),
        message: &block.message,
        stack: &block.stack,
        at: block.place(),
        expected: block.expected.as_deref(),
        actual: block.actual.as_deref(),
    };
    let test = TestId { suite, name: &name };
    sink.event(Event::Finished(Finished::new(test, TestStatus::Fail, 0).failure(failure)));
}

/// `test/a.test.ts [ test/a.test.ts ]` could not be loaded, `test/a.test.ts > db` could not be set up.
fn suite_problem(title: &str, block: &Block) -> Problem {
    match title.split_once(" > ") {
        Some((file, group)) => {
            let problem = block.problem(ProblemScope::Suite, &group.replace(" > ", " "), Some(file));
            Problem { kind: Some(FailureKind::Setup), ..problem }
        }
        None => {
            let file = title.split_once(" [ ").map_or(title, |(file, _)| file);
            block.problem(ProblemScope::Suite, file, Some(file))
        }
    }
}

/// Several projects, and browsers, are named before the file: `|unit| test/a.test.ts`.
fn without_project(test: &str) -> &str {
    let test = test.trim();
    match test.strip_prefix('|').and_then(|rest| rest.split_once("| ")) {
        Some((_, test)) => test.trim_start(),
        None => test,
    }
}

/// The words in a rule; an empty text for one without.
fn rule(line: &str) -> Option<&str> {
    let line = line.trim();
    let is_rule = line.starts_with('⎯') && line.ends_with('⎯');
    let words = line.trim_matches('⎯').trim();
    is_rule.then_some(words)
}

fn section(title: &str) -> Option<Section> {
    match title {
        _ if title.starts_with("Failed Suites ") => Some(Section::Suites),
        _ if title.starts_with("Failed Tests ") => Some(Section::Tests),
        "Unhandled Errors" => Some(Section::Errors),
        _ if title.starts_with("Unhandled ") || title.starts_with("Uncaught ") => Some(Section::Unhandled),
        _ => None,
    }
}

#[cfg(test)]
mod tests;

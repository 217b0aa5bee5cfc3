//! What Vitest prints: a line a file (or a test), a block a failure, and a summary.

mod block;
mod tree;

use super::by_line::LineReader;
use super::{Head, Stream, jest_failure};
use crate::{
    Event, Failure, FailureKind, Finished, HeadTail, Problem, ProblemScope, Sink, TestId, TestStatus,
};
use block::Block;
use tree::{Counts, Tree};

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

/// Reads it.
#[derive(Debug, Default)]
pub(super) struct VitestText {
    section: Section,
    titles: Vec<String>,
    block: Option<HeadTail>,
    tree: Tree,
    named: Counts,
    /// Failed tests have blocks; without any, the tree must do.
    blocks: bool,
    unhandled: u64,
    errors: Option<u64>,
    counts: Option<Counts>,
    total: u64,
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
    fn line(&mut self, _: Stream, line: &str, sink: &mut dyn Sink) {
        if let Some(title) = rule(line) {
            self.rule(title, sink);
        } else if let Some(test) = line.strip_prefix(" FAIL  ").filter(|_| self.section != Section::Progress)
        {
            if self.block.as_ref().is_some_and(|block| !block.is_empty()) {
                self.close(sink);
            }
            self.titles.push(without_project(test).to_owned());
            self.block = Some(HeadTail::new(ROOM));
        } else if self.summary(line, sink) {
            self.close(sink);
        } else if let Some(block) = &mut self.block {
            block.push(line);
            block.push("\n");
        } else if self.section == Section::Progress {
            self.progress(line, sink);
        }
    }

    fn end(&mut self, sink: &mut dyn Sink) {
        self.close(sink);
        if !self.blocks {
            for (suite, name) in self.tree.failed() {
                self.named.failed += 1;
                sink.event(Event::Finished(Finished::new(TestId { suite, name }, TestStatus::Fail, 0)));
            }
        }
        self.conclude(sink);
    }
}

impl VitestText {
    /// `⎯⎯⎯ Failed Tests 6 ⎯⎯⎯` begins a section, `⎯⎯⎯[1/7]⎯` and a rule without words end a block.
    fn rule(&mut self, title: &str, sink: &mut dyn Sink) {
        // Below a plain rule, a block goes on with what its error holds.
        if title.is_empty() && self.section != Section::Unhandled {
            return;
        }
        self.close(sink);
        if let Some(section) = section(title) {
            self.section = section;
            if section == Section::Unhandled {
                self.block = Some(HeadTail::new(ROOM));
            }
        } else if title.is_empty() {
            self.section = Section::Errors;
        }
    }

    fn progress(&mut self, line: &str, sink: &mut dyn Sink) {
        if let Some(version) = line.trim_start().strip_prefix("RUN  v") {
            version.split(' ').next().unwrap_or(version).clone_into(&mut self.version);
            sink.event(Event::Version(&self.version));
        } else if line.starts_with("No test files found, exiting with code ") {
            self.over = true;
        } else if let Some(test) = self.tree.line(line) {
            self.named.add(test.status);
            let id = TestId { suite: &test.suite, name: &test.name };
            sink.event(Event::Finished(Finished::new(id, test.status, 0)));
        }
    }

    /// The lines of the summary.
    fn summary(&mut self, line: &str, _: &mut dyn Sink) -> bool {
        let Some((label, rest)) = tree::summary_line(line) else { return false };
        match label {
            "Test Files" => self.files = true,
            "Tests" => {
                if let Some((mut counts, total)) = Counts::read(rest) {
                    // Vitest 0 does not list the tests of a group whose set-up failed.
                    if self.version.starts_with("0.") {
                        counts.skipped += total.saturating_sub(counts.total());
                    }
                    (self.counts, self.total) = (Some(counts), total);
                }
            }
            "Errors" => self.errors = rest.split(' ').next().and_then(|count| count.parse().ok()),
            "Duration" => self.over = self.files,
            _ => return self.files,
        }
        self.section = Section::Progress;
        true
    }

    /// The block at hand is over.
    fn close(&mut self, sink: &mut dyn Sink) {
        let (Some(block), titles) = (self.block.take(), std::mem::take(&mut self.titles)) else { return };
        let block = Block::read(&block.into_text());
        if self.section == Section::Unhandled {
            self.unhandled += 1;
            sink.event(Event::Problem(block.problem(ProblemScope::Run, "", None)));
        }
        for title in titles {
            if self.section == Section::Suites {
                sink.event(Event::Problem(suite_problem(&title, &block)));
            } else {
                self.failed(&title, &block, sink);
            }
        }
    }

    fn failed(&mut self, title: &str, block: &Block, sink: &mut dyn Sink) {
        let (suite, name) = title.split_once(" > ").unwrap_or(("", title));
        let name = name.replace(" > ", " ");
        self.blocks = true;
        self.named.failed += 1;
        let failure = Failure {
            kind: Some(jest_failure::kind(&block.message, &block.stack)),
            message: &block.message,
            stack: &block.stack,
            at: block.place(),
            expected: block.expected.as_deref(),
            actual: block.actual.as_deref(),
        };
        let test = TestId { suite, name: &name };
        sink.event(Event::Finished(Finished::new(test, TestStatus::Fail, 0).failure(failure)));
    }

    fn conclude(&mut self, sink: &mut dyn Sink) {
        for _ in self.unhandled..self.errors.unwrap_or(0).min(1) {
            sink.event(Event::Problem(Problem {
                scope: ProblemScope::Run,
                name: String::new(),
                kind: Some(FailureKind::Error),
                message: "Vitest counts an error that no test is to blame for".to_owned(),
                file: None,
                line: None,
            }));
        }
        let counts = self.counts.unwrap_or_default();
        if self.counts.is_some() {
            for (status, all, named) in [
                (TestStatus::Pass, counts.passed, self.named.passed),
                (TestStatus::Fail, counts.failed, self.named.failed),
                (TestStatus::Skip, counts.skipped, self.named.skipped),
            ] {
                sink.event(Event::Counted { status, count: all.saturating_sub(named) });
            }
        }
        if self.over {
            sink.event(Event::Ended { counted: self.counts.map(|_| self.total) });
        }
    }
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

//! What Jest prints: a line a file, with `--verbose` a tree of tests below it, a block a failure, and a summary.

mod tree;

use super::by_line::LineReader;
use super::jest_block::Block;
use super::jest_json::file_problem;
use super::tally::Tally;
use super::{Head, Stream};
use crate::{
    Event, Failure, FailureKind, Finished, HeadTail, Problem, ProblemScope, Sink, TestId, TestStatus,
};
use tree::Tree;

/// Of a failure this much is kept at each end.
const ROOM: usize = 8 << 10;
const SOURCES: [&str; 10] = [".js", ".jsx", ".ts", ".tsx", ".mjs", ".cjs", ".mts", ".cts", ".vue", ".svelte"];

pub(super) fn looks_like(head: &Head<'_>) -> bool {
    head.text.lines().any(|line| {
        line.starts_with("Test Suites: ") && line.ends_with(" total")
            || file_line(line).is_some()
            || line.starts_with("No tests found, exiting with code ")
            || line.starts_with("● Validation Error")
    })
}

#[derive(Debug, Default)]
pub(super) struct JestText {
    file: String,
    tree: Option<Tree>,
    block: Option<(String, HeadTail)>,
    /// With many files, all failures are printed once more before the summary.
    repeating: bool,
    /// Between the summary of a run and the first file of the next.
    over: bool,
    named: Tally,
    counted: u64,
}

impl LineReader for JestText {
    fn line(&mut self, _: Stream, line: &str, sink: &mut dyn Sink) {
        if let Some(file) = file_line(line) {
            self.close(sink);
            self.over = false;
            file.clone_into(&mut self.file);
            self.tree = (!self.repeating).then(Tree::default);
        } else if let Some(title) = line.strip_prefix("  ● ") {
            self.close(sink);
            self.tree = None;
            self.block = Some((title.to_owned(), HeadTail::new(ROOM)));
        } else if line.is_empty() || line.starts_with("  ") {
            self.indented(line, sink);
        } else {
            self.close(sink);
            self.unindented(line, sink);
        }
    }

    fn end(&mut self, sink: &mut dyn Sink) {
        self.close(sink);
    }
}

impl JestText {
    fn indented(&mut self, line: &str, sink: &mut dyn Sink) {
        if let Some((_, text)) = &mut self.block {
            text.push_line(line);
        } else if let Some(tree) = &mut self.tree
            && let Some((name, status)) = tree.line(line)
        {
            self.named.add(status);
            let test = TestId { suite: &self.file, name: &name };
            sink.event(Event::Finished(Finished::new(test, status, 0)));
        }
    }

    fn unindented(&mut self, line: &str, sink: &mut dyn Sink) {
        self.tree = None;
        if line == "Summary of all failing tests" {
            self.repeating = true;
        } else if let Some(counts) = line.strip_prefix("Tests:").and_then(tree::counts) {
            self.conclude(counts, sink);
        } else if line.starts_with("No tests found, exiting with code ") {
            sink.event(Event::Ended { counted: Some(self.counted) });
        } else if line.starts_with("Jest: ") && line.contains("threshold") {
            sink.event(Event::Problem(run_problem(line, FailureKind::Config)));
        } else if let Some(title) = line.strip_prefix("● ").filter(|_| !self.over) {
            self.block = Some((format!("\0{title}"), HeadTail::new(ROOM)));
        }
    }

    /// The block at hand is over.
    fn close(&mut self, sink: &mut dyn Sink) {
        let Some((title, text)) = self.block.take() else { return };
        if self.repeating || self.over {
            return;
        }
        let text = text.into_text();
        if let Some(title) = title.strip_prefix('\0') {
            let message = format!("{title}\n{}", Block::read(&text, "").message);
            sink.event(Event::Problem(run_problem(message.trim(), FailureKind::Config)));
        } else if title.trim() == "Test suite failed to run" {
            sink.event(Event::Problem(file_problem(&self.file, &text)));
        } else if title.trim() != "Console" {
            self.failed(&title, &text, sink);
        }
    }

    fn failed(&mut self, title: &str, text: &str, sink: &mut dyn Sink) {
        let block = Block::read(text, &self.file);
        let name = title.trim().replace(" › ", " ");
        self.named.add(TestStatus::Fail);
        let failure = Failure {
            kind: Some(block.kind()),
            message: &block.message,
            stack: &block.stack,
            at: block.place(),
            ..Failure::default()
        };
        let test = TestId { suite: &self.file, name: &name };
        sink.event(Event::Finished(Finished::new(test, TestStatus::Fail, 0).failure(failure)));
    }

    /// What the summary counts and nothing named.
    fn conclude(&mut self, counts: Tally, sink: &mut dyn Sink) {
        counts.count_unnamed(std::mem::take(&mut self.named), sink);
        self.counted = self.counted.saturating_add(counts.sum());
        (self.repeating, self.over) = (false, true);
        sink.event(Event::Ended { counted: Some(self.counted) });
    }
}

/// `FAIL  project  test/cart.test.js (5.2 s)`: the file.
fn file_line(line: &str) -> Option<&str> {
    let line = line.strip_prefix(' ').unwrap_or(line);
    let rest = line.strip_prefix("PASS ").or_else(|| line.strip_prefix("FAIL "))?.trim();
    // How long it took, and how much memory.
    let file = match rest.rsplit_once(" (") {
        Some((file, inside)) if inside.ends_with(')') => file,
        _ => rest,
    };
    let file = file.rsplit("  ").next().unwrap_or(file).trim();
    SOURCES.iter().any(|ending| file.ends_with(ending)).then_some(file)
}

fn run_problem(message: &str, kind: FailureKind) -> Problem {
    Problem::new(ProblemScope::Run, "", Some(kind), message)
}

#[cfg(test)]
mod tests;

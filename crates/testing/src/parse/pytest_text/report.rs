//! At the end: names, explanations and counts put together.

use std::collections::HashSet;

use super::PytestText;
use super::blocks::Block;
use super::counts::Counts;
use super::outside::Outside;
use super::progress::Tally;
use crate::parse::pytest_phases::test_id;
use crate::parse::python_crash::PythonCrash;
use crate::parse::python_failure;
use crate::{Event, Failure, FailureKind, Finished, Place, Problem, ProblemScope, Sink, TestStatus};

/// More files without names say no more.
const MOST_UNKNOWN: u64 = 100;

/// How many failed tests were told by name.
#[derive(Debug, Default)]
struct Told {
    nodes: HashSet<String>,
    failed: u64,
    /// Tests whose set-up failed: they are in the count of errors only.
    setup: u64,
    /// Tests whose clean-up failed though they had passed: they are counted twice.
    teardown: u64,
    /// Tests that failed, and whose clean-up failed too: they are counted twice.
    twice: u64,
    /// Parts of tests that failed: they are counted like tests.
    subtests: u64,
    /// Tests that are said to have passed, though a part of them failed.
    only_in_part: u64,
}

impl PytestText {
    pub(super) fn report(&mut self, sink: &mut dyn Sink) {
        let mut told = Told::default();
        self.tell_crashed_workers(&mut told, sink);
        let mut all = std::mem::take(&mut self.named);
        let whole: HashSet<String> = all.iter().filter(|it| !it.subtest).map(|it| it.node.clone()).collect();
        all.sort_by_key(|named| named.error);
        for named in all {
            told.subtests += u64::from(named.subtest);
            if told.nodes.contains(&named.node) {
                told.twice += u64::from(named.error);
            } else {
                told.only_in_part += u64::from(named.subtest && !whole.contains(&named.node));
                self.tell_failed(&named.node, named.error, &named.message, &mut told, sink);
            }
        }
        // Lines of `-v` without a short summary: it was switched off, or the run was cut.
        for (node, status) in std::mem::take(&mut self.progress.failed) {
            if !told.nodes.contains(&node) {
                self.tell_failed(&node, status == TestStatus::Error, "", &mut told, sink);
            }
        }
        let problems = self.collection_problems();
        let uncollected = problems.len() as u64;
        for problem in problems.into_iter().chain(self.outside.iter_mut().flat_map(Outside::problems)) {
            sink.event(Event::Problem(problem));
        }
        // Of a death that pytest outlived (a worker's, a stack dump before a timeout) it tells itself.
        let crash = self.outside.iter_mut().find_map(|outside| outside.crash.take());
        if let Some(crash) = crash.filter(|_| self.counts.is_none()) {
            self.tell_crash(&crash, sink);
        }
        match self.counts {
            Some(counts) => self.conclude(&counts, &told, uncollected, sink),
            None => self.conclude_cut(&told, sink),
        }
    }

    fn tell_crashed_workers(&mut self, told: &mut Told, sink: &mut dyn Sink) {
        let crashed = std::mem::take(&mut self.blocks.crashed);
        // The stack of a worker goes to the common error output: of several it is not known whose it is.
        let stack = self.outside.iter().find_map(|outside| outside.crash.as_ref());
        let stack = stack.filter(|_| crashed.len() == 1);
        let at = stack.map(PythonCrash::place).unwrap_or_default();
        for (node, message) in &crashed {
            let failure = Failure { kind: Some(FailureKind::Crash), message, at, ..Failure::default() };
            sink.event(Event::Finished(Finished::new(test_id(node), TestStatus::Crash, 0).failure(failure)));
            told.failed += 1;
            told.nodes.insert(node.clone());
        }
    }

    fn tell_failed(&mut self, node: &str, error: bool, message: &str, told: &mut Told, sink: &mut dyn Sink) {
        let found = self.blocks.take(node, error, message);
        let (phase, block) =
            found.unwrap_or_else(|| (if error { "setup" } else { "call" }, Block::default()));
        // A block whose test was named as failed is of its call; of errors, its title says which.
        let (status, kind) = match phase {
            "setup" => (TestStatus::Error, Some(FailureKind::Setup)),
            "teardown" => (TestStatus::Error, Some(FailureKind::Teardown)),
            _ => (TestStatus::Fail, None),
        };
        match phase {
            "setup" => told.setup += 1,
            "teardown" => told.teardown += 1,
            _ => told.failed += 1,
        }
        let test = test_id(node);
        if !block.output.trim().is_empty() {
            sink.event(Event::Output { test, text: &block.output });
        }
        let message = if block.message.is_empty() { message } else { &block.message };
        let file = block.file.as_deref().or(Some(test.suite));
        let failure = Failure {
            kind: kind.or_else(|| Some(python_failure::kind(message))),
            message,
            stack: &block.text,
            at: Place { file, line: block.line },
            ..Failure::default()
        };
        let attempt = self.progress.attempt(node);
        sink.event(Event::Finished(Finished { attempt, ..Finished::new(test, status, 0).failure(failure) }));
        told.nodes.insert(node.to_owned());
    }

    /// Files that could not be collected: those with a block, and those that only the short summary names.
    fn collection_problems(&mut self) -> Vec<Problem> {
        let explained = std::mem::take(&mut self.blocks.uncollected);
        let mut problems: Vec<Problem> =
            explained.iter().map(|(file, text)| python_failure::collection_problem(file, text)).collect();
        for file in std::mem::take(&mut self.uncollected) {
            let (file, message) = file.split_once(" - ").unwrap_or((&file, "it could not be collected"));
            if !problems.iter().any(|problem| problem.name == file) {
                problems.push(
                    Problem::new(ProblemScope::Suite, file, Some(python_failure::kind(message)), message)
                        .placed(Some(file.to_owned()), None),
                );
            }
        }
        let unknown =
            self.collected.map_or(0, |collected| collected.errors).saturating_sub(problems.len() as u64);
        for number in 1..=unknown.min(self.counts.map_or(0, |counts| counts.errors)).min(MOST_UNKNOWN) {
            problems.push(Problem::new(
                ProblemScope::Suite,
                "",
                None,
                format!(
                    "a file could not be collected, and its name was not printed ({number} of {unknown})"
                ),
            ));
        }
        problems
    }

    /// The death of the process is of the test that ran; without names, of the test in the stack.
    fn tell_crash(&self, crash: &PythonCrash, sink: &mut dyn Sink) {
        let guessed = crash.test.as_ref().map(|(file, function)| {
            let root = self.root.as_ref().map(|root| format!("{root}/"));
            let file = root.and_then(|root| file.strip_prefix(&root)).unwrap_or(file);
            format!("{file}::{function}")
        });
        let Some(node) = self.progress.current().map(str::to_owned).or(guessed) else {
            let at = crash.place();
            sink.event(Event::Problem(
                Problem::new(ProblemScope::Run, "", Some(crash.kind), crash.message.clone()).at(at),
            ));
            return;
        };
        let stack = crash.stack();
        let failure = Failure {
            kind: Some(crash.kind),
            message: &crash.message,
            stack: &stack,
            at: crash.place(),
            ..Failure::default()
        };
        sink.event(Event::Finished(Finished::new(test_id(&node), TestStatus::Crash, 0).failure(failure)));
    }

    /// What the last line counts and nothing named.
    fn conclude(&self, counts: &Counts, told: &Told, uncollected: u64, sink: &mut dyn Sink) {
        let errors = counts.errors.saturating_sub(uncollected).saturating_sub(told.twice);
        let teardowns = self.teardowns(counts, errors, told);
        let passed = (counts.passed + counts.xpassed).saturating_sub(teardowns + told.only_in_part);
        let failed = (counts.failed + told.only_in_part).saturating_sub(told.subtests);
        let named = self.progress.named_before(teardowns, told.only_in_part);
        let skipped_files = self.collected.map_or(0, |collected| collected.skipped);
        for (status, all, named) in [
            (TestStatus::Pass, passed, named.passed),
            (TestStatus::Fail, failed, told.failed),
            (TestStatus::Error, errors, told.setup + told.teardown),
            (TestStatus::Skip, counts.skipped.saturating_sub(skipped_files), named.skipped),
            (TestStatus::Xfail, counts.xfailed, named.xfailed),
        ] {
            sink.event(Event::Counted { status, count: all.saturating_sub(named) });
            if named > all {
                sink.event(Event::Complaint("pytest's last line counts less than was printed before"));
            }
        }
        sink.event(Event::Ended { counted: None });
    }

    /// How many tests passed before their clean-up failed. Titles of blocks say so; without blocks, what was counted
    /// twice.
    fn teardowns(&self, counts: &Counts, errors: u64, told: &Told) -> u64 {
        let titled = told.teardown.max(self.blocks.teardowns.saturating_sub(told.twice).min(errors));
        let Some(collected) = self.collected.filter(|_| titled == 0) else { return titled };
        let Counts { failed, passed, skipped, xfailed, xpassed, .. } = *counts;
        let failed = failed.saturating_sub(told.subtests);
        let ends = failed + passed + skipped.saturating_sub(collected.skipped) + xfailed + xpassed + errors;
        ends.saturating_sub(collected.items).min(errors)
    }

    /// Without a last line: `-qq` does not print one, and a run that was cut has none.
    fn conclude_cut(&self, told: &Told, sink: &mut dyn Sink) {
        let Tally { passed, failed, errors, skipped, xfailed } = self.progress.dots;
        let named_errors = told.setup + told.teardown + told.twice;
        for (status, count) in [
            (TestStatus::Pass, passed.saturating_sub(told.teardown + told.only_in_part)),
            (TestStatus::Fail, (failed + told.only_in_part).saturating_sub(told.failed)),
            (TestStatus::Error, errors.saturating_sub(named_errors)),
            (TestStatus::Skip, skipped),
            (TestStatus::Xfail, xfailed),
        ] {
            sink.event(Event::Counted { status, count });
        }
        if self.progress.complete {
            sink.event(Event::Ended { counted: None });
        }
    }
}

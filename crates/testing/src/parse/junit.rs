//! `JUnit`'s XML, in the dialects of those who write it.
//!
//! Read while it comes: a test is told when its element ends, and its buffers serve the next. A file that was cut
//! keeps the tests that are whole and has no end.

mod case;
mod dialect;

use std::collections::HashSet;

use super::Head;
use super::xml::{Attributes, XmlReader};
use crate::{
    Attempt, Event, Failure, FailureKind, Finished, Problem, ProblemScope, Sink, TestId, TestStatus,
};
use case::{Case, Outcome, Told};
use dialect::{Dialect, Identity};

/// Suites that are nested deeper than this are flat.
const DEEPEST: usize = 64;
/// Names of one suite that are remembered, to know groups and steps by.
const REMEMBERED: usize = 10_000;
/// Tests that wait for their steps.
const WAITING: usize = 64;
/// A name longer than this is not remembered.
const LONGEST_NAME: usize = 256;

/// Whether this is such a report. An empty file with the name of one was never finished; what was printed may have
/// lines before it.
pub(super) fn looks_like(head: &Head<'_>) -> bool {
    let text = head.text.trim_start_matches('\u{feff}').trim_start();
    let Some(tag) = text.find('<') else { return text.is_empty() && head.file_name.ends_with(".xml") };
    let (before, document) = text.split_at(tag);
    let begins = ["<?xml", "<!--", "<!DOCTYPE", "<testsuite"].iter().any(|start| document.starts_with(start));
    (before.is_empty() || before.ends_with('\n')) && begins && document.contains("<testsuite")
}

/// Reads one document.
#[derive(Debug, Default)]
pub(super) struct Junit {
    dialect: Dialect,
    signed: Signed,
    root_is_bare: bool,
    depth: u32,
    suites: Vec<Suite>,
    flat: u32,
    case: Case,
    in_case: bool,
    part: Part,
    identity: Identity,
    /// The test that was told last, and whether it is remembered.
    last: Option<(Identity, bool)>,
    /// A good test of pytest, which is an attempt if the same comes again.
    held: Option<(Identity, u64)>,
    names: HashSet<String>,
    waiting: Vec<(Identity, Case)>,
}

/// Who said which dialect it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Signed {
    #[default]
    Nobody,
    /// The current suite or its tests.
    Suite,
    Root,
}

#[derive(Debug, Default)]
struct Suite {
    name: String,
    file: Option<String>,
    says_failed: bool,
    failed: bool,
}

/// Where text belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Part {
    #[default]
    Nowhere,
    Body,
    Output,
    Rerun,
}

impl XmlReader for Junit {
    fn open(&mut self, name: &str, attributes: Attributes<'_>, sink: &mut dyn Sink) {
        self.depth += 1;
        match name {
            "testsuites" => {
                self.root_is_bare = attributes.is_empty();
                self.learn(Dialect::of_suite(name, attributes));
                if self.signed == Signed::Suite {
                    self.signed = Signed::Root;
                }
            }
            "testsuite" => self.open_suite(attributes, sink),
            "testcase" => {
                self.case.begin(attributes);
                self.in_case = true;
                self.part = Part::Nowhere;
                if self.signed == Signed::Nobody {
                    self.learn(Dialect::of_case(&self.case, self.root_is_bare).or(Some(Dialect::Java)));
                }
            }
            "property" if self.signed == Signed::Nobody => {
                self.learn(attributes.get("name").and_then(|name| Dialect::of_property(&name)));
            }
            "flakyFailure" | "flakyError" | "rerunFailure" | "rerunError" if self.in_case => {
                self.case.rerun(attributes);
                self.part = Part::Rerun;
            }
            "system-out" | "system-err" if self.in_case && self.part == Part::Nowhere => {
                self.part = Part::Output
            }
            _ => {
                if let Some(outcome) = outcome(name) {
                    if !self.in_case {
                        self.case.clear();
                    }
                    self.case.end_with(outcome, attributes);
                    self.part = Part::Body;
                }
            }
        }
    }

    fn close(&mut self, name: &str, sink: &mut dyn Sink) {
        self.depth = self.depth.saturating_sub(1);
        match name {
            "testcase" if self.in_case => {
                self.in_case = false;
                self.part = Part::Nowhere;
                self.end_case(sink);
            }
            "testsuite" => self.close_suite(sink),
            "system-out" | "system-err" if self.part == Part::Output => self.part = Part::Nowhere,
            "flakyFailure" | "flakyError" | "rerunFailure" | "rerunError" => self.part = Part::Nowhere,
            _ if outcome(name).is_some() => {
                self.part = Part::Nowhere;
                if !self.in_case && self.case.status(self.dialect).is_failure() {
                    self.suite_problem(sink);
                }
            }
            _ => {}
        }
        if self.depth == 0 {
            self.tell_held(sink);
            self.forget(sink);
            sink.event(Event::Ended { counted: None });
        }
    }

    fn text(&mut self, text: &str) {
        match self.part {
            Part::Nowhere => {}
            Part::Body => self.case.body.push(text),
            Part::Output => self.case.output.push(text),
            Part::Rerun => self.case.rerun_body.push(text),
        }
    }

    fn end(&mut self, sink: &mut dyn Sink) {
        self.tell_held(sink);
    }
}

impl Junit {
    fn learn(&mut self, dialect: Option<Dialect>) {
        if let Some(dialect) = dialect.filter(|_| self.signed == Signed::Nobody) {
            self.dialect = dialect;
            self.signed = Signed::Suite;
        }
    }

    fn open_suite(&mut self, attributes: Attributes<'_>, sink: &mut dyn Sink) {
        // A file may hold the reports of several runners.
        if self.suites.is_empty() && self.signed == Signed::Suite {
            self.signed = Signed::Nobody;
        }
        self.learn(Dialect::of_suite("testsuite", attributes));
        if self.suites.len() >= DEEPEST {
            self.flat += 1;
            return;
        }
        let mut suite = Suite::default();
        for (name, value) in attributes.all() {
            match name {
                "name" => {
                    suite.name.push_str(&value[..value.floor_char_boundary(16 * LONGEST_NAME)]);
                }
                "file" | "filepath" => suite.file = Some(value.into_owned()),
                "failures" | "errors" => {
                    suite.says_failed |= value.parse::<u64>().is_ok_and(|count| count > 0)
                }
                _ => {}
            }
        }
        if self.suites.is_empty() {
            self.end_of_top(sink);
        }
        self.suites.push(suite);
    }

    fn close_suite(&mut self, sink: &mut dyn Sink) {
        if self.flat > 0 {
            self.flat -= 1;
            return;
        }
        let Some(suite) = self.suites.pop() else { return };
        if self.suites.is_empty() {
            self.end_of_top(sink);
        }
        if let Some(parent) = self.suites.last_mut() {
            parent.failed |= suite.failed;
        }
        if suite.says_failed && !suite.failed {
            sink.event(Event::Complaint(&format!("suite `{}` counts failures but names none", suite.name)));
        }
    }

    /// A file's tests are over: what waited for more of it is told.
    fn end_of_top(&mut self, sink: &mut dyn Sink) {
        self.names.clear();
        for (identity, mut case) in std::mem::take(&mut self.waiting) {
            let told = case.told(self.dialect);
            self.tell(&identity, case.ms, TestStatus::Fail, Some(&told.failure()), Attempt::Only, sink);
        }
    }

    fn end_case(&mut self, sink: &mut dyn Sink) {
        let status = self.case.status(self.dialect);
        if matches!(self.case.outcome, Some(Outcome::Failure | Outcome::Error)) || status.is_failure() {
            for suite in &mut self.suites {
                suite.failed = true;
            }
        }
        // GoogleTest lists what is disabled, and does not count it.
        if self.dialect == Dialect::Gtest && self.case.outcome.is_none() && status == TestStatus::Skip {
            return;
        }
        let mut identity = std::mem::take(&mut self.identity);
        self.dialect.identify(&self.case, &self.suites, &mut identity);
        if self.dialect == Dialect::Pytest && self.case.file.is_empty() {
            self.case.file.clone_from(&identity.suite);
        }
        if status.is_failure() && self.is_of_suite(&identity) {
            self.suite_problem(sink);
        } else if !self.is_step(&identity, status) {
            self.end_test(&identity, status, sink);
        }
        self.identity = identity;
    }

    /// Whether what failed is no test but a file, a class or a group.
    fn is_of_suite(&self, identity: &Identity) -> bool {
        let case = &self.case;
        match self.dialect {
            Dialect::Java => {
                let class = case.name.is_empty() || case.name == case.class;
                class
                    || matches!(&*case.name, "initializationError" | "executionError" | "classMethod")
                    || is_failed_class(case)
            }
            Dialect::Jest => case.name.starts_with("Test execution failure"),
            Dialect::Own => own_scope(case).is_some(),
            Dialect::Pytest => case.class.is_empty(),
            Dialect::Vitest => case.name == case.class || self.names.contains(&case.name),
            Dialect::NodeTest => {
                self.suites.is_empty()
                    && super::frames::is_source(&identity.name)
                    && identity.name.contains('/')
            }
            Dialect::Go => case.name.is_empty() || case.name.starts_with("[build failed]"),
            _ => false,
        }
    }

    /// Remembers groups (Vitest) and tests (Deno), and takes what is only a step of a test.
    fn is_step(&mut self, identity: &Identity, status: TestStatus) -> bool {
        if !matches!(self.dialect, Dialect::Vitest | Dialect::Deno) {
            return false;
        }
        let mut is_step = false;
        for (at, _) in self.case.name.match_indices(" > ") {
            let group = &self.case.name[..at];
            if group.len() > LONGEST_NAME {
                break;
            }
            if self.dialect == Dialect::Deno {
                is_step |= self.names.contains(group);
            } else if !self.names.contains(group) && self.names.len() < REMEMBERED {
                self.names.insert(group.to_owned());
            }
        }
        if self.dialect == Dialect::Vitest {
            return false;
        }
        if !is_step {
            if self.names.len() < REMEMBERED && self.case.name.len() <= LONGEST_NAME {
                self.names.insert(self.case.name.clone());
            }
            return false;
        }
        let parent = self.waiting.iter_mut().find(|(parent, _)| {
            identity.name.strip_prefix(parent.name.as_str()).is_some_and(|rest| rest.starts_with(" > "))
        });
        if status.is_failure()
            && let Some((_, parent)) = parent
            && parent.message.contains("test step")
        {
            std::mem::swap(&mut parent.message, &mut self.case.message);
            std::mem::swap(&mut parent.body, &mut self.case.body);
        }
        true
    }

    fn end_test(&mut self, identity: &Identity, status: TestStatus, sink: &mut dyn Sink) {
        if self.dialect == Dialect::Deno
            && status.is_failure()
            && self.case.message.contains("test step")
            && self.waiting.len() < WAITING
        {
            self.waiting.push((identity.clone(), std::mem::take(&mut self.case)));
            return;
        }
        let again = self.held.as_ref().is_some_and(|(held, _)| held == identity);
        let mut attempt = if again { self.tell_attempt(sink) } else { Attempt::Only };
        self.tell_held(sink);
        if self.dialect == Dialect::Pytest && attempt == Attempt::Only {
            if status == TestStatus::Pass && !self.is_last(identity) {
                self.held = Some((identity.clone(), self.case.ms));
                return;
            }
            attempt = Attempt::Repeat;
        }
        if self.case.reruns > 0 {
            attempt = Attempt::Retry;
            self.tell_reruns(identity, sink);
        }
        if status == TestStatus::NotRun {
            return sink.event(Event::NotRun(TestId { suite: &identity.suite, name: &identity.name }));
        }
        if status == TestStatus::Pass {
            return self.tell(identity, self.case.ms, status, None, attempt, sink);
        }
        let told = self.case.told(self.dialect);
        self.tell_output(identity, sink);
        self.tell(identity, self.case.ms, status, Some(&told.failure()), attempt, sink);
    }

    fn is_last(&self, identity: &Identity) -> bool {
        self.last.as_ref().is_some_and(|(last, remembered)| *remembered && last == identity)
    }

    fn tell_output(&mut self, identity: &Identity, sink: &mut dyn Sink) {
        let text = self.case.output.clone().into_text();
        if !text.trim().is_empty() {
            self.turn_to(identity, sink);
            let test = TestId { suite: &identity.suite, name: &identity.name };
            sink.event(Event::Output { test, text: &text });
        }
    }

    /// The attempts that failed before; the same test ends once more after them.
    fn tell_reruns(&mut self, identity: &Identity, sink: &mut dyn Sink) {
        let mut earlier = Case::default();
        earlier.class.clone_from(&self.case.class);
        std::mem::swap(&mut earlier.body, &mut self.case.rerun_body);
        std::mem::swap(&mut earlier.message, &mut self.case.rerun_message);
        earlier.outcome = Some(Outcome::Failure);
        let told: Told = earlier.told(self.dialect);
        for _ in 0..self.case.reruns.min(100) {
            self.tell(identity, 0, TestStatus::Fail, Some(&told.failure()), Attempt::Retry, sink);
        }
    }

    /// A test of pytest that is told twice in a row was run again because it failed; the report does not say why.
    fn tell_attempt(&mut self, sink: &mut dyn Sink) -> Attempt {
        if let Some((identity, ms)) = self.held.take() {
            let failure = Failure { message: "it failed and was run again", ..Failure::default() };
            self.tell(&identity, ms, TestStatus::Fail, Some(&failure), Attempt::Retry, sink);
        }
        Attempt::Retry
    }

    fn tell_held(&mut self, sink: &mut dyn Sink) {
        if let Some((identity, ms)) = self.held.take() {
            self.tell(&identity, ms, TestStatus::Pass, None, Attempt::Only, sink);
        }
    }

    fn tell(
        &mut self,
        identity: &Identity,
        ms: u64,
        status: TestStatus,
        failure: Option<&Failure<'_>>,
        attempt: Attempt,
        sink: &mut dyn Sink,
    ) {
        let same_suite = self.turn_to(identity, sink);
        let test = TestId { suite: &identity.suite, name: &identity.name };
        sink.event(Event::Finished(Finished { test, status, ms, failure: failure.cloned(), attempt }));
        let remembered = attempt != Attempt::Only;
        match &mut self.last {
            // The common case, without a copy: one more test of the same class.
            Some((last, remembers)) if same_suite && !remembered => {
                *remembers = false;
                last.name.clear();
            }
            last => *last = Some((identity.clone(), remembered)),
        }
    }

    /// Lets the collector forget what came before this test; says whether that was of the same suite.
    fn turn_to(&mut self, identity: &Identity, sink: &mut dyn Sink) -> bool {
        let same_suite = self.last.as_ref().is_some_and(|(last, _)| last.suite == identity.suite);
        let is_other =
            self.last.as_ref().is_some_and(|(last, remembered)| *remembered && last.name != identity.name);
        if !same_suite || is_other {
            self.forget(sink);
        }
        same_suite
    }

    /// Lets the collector forget the suite of the last test.
    fn forget(&mut self, sink: &mut dyn Sink) {
        if let Some((last, _)) = self.last.take() {
            sink.event(Event::SuiteEnded(&last.suite));
        }
    }

    fn suite_problem(&mut self, sink: &mut dyn Sink) {
        let (case, dialect) = (&mut self.case, self.dialect);
        let suite = self.suites.last().map(|suite| suite.name.as_str()).unwrap_or_default();
        let is_build = dialect == Dialect::Go && case.name.starts_with("[build failed]");
        let of_class = if is_build { ProblemScope::Build } else { ProblemScope::Suite };
        let scope = own_scope(case).filter(|_| dialect == Dialect::Own).unwrap_or(of_class);
        let name = match dialect {
            Dialect::Java if !case.class.is_empty() => case.class.clone(),
            Dialect::Pytest => case.file.clone(),
            Dialect::Vitest | Dialect::NodeTest | Dialect::Own if !case.name.is_empty() => case.name.clone(),
            _ => suite.to_owned(),
        };
        let told = case.told(dialect);
        let is_file = super::frames::is_source(&name);
        let kind = match told.kind {
            Some(FailureKind::Assertion | FailureKind::Error) | None if dialect != Dialect::Pytest => {
                Some(FailureKind::Setup)
            }
            kind => kind,
        };
        let file = told.file.or_else(|| is_file.then(|| name.clone()));
        sink.event(Event::Problem(
            Problem::new(
                scope,
                name,
                if is_build { Some(FailureKind::Compile) } else { kind },
                if told.message.trim().is_empty() { told.stack } else { told.message },
            )
            .placed(file, told.line),
        ));
    }
}

fn outcome(name: &str) -> Option<Outcome> {
    match name {
        "failure" => Some(Outcome::Failure),
        "error" => Some(Outcome::Error),
        "skipped" => Some(Outcome::Skipped),
        "warning" => Some(Outcome::Warning),
        _ => None,
    }
}

/// What a problem of our own report stands in the way of.
fn own_scope(case: &Case) -> Option<ProblemScope> {
    match case.class.strip_prefix("rehearsal.")? {
        "build" => Some(ProblemScope::Build),
        "suite" => Some(ProblemScope::Suite),
        "run" => Some(ProblemScope::Run),
        _ => None,
    }
}

/// The console launcher tells the failure of a class once for each of its tests.
fn is_failed_class(case: &Case) -> bool {
    let text = case.body.clone().into_text();
    ["BeforeAll", "AfterAll"].iter().any(|hook| {
        text.contains(&format!(".ClassBasedTestDescriptor.invoke{hook}"))
            || text.contains(&format!(".ClassBasedTestDescriptor.lambda$invoke{hook}"))
    })
}

#[cfg(test)]
mod tests;

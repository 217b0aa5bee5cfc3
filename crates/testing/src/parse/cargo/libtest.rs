//! What one test binary of Rust prints: `libtest`'s pretty and terse text.
//!
//! Results stand line by line, what failed tests printed follows in a section of its own, then their names again and the
//! counts. A test's own output can look like any of it, so each part is believed only at its place, and only if the
//! counts of the last line agree with the number that the first line announced.

use std::collections::HashMap;

use super::panics::Panics;
use crate::parse::milliseconds;
use crate::parse::rust_failure::rust_failure;
use crate::{Event, Failure, Finished, HeadTail, Place, Sink, TestId, TestStatus};

/// Failed tests that wait for what they printed; more are told at once, without it.
const MOST_WAITING: usize = 20_000;
/// Bytes at each end of what one failed test printed.
const SECTION: usize = 32 << 10;

#[derive(Debug, Default)]
pub(super) struct Libtest {
    suite: String,
    phase: Phase,
    /// Results have one form in one run; what has the other was printed by a test.
    form: Option<Form>,
    declared: u64,
    named: Counts,
    /// Counted by dots, without names.
    dots: Counts,
    /// The test whose line has begun and not ended: tests run one by one, and print.
    open: Option<String>,
    failed: Vec<Failed>,
    by_name: HashMap<String, usize>,
    section: Option<(String, HeadTail)>,
    /// What may be the list at the end, or part of what a test printed.
    doubtful: String,
    after_blank: bool,
    /// Failed tests of binaries that are over, whose panics may still come on the other stream.
    late: Vec<(String, String)>,
    unfinished: Vec<(String, Option<String>)>,
    pub(super) totals: Totals,
}

/// What the whole run came to.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Totals {
    pub(super) began: u64,
    pub(super) ended: u64,
    counted: u64,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// No binary runs.
    #[default]
    Idle,
    /// Results come.
    Tests,
    /// `failures:` was read: a section, or the list, should follow.
    FailuresBegin,
    /// What failed tests printed.
    Sections,
    /// The names of failed tests.
    List,
    /// What good tests printed.
    Successes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// A line a test.
    Pretty,
    /// A character a test, and a line for one that failed.
    Terse,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Counts {
    passed: u64,
    failed: u64,
    ignored: u64,
}

impl Counts {
    fn sum(self) -> u64 {
        self.passed.saturating_add(self.failed).saturating_add(self.ignored)
    }
}

#[derive(Debug)]
struct Failed {
    name: String,
    ms: u64,
    told: bool,
    listed: bool,
}

impl Libtest {
    /// A binary begins: `running 9 tests`.
    pub(super) fn begin(
        &mut self,
        suite: String,
        declared: u64,
        panics: &mut [Panics; 2],
        sink: &mut dyn Sink,
    ) {
        self.give_up(panics, sink);
        self.suite = suite;
        self.declared = declared;
        self.phase = Phase::Tests;
        self.totals.began += 1;
        sink.event(Event::Declared(declared));
    }

    pub(super) fn is_running(&self) -> bool {
        self.phase != Phase::Idle
    }

    /// Whether the line of a test has begun: if its process dies, the next binary's first line ends it.
    pub(super) fn is_cut_off(&self) -> bool {
        self.open.is_some()
    }

    pub(super) fn suite(&self) -> &str {
        &self.suite
    }

    /// The binaries that came to no end of their own, each with the test that was running if it is known.
    pub(super) fn take_unfinished(&mut self) -> Vec<(String, Option<String>)> {
        std::mem::take(&mut self.unfinished)
    }

    pub(super) fn line(&mut self, line: &str, panics: &mut [Panics; 2], sink: &mut dyn Sink) {
        let after_blank = std::mem::replace(&mut self.after_blank, line.is_empty());
        if self.phase == Phase::Idle {
            return;
        }
        // An empty line stands before, unless it only ends a line of dots, or of output without an end.
        let after_blank = after_blank || self.phase == Phase::Tests && self.all_ended();
        if after_blank
            && let Some(counts) = result(line)
            && counts.sum() == self.declared
        {
            return self.result(counts, panics, sink);
        }
        match self.phase {
            Phase::Tests => self.test_line(line, after_blank, panics, sink),
            Phase::FailuresBegin => self.failures_begin(line, panics, sink),
            Phase::Sections => self.section_line(line, after_blank, sink),
            Phase::List => self.list_line(line, sink),
            Phase::Successes if after_blank && line == "failures:" => self.phase = Phase::FailuresBegin,
            Phase::Successes | Phase::Idle => {}
        }
    }

    fn test_line(&mut self, line: &str, after_blank: bool, panics: &mut [Panics; 2], sink: &mut dyn Sink) {
        if self.open.is_some()
            && let Some((status, ms, reason)) = status(line)
            && let Some(name) = self.open.take()
        {
            return self.ended(&name, status, ms, reason, sink);
        }
        if let Some(rest) = line.strip_prefix("test ") {
            if let Some(name) = rest.strip_suffix(" has been running for over 60 seconds") {
                let test = TestId { suite: &self.suite, name };
                return sink.event(Event::Started { test, at: Place::default() });
            }
            if let Some((name, rest)) = name_of(rest)
                && self.is_form(Form::Pretty)
            {
                return self.named_line(name, rest, sink);
            }
        }
        match line {
            "failures:" if after_blank => self.phase = Phase::FailuresBegin,
            "successes:" if after_blank => self.phase = Phase::Successes,
            _ => {
                if let Some(name) = line.strip_suffix(" --- FAILED").filter(|name| is_name(name))
                    && self.is_form(Form::Terse)
                {
                    self.ended(name, TestStatus::Fail, 0, "", sink);
                } else if !self.dots(line) {
                    panics[0].line(line);
                }
            }
        }
    }

    fn all_ended(&self) -> bool {
        let waiting = self.failed.len() as u64;
        let ended = self.named.sum().saturating_add(self.dots.sum()).saturating_add(waiting);
        ended >= self.declared
    }

    fn is_form(&mut self, form: Form) -> bool {
        *self.form.get_or_insert(form) == form
    }

    fn named_line(&mut self, name: &str, rest: &str, sink: &mut dyn Sink) {
        if let Some((status, ms, reason)) = status(rest) {
            return self.ended(name, status, ms, reason, sink);
        }
        let test = TestId { suite: &self.suite, name };
        sink.event(Event::Started { test, at: Place::default() });
        self.open = Some(name.to_owned());
    }

    /// `..i.F 5/9`, one character a test. A failure is told by name as well since Rust 1.65, and then has no character.
    fn dots(&mut self, line: &str) -> bool {
        let marks = line.split(' ').next().unwrap_or_default();
        let counter = line[marks.len()..].trim_start();
        let is_counter =
            counter.is_empty() || counter.split_once('/').is_some_and(|(a, b)| is_number(a) && is_number(b));
        if marks.is_empty()
            || !is_counter
            || !marks.bytes().all(|mark| matches!(mark, b'.' | b'i' | b'F' | b'b'))
        {
            return false;
        }
        if !self.is_form(Form::Terse) {
            return false;
        }
        for mark in marks.bytes() {
            match mark {
                b'i' => self.dots.ignored += 1,
                b'F' => self.dots.failed += 1,
                _ => self.dots.passed += 1,
            }
        }
        true
    }

    fn ended(&mut self, name: &str, status: TestStatus, ms: u64, reason: &str, sink: &mut dyn Sink) {
        match status {
            TestStatus::Pass => self.named.passed += 1,
            TestStatus::Skip => self.named.ignored += 1,
            _ => return self.failed(name, ms, sink),
        }
        let failure = (!reason.is_empty()).then(|| Failure { message: reason, ..Failure::default() });
        let test = TestId { suite: &self.suite, name };
        sink.event(Event::Finished(Finished { failure, ..Finished::new(test, status, ms) }));
    }

    /// A failed test waits for what it printed, which follows at the end.
    fn failed(&mut self, name: &str, ms: u64, sink: &mut dyn Sink) {
        if self.by_name.contains_key(name) {
            return;
        }
        if self.failed.len() >= MOST_WAITING {
            self.named.failed += 1;
            return self.tell_failed(name, ms, "", sink);
        }
        self.by_name.insert(name.to_owned(), self.failed.len());
        self.failed.push(Failed { name: name.to_owned(), ms, told: false, listed: false });
    }

    /// After `failures:` comes an empty line, then a section, or the list if nothing was printed.
    fn failures_begin(&mut self, line: &str, panics: &mut [Panics; 2], sink: &mut dyn Sink) {
        if line.is_empty() {
        } else if line == "failures:" {
            self.phase = Phase::List;
        } else if section_of(line).is_some() {
            self.phase = Phase::Sections;
            self.section_line(line, true, sink);
        } else {
            // A test printed `failures:`.
            self.phase = Phase::Tests;
            self.test_line(line, false, panics, sink);
        }
    }

    fn section_line(&mut self, line: &str, after_blank: bool, sink: &mut dyn Sink) {
        if let Some(name) = section_of(line)
            && self.may_have_failed(name)
        {
            self.end_section(sink);
            self.section = Some((name.to_owned(), HeadTail::new(SECTION)));
        } else if after_blank && line == "failures:" {
            self.phase = Phase::List;
            "failures:\n".clone_into(&mut self.doubtful);
        } else if let Some((_, text)) = &mut self.section {
            text.push_line(line);
        }
    }

    fn may_have_failed(&mut self, name: &str) -> bool {
        match self.by_name.get(name) {
            Some(at) => !self.failed[*at].told,
            // Old terse output does not name failed tests before.
            None if (self.failed.len() as u64) < self.dots.failed => {
                self.by_name.insert(name.to_owned(), self.failed.len());
                self.failed.push(Failed { name: name.to_owned(), ms: 0, told: false, listed: false });
                true
            }
            None => false,
        }
    }

    fn list_line(&mut self, line: &str, sink: &mut dyn Sink) {
        if line.is_empty() {
            self.doubtful.push('\n');
            return;
        }
        if let Some(name) = line.strip_prefix("    ")
            && !self.doubtful.ends_with("\n\n")
            && self.may_be_listed(name)
        {
            if self.doubtful.len() < SECTION {
                self.doubtful.push_str(line);
                self.doubtful.push('\n');
            }
            return;
        }
        // It was no list: a test printed it.
        self.phase = Phase::Sections;
        self.failed.iter_mut().for_each(|failed| failed.listed = false);
        let doubtful = std::mem::take(&mut self.doubtful);
        if let Some((_, text)) = &mut self.section {
            text.push(&doubtful);
        }
        self.section_line(line, doubtful.ends_with("\n\n"), sink);
    }

    fn may_be_listed(&mut self, name: &str) -> bool {
        if !self.by_name.contains_key(name) && !self.may_have_failed(name) {
            return false;
        }
        if let Some(at) = self.by_name.get(name) {
            self.failed[*at].listed = true;
        }
        true
    }

    fn end_section(&mut self, sink: &mut dyn Sink) {
        let Some((name, text)) = self.section.take() else { return };
        let Some(at) = self.by_name.get(&name).copied() else { return };
        self.failed[at].told = true;
        self.named.failed += 1;
        let ms = self.failed[at].ms;
        self.tell_failed(&name, ms, &text.into_text(), sink);
    }

    fn tell_failed(&self, name: &str, ms: u64, printed: &str, sink: &mut dyn Sink) {
        let test = TestId { suite: &self.suite, name };
        if !printed.is_empty() {
            sink.event(Event::Output { test, text: printed });
        }
        let failure = rust_failure(name, printed);
        sink.event(Event::Finished(Finished::new(test, TestStatus::Fail, ms).failure(failure)));
    }

    /// The last line: names that are missing are counted, names that are too many do not fit.
    fn result(&mut self, counts: Counts, panics: &mut [Panics; 2], sink: &mut dyn Sink) {
        self.end_section(sink);
        let listed = self.failed.iter().any(|failed| failed.listed);
        if let Some(name) = self.open.take() {
            let failed = self.by_name.get(&name).is_some_and(|at| self.failed[*at].listed);
            let status = if failed { TestStatus::Fail } else { TestStatus::Pass };
            self.ended(&name, status, 0, "", sink);
        }
        for failed in std::mem::take(&mut self.failed) {
            if !failed.told && (failed.listed || !listed) {
                self.named.failed += 1;
                self.tell_or_wait(failed.name, failed.ms, panics, sink);
            }
        }
        let named = self.named;
        for (status, counted, named) in [
            (TestStatus::Pass, counts.passed, named.passed),
            (TestStatus::Fail, counts.failed, named.failed),
            (TestStatus::Skip, counts.ignored, named.ignored),
        ] {
            match counted.checked_sub(named) {
                Some(0) => {}
                Some(count) => sink.event(Event::Counted { status, count }),
                None => {
                    sink.event(Event::Complaint("more results were printed than the test binary counted"))
                }
            }
        }
        self.totals.ended += 1;
        self.totals.counted = self.totals.counted.saturating_add(counts.sum());
        self.reset();
    }

    /// What it printed may have come already, or still come on the other stream.
    fn tell_or_wait(&mut self, name: String, ms: u64, panics: &mut [Panics; 2], sink: &mut dyn Sink) {
        match take(panics, &name) {
            Some(text) => self.tell_failed(&name, ms, &text, sink),
            None if self.late.len() < MOST_WAITING => self.late.push((self.suite.clone(), name)),
            None => self.tell_failed(&name, ms, "", sink),
        }
    }

    /// A binary came to no end of its own: what is known of it is told.
    pub(super) fn give_up(&mut self, panics: &mut [Panics; 2], sink: &mut dyn Sink) {
        if self.phase == Phase::Idle {
            return;
        }
        self.end_section(sink);
        if self.unfinished.len() < MOST_WAITING {
            self.unfinished.push((self.suite.clone(), self.open.take()));
        }
        for failed in std::mem::take(&mut self.failed) {
            if !failed.told {
                self.tell_or_wait(failed.name, failed.ms, panics, sink);
            }
        }
        for (status, count) in [(TestStatus::Pass, self.dots.passed), (TestStatus::Skip, self.dots.ignored)] {
            if count > 0 {
                sink.event(Event::Counted { status, count });
            }
        }
        self.reset();
    }

    fn reset(&mut self) {
        self.phase = Phase::Idle;
        self.named = Counts::default();
        self.dots = Counts::default();
        self.by_name.clear();
        self.doubtful.clear();
        self.open = None;
        self.form = None;
    }

    /// The output is over.
    pub(super) fn end(&mut self, panics: &mut [Panics; 2], sink: &mut dyn Sink) {
        self.give_up(panics, sink);
        let late = std::mem::take(&mut self.late);
        let mut texts: Vec<Option<String>> = late.iter().map(|(_, name)| take(panics, name)).collect();
        for text in texts.iter_mut().filter(|text| text.is_none()) {
            *text = panics.iter_mut().find_map(Panics::take_error);
        }
        for ((suite, name), text) in late.into_iter().zip(texts) {
            self.suite = suite;
            self.tell_failed(&name, 0, &text.unwrap_or_default(), sink);
        }
        if self.totals.began > 0 && self.totals.began == self.totals.ended {
            sink.event(Event::Ended { counted: Some(self.totals.counted) });
        }
    }
}

fn take(panics: &mut [Panics; 2], name: &str) -> Option<String> {
    panics.iter_mut().find_map(|panics| panics.take(name))
}

/// `running 9 tests`.
pub(super) fn header(line: &str) -> Option<u64> {
    let count = line.strip_prefix("running ")?;
    let count = count.strip_suffix(" tests").or_else(|| count.strip_suffix(" test"))?;
    count.parse().ok()
}

/// The name before ` ... `, and what follows. Only doctests have spaces in their names.
fn name_of(rest: &str) -> Option<(&str, &str)> {
    let (name, rest) = rest.split_once(" ... ").or_else(|| Some((rest.strip_suffix(" ...")?, "")))?;
    let suffixes = [" - should panic", " - compile fail", " - compile"];
    let name = suffixes.iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name);
    is_name(name).then_some((name, rest))
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && (!name.contains(' ') || name.contains(" - ") && name.contains("(line "))
}

/// `ok`, `ignored, slow`, `FAILED <0.001s>`, `bench:  1,234 ns/iter (+/- 56)`: status, milliseconds, reason.
fn status(text: &str) -> Option<(TestStatus, u64, &str)> {
    let text = text.trim_end();
    let (text, ms) = match text.strip_suffix("s>").and_then(|text| text.rsplit_once(" <")) {
        Some((text, seconds)) => (text, milliseconds::of_seconds(seconds.parse().ok()?)),
        None => (text, 0),
    };
    match text {
        "ok" => Some((TestStatus::Pass, ms, "")),
        "ignored" => Some((TestStatus::Skip, ms, "")),
        "FAILED" | "failed" | "FAILED (time limit exceeded)" => Some((TestStatus::Fail, ms, "")),
        _ => match text.strip_prefix("ignored, ") {
            Some(reason) => Some((TestStatus::Skip, ms, reason)),
            None => text.starts_with("bench: ").then_some((TestStatus::Pass, ms, "")),
        },
    }
}

fn section_of(line: &str) -> Option<&str> {
    line.strip_prefix("---- ")?.strip_suffix(" stdout ----")
}

/// `test result: FAILED. 3 passed; 5 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s`.
fn result(line: &str) -> Option<Counts> {
    let rest = line.strip_prefix("test result: ")?;
    let (good, rest) = match rest.strip_prefix("ok. ") {
        Some(rest) => (true, rest),
        None => (false, rest.strip_prefix("FAILED. ")?),
    };
    let mut counts = Counts::default();
    for part in rest.split("; ") {
        let (number, what) = part.split_once(' ')?;
        let Ok(number) = number.parse::<u64>() else { continue };
        match what {
            "passed" | "measured" => counts.passed = counts.passed.saturating_add(number),
            "failed" => counts.failed = number,
            "ignored" => counts.ignored = number,
            _ => {}
        }
    }
    (good == (counts.failed == 0)).then_some(counts)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

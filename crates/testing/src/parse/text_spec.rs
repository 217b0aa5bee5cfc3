//! Printed text whose form is data: a [`TextSpec`] has the rules of one runner, and one engine reads by them.
//!
//! The first rule that fits a line says what is done with it. A line that none fits belongs to the entry that is open:
//! a failure at length, or an error outside of tests.

use std::sync::OnceLock;

use regex::{Captures, Regex, RegexSet};

use super::by_line::LineReader;
use super::each_stream::EachStream;
use super::tally::Tally;
use super::{Head, Parser, Stream, milliseconds};
use crate::{Event, Failure, Finished, HeadTail, Place, Problem, Sink, TestId, TestStatus};

/// Bytes at each end of one entry.
const ENTRY: usize = 16 << 10;
/// Failed tests that wait for their entries.
const MOST_WAITING: usize = 1000;

/// How the printed text of one runner is read.
pub(super) struct TextSpec {
    /// What only this runner prints: all expressions of one of the lists.
    pub begins: &'static [&'static [&'static str]],
    /// Where it tells of tests.
    pub streams: Streams,
    /// Spaces at the end of a line say nothing.
    pub trimmed: bool,
    /// What stands before a result explains it, and not what follows.
    pub details_before: bool,
    /// Runners that name all tests must have named as many as they count.
    pub names_all: bool,
    pub rules: &'static [Rule],
    /// The marks of progress, each with what it means.
    pub marks: &'static [(&'static str, TestStatus)],
    /// The whole name of a test in a suite.
    pub full_name: fn(&str, &str) -> String,
    /// Puts the text of an entry in order.
    pub tidy: fn(&str) -> String,
    /// What an entry says.
    pub read: for<'a> fn(&'a Entry) -> Told<'a>,
}

impl TextSpec {
    /// What most have in common.
    pub(super) const DEFAULT: Self = Self {
        begins: &[],
        streams: Streams::Both,
        trimmed: false,
        details_before: false,
        names_all: false,
        rules: &[],
        marks: &[],
        full_name: |_, name| name.to_owned(),
        tidy: str::to_owned,
        read: |entry| Told::test(&entry.suite, &entry.name, entry.status, Failure::default()),
    };
}

/// Where a runner tells of tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Streams {
    /// On either, and each is read on its own.
    Both,
    /// On standard output.
    Out,
}

/// A spec and, once it is used, its expressions.
pub(super) struct TextFormat {
    spec: TextSpec,
    compiled: OnceLock<Compiled>,
}

impl TextFormat {
    pub(super) const fn new(spec: TextSpec) -> Self {
        Self { spec, compiled: OnceLock::new() }
    }

    /// Whether a text is of this runner.
    pub(super) fn looks_like(&self, head: &Head<'_>) -> bool {
        let begins = &self.compiled().begins;
        begins.iter().any(|all| all.iter().all(|expression| expression.is_match(head.text)))
    }

    pub(super) fn parser(&'static self) -> Box<dyn Parser> {
        Box::new(EachStream::of(SpecReader::new(self), SpecReader::new(self)))
    }

    fn compiled(&self) -> &Compiled {
        self.compiled.get_or_init(|| Compiled {
            begins: self.spec.begins.iter().map(|all| all.iter().map(|it| compiled(it)).collect()).collect(),
            set: set(self.spec.rules),
            rules: self.spec.rules.iter().map(|rule| compiled(rule.line)).collect(),
        })
    }
}

/// The expressions of a spec.
#[derive(Debug)]
pub(super) struct Compiled {
    begins: Vec<Vec<Regex>>,
    set: RegexSet,
    rules: Vec<Regex>,
}

#[expect(clippy::expect_used, reason = "a constant, which a test compiles")]
fn compiled(expression: &str) -> Regex {
    Regex::new(&format!("(?mR){expression}")).expect("the rules are expressions")
}

#[expect(clippy::expect_used, reason = "a constant, which a test compiles")]
fn set(rules: &[Rule]) -> RegexSet {
    RegexSet::new(rules.iter().map(|rule| rule.line)).expect("the rules are expressions")
}

/// What a line of this form means.
pub(super) struct Rule {
    /// The sections (a bit each) and conditions under which it holds.
    pub when: u16,
    /// Its groups are the parts of a result: `name`, `suite`, `file`, `line`, `ms`, `s` and `why`, or counts: `total`,
    /// `passed`, `failed`, `errors`, `skipped`, `pending` and `omitted`. A `number` must be the one after the last.
    pub line: &'static str,
    pub does: &'static [Does],
}

pub(super) const fn rule(when: u16, line: &'static str, does: &'static [Does]) -> Rule {
    Rule { when, line, does }
}

/// Only while an entry is open.
pub(super) const INSIDE: u16 = 1 << 12;
/// Only while none is.
pub(super) const OUTSIDE: u16 = 1 << 13;
/// Only after an empty line.
pub(super) const AFTER_BLANK: u16 = 1 << 14;
/// In every section.
pub(super) const ANYWHERE: u16 = 0xff;

/// What is done with a line.
#[derive(Debug, Clone, Copy)]
pub(super) enum Does {
    Version,
    /// What follows is of this suite.
    Suite,
    /// A test ended, and there is no more to say of it.
    Result(TestStatus),
    /// A test failed; an entry may explain it.
    Await,
    /// An entry begins: of a test, or of something else.
    Entry(TestStatus),
    Problem,
    /// The next line has the name of the entry.
    Titled(TestStatus),
    /// The entry of which the line before was the title.
    Named,
    /// The entry of a test that waits for it.
    Explains,
    /// More of the open entry: the group `text`.
    Text,
    /// The open entry says only the group `text`.
    OnlyText,
    /// The entry is over, or never was.
    Close,
    Forget,
    Marks,
    /// The runner's counts: all that it has, one more, or only how many tests there are.
    Counts,
    Count,
    Total,
    Go(u16),
    /// Back to the section before the title.
    Back,
}

/// A failure at length, or an error outside of tests.
#[derive(Debug, Default)]
pub(super) struct Entry {
    pub status: TestStatus,
    pub is_problem: bool,
    pub suite: String,
    pub name: String,
    pub ms: u64,
    pub why: String,
    pub file: Option<String>,
    pub line: Option<u32>,
    pub text: String,
    /// The file of the last failure that had one.
    pub near: Option<String>,
}

impl Entry {
    pub(super) fn place(&self) -> Option<Place<'_>> {
        self.file.as_deref().map(|file| Place { file: Some(file), line: self.line })
    }
}

/// What an entry says.
pub(super) enum Told<'a> {
    Test { suite: &'a str, name: String, status: TestStatus, failure: Failure<'a> },
    Problem(Problem),
    Nothing,
}

impl<'a> Told<'a> {
    pub(super) fn test(suite: &'a str, name: &str, status: TestStatus, failure: Failure<'a>) -> Self {
        Self::Test { suite, name: name.to_owned(), status, failure }
    }
}

/// Reads one stream.
struct SpecReader {
    format: &'static TextFormat,
    spec: &'static TextSpec,
    section: u16,
    /// The section before the title, and the status that the title says.
    title: (u16, TestStatus),
    after_blank: bool,
    number: u64,
    suite: String,
    entry: Option<(Entry, HeadTail)>,
    before: Option<HeadTail>,
    waiting: Vec<Entry>,
    near: Option<String>,
    named: Tally,
    marked: Tally,
    counts: Option<Tally>,
    total: Option<u64>,
    broken: u64,
}

impl LineReader for SpecReader {
    fn line(&mut self, stream: Stream, line: &str, sink: &mut dyn Sink) {
        if stream == Stream::Err && self.spec.streams == Streams::Out {
            return;
        }
        let spec = self.spec;
        let compiled = self.format.compiled();
        let line = if spec.trimmed { line.trim_end() } else { line };
        let after_blank = std::mem::replace(&mut self.after_blank, line.is_empty());
        let fitting = compiled.set.matches(line).into_iter();
        let mut fitting = fitting.filter(|at| self.holds(spec.rules[*at].when, after_blank));
        let found = fitting.find_map(|at| {
            let groups = compiled.rules[at].captures(line)?;
            self.fits(&spec.rules[at], &groups).then_some((at, groups))
        });
        let Some((at, groups)) = found else { return self.keep(line) };
        self.number = number(&groups, "number").unwrap_or(self.number);
        for does in spec.rules[at].does {
            self.act(*does, &groups, sink);
        }
    }

    fn end(&mut self, sink: &mut dyn Sink) {
        self.close(sink);
        self.tell_waiting(sink);
        let Some(mut counts) = self.counts else {
            if let Some(total) = self.total {
                return sink.event(Event::Ended { counted: Some(total) });
            }
            return self.marked.count_unnamed(self.named, sink);
        };
        if self.spec.names_all {
            let (failed, passed) = (self.named.failed, self.named.passed);
            if counts.failed != failed || counts.passed > passed {
                let complaint = format!(
                    "the runner counted {} failed and {} passed, {failed} and {passed} were seen",
                    counts.failed, counts.passed
                );
                sink.event(Event::Complaint(&complaint));
            }
            return sink.event(Event::Ended { counted: None });
        }
        // A file that cannot be loaded counts as a failed test.
        let files = counts.failed.saturating_sub(self.named.failed).min(self.broken);
        counts.failed -= files;
        counts.count_unnamed(self.named, sink);
        let counted = self.total.map_or(counts.sum(), |total| total.saturating_sub(files));
        sink.event(Event::Ended { counted: Some(counted) });
    }
}

impl SpecReader {
    fn new(format: &'static TextFormat) -> Self {
        Self {
            format,
            spec: &format.spec,
            section: 1,
            title: (1, TestStatus::Fail),
            after_blank: false,
            number: 0,
            suite: String::new(),
            entry: None,
            before: None,
            waiting: Vec::new(),
            near: None,
            named: Tally::default(),
            marked: Tally::default(),
            counts: None,
            total: None,
            broken: 0,
        }
    }

    fn holds(&self, when: u16, after_blank: bool) -> bool {
        when & self.section != 0
            && (when & INSIDE == 0 || self.entry.is_some())
            && (when & OUTSIDE == 0 || self.entry.is_none())
            && (when & AFTER_BLANK == 0 || after_blank)
    }

    fn fits(&self, rule: &Rule, groups: &Captures<'_>) -> bool {
        let explains = rule.does.iter().any(|does| matches!(does, Does::Explains));
        number(groups, "number").is_none_or(|number| number == self.number + 1)
            && (!explains || self.waiting_for(text(groups, "name")).is_some())
    }

    fn keep(&mut self, line: &str) {
        let in_entry = self.entry.as_mut().filter(|(entry, _)| entry.is_problem || !self.spec.details_before);
        if let Some((_, text)) = in_entry {
            text.push_line(line);
        } else if self.spec.details_before {
            self.before.get_or_insert_with(|| HeadTail::new(ENTRY)).push_line(line);
        }
    }

    fn act(&mut self, does: Does, groups: &Captures<'_>, sink: &mut dyn Sink) {
        match does {
            Does::Version => sink.event(Event::Version(text(groups, "version"))),
            Does::Suite => text(groups, "suite").clone_into(&mut self.suite),
            Does::Result(status) => self.result(status, groups, sink),
            Does::Await => {
                let entry = self.entry_of(TestStatus::Fail, groups);
                if self.waiting.len() >= MOST_WAITING {
                    return self.tell(&entry, sink);
                }
                self.waiting.push(entry);
            }
            Does::Entry(status) => self.begin(self.entry_of(status, groups)),
            Does::Problem => {
                self.begin(Entry { is_problem: true, ..self.entry_of(TestStatus::Error, groups) })
            }
            Does::Titled(status) => self.title = (self.section, status),
            Does::Named => self.begin(self.entry_of(self.title.1, groups)),
            Does::Explains => {
                if let Some(at) = self.waiting_for(text(groups, "name")) {
                    let name = text(groups, "name").to_owned();
                    let waiting = self.waiting.remove(at);
                    self.begin(Entry { name, ..waiting });
                }
            }
            Does::Text => {
                if let Some((_, kept)) = &mut self.entry {
                    kept.push_line(text(groups, "text"));
                }
            }
            Does::OnlyText => {
                if let Some((_, kept)) = &mut self.entry {
                    *kept = HeadTail::new(ENTRY);
                    kept.push(text(groups, "text"));
                }
            }
            Does::Close => self.close(sink),
            Does::Forget => (self.entry, self.before) = (None, None),
            Does::Marks => self.marks(text(groups, "marks")),
            Does::Counts => {
                self.counts = Some(Tally::default());
                self.count(groups);
            }
            Does::Count => {
                self.close(sink);
                self.tell_waiting(sink);
                self.count(groups);
            }
            Does::Total => self.total = number(groups, "total"),
            Does::Go(section) => self.section = section,
            Does::Back => self.section = self.title.0,
        }
    }

    fn entry_of(&self, status: TestStatus, groups: &Captures<'_>) -> Entry {
        let suite = groups.name("suite").map_or(&*self.suite, |suite| suite.as_str());
        let seconds = float(groups, "s").map(milliseconds::of_seconds);
        Entry {
            status,
            suite: suite.to_owned(),
            name: (self.spec.full_name)(suite, text(groups, "name").trim()),
            ms: seconds.or_else(|| float(groups, "ms").map(milliseconds::of)).unwrap_or(0),
            why: text(groups, "why").to_owned(),
            file: groups.name("file").map(|file| file.as_str().to_owned()),
            line: number(groups, "line").and_then(|line| u32::try_from(line).ok()),
            ..Entry::default()
        }
    }

    fn result(&mut self, status: TestStatus, groups: &Captures<'_>, sink: &mut dyn Sink) {
        let entry = self.entry_of(status, groups);
        self.before = None;
        self.named.add(status);
        let test = TestId { suite: &entry.suite, name: &entry.name };
        let failure = Failure { message: &entry.why, ..Failure::default() };
        sink.event(Event::Finished(Finished::new(test, status, entry.ms).failure(failure)));
    }

    fn begin(&mut self, entry: Entry) {
        let before = if entry.is_problem { None } else { self.before.take() };
        self.entry = Some((entry, before.unwrap_or_else(|| HeadTail::new(ENTRY))));
    }

    /// The test that waits for an entry of this name; its reason may stand behind its name.
    fn waiting_for(&self, name: &str) -> Option<usize> {
        let begins = |entry: &Entry| {
            entry.name.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        };
        self.waiting.iter().position(|entry| !name.is_empty() && begins(entry))
    }

    fn tell_waiting(&mut self, sink: &mut dyn Sink) {
        for mut entry in std::mem::take(&mut self.waiting) {
            entry.near.clone_from(&self.near);
            self.tell(&entry, sink);
        }
    }

    fn close(&mut self, sink: &mut dyn Sink) {
        let Some((mut entry, text)) = self.entry.take() else { return };
        entry.text = (self.spec.tidy)(&text.into_text());
        entry.near.clone_from(&self.near);
        self.tell(&entry, sink);
    }

    fn tell(&mut self, entry: &Entry, sink: &mut dyn Sink) {
        match (self.spec.read)(entry) {
            Told::Nothing => {}
            Told::Problem(problem) => {
                self.broken += 1;
                sink.event(Event::Problem(problem));
            }
            Told::Test { suite, name, status, failure } => {
                self.named.add(status);
                if let Some(file) = failure.at.file.filter(|file| file.contains("test")) {
                    self.near = Some(file.to_owned());
                }
                let test = TestId { suite, name: &name };
                sink.event(Event::Finished(Finished::new(test, status, entry.ms).failure(failure)));
            }
        }
    }

    fn marks(&mut self, marks: &str) {
        for mark in marks.chars() {
            if let Some((_, status)) = self.spec.marks.iter().find(|(known, _)| known.contains(mark)) {
                self.marked.add(*status);
            }
        }
    }

    fn count(&mut self, groups: &Captures<'_>) {
        let count = |names: &[&str]| {
            names.iter().filter_map(|name| number(groups, name)).fold(0, u64::saturating_add)
        };
        let (failed, skipped) = (count(&["failed", "errors"]), count(&["skipped", "pending", "omitted"]));
        let rest = number(groups, "total").map(|total| total.saturating_sub(failed).saturating_sub(skipped));
        let counts = self.counts.get_or_insert_default();
        counts.passed = counts.passed.saturating_add(number(groups, "passed").or(rest).unwrap_or(0));
        counts.failed = counts.failed.saturating_add(failed);
        counts.skipped = counts.skipped.saturating_add(skipped);
    }
}

/// What stands after a label, to the end of its line.
pub(super) fn value<'a>(text: &'a str, label: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.trim_start().strip_prefix(label))
}

fn text<'a>(groups: &Captures<'a>, name: &str) -> &'a str {
    groups.name(name).map_or("", |it| it.as_str())
}

fn number(groups: &Captures<'_>, name: &str) -> Option<u64> {
    text(groups, name).parse().ok()
}

fn float(groups: &Captures<'_>, name: &str) -> Option<f64> {
    text(groups, name).parse().ok()
}

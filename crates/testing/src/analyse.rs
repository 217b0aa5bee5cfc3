//! What is behind the failures of a run: kinds, groups, causes, and what to look at.
//!
//! **Invariant:** pure. What it says are facts of the report and of its context, with their places; nothing is guessed
//! that a reader could not check.

mod blocked;
mod cause;
mod denial;
mod facts;
mod failing;
mod frames;
mod group;
mod pattern;
mod signature;
mod suggest;
mod tree;
mod words;

use std::collections::BTreeMap;

use camino::Utf8Path;
use serde::{Deserialize, Serialize};

pub use blocked::blocked_by_sandbox;
use cause::{Evidence, cascades, root_cause};
pub use denial::Withheld;
pub(crate) use denial::{Denial, DenialKind};
pub(crate) use failing::failed;
use failing::{Failing, Source};
use group::{Group, NAMED, groups, patterns};
pub(crate) use pattern::FailurePattern;
use tree::Tree;
pub use tree::is_test_file;

use crate::{ChangedPlace, Changes, ProblemScope, Relation, TestReport, TestStatus};

/// What is known of a run besides its report.
#[derive(Clone, Copy, Default)]
pub struct FailureContext<'a> {
    /// Where it ran.
    pub root: Option<&'a Utf8Path>,
    /// What changed lately.
    pub changes: Option<&'a Changes>,
    /// What its sandbox withheld; none if it ran in none.
    pub withheld: Option<&'a Withheld>,
    /// Reads a line of the project's source, to be quoted.
    pub source: Option<SourceReader<'a>>,
}

/// Reads a line of a file of the project, both as the report names them.
pub(crate) type SourceReader<'a> = &'a dyn Fn(&str, u32) -> Option<String>;

impl FailureContext<'_> {
    fn source_line(&self, file: &str, line: u32) -> Option<String> {
        const QUOTED: usize = 100;
        let text = self.source?(file, line)?;
        let text = text.trim();
        (!text.is_empty() && text.len() <= QUOTED && !text.contains('\n')).then(|| text.to_owned())
    }
}

/// What is behind the failures of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FailureAnalysis {
    /// Every test that failed, briefly.
    pub failed_tests: Vec<FailedTest>,
    /// The kinds of failure, the most frequent first.
    pub error_patterns: Vec<ErrorPattern>,
    /// What to look at.
    pub suggestions: Vec<String>,
    /// The files to look at, changed ones and sources before tests.
    pub affected_files: Vec<String>,
    /// What most of the failures go back to; none if they have nothing in common.
    pub root_cause: Option<String>,
    /// Failures that are one.
    pub groups: Vec<FailureGroup>,
    /// Failures that only follow from another.
    pub cascades: Vec<Cascade>,
    /// What the sandbox denied.
    pub denials: Vec<Denial>,
    /// Places on the way to a failure that changed lately.
    pub changed: Vec<ChangedPlace>,
}

impl FailureAnalysis {
    /// Of several projects. A cause is common to all that failed only if no other has one.
    pub fn together<'a>(analyses: impl Iterator<Item = &'a Self>) -> Self {
        let mut whole = Self::default();
        let mut causes = Vec::new();
        for analysis in analyses {
            let one = analysis.clone();
            whole.failed_tests.extend(one.failed_tests);
            whole.error_patterns.extend(one.error_patterns);
            whole.suggestions.extend(one.suggestions);
            whole.affected_files.extend(one.affected_files);
            whole.groups.extend(one.groups);
            whole.cascades.extend(one.cascades);
            whole.denials.extend(one.denials);
            whole.changed.extend(one.changed);
            causes.extend(one.root_cause);
        }
        whole.root_cause = causes.pop().filter(|_| causes.is_empty());
        whole
    }

    /// The cause, unless the first group or a denial says as much.
    pub(crate) fn cause_beyond_the_first(&self) -> Option<&str> {
        let cause = self.root_cause.as_deref()?;
        let first = self.groups.first()?;
        let told = !self.denials.is_empty() || self.groups.len() == 1 || cause.contains(&first.message);
        (!told).then_some(cause)
    }
}

/// A test that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FailedTest {
    /// As its runner calls it.
    pub name: String,
    /// Its package, class or file.
    pub package: String,
    /// How it ended.
    pub status: TestStatus,
    /// The line of its message that says what happened.
    pub error: String,
    /// Where to look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// What kind of failure it is.
    #[serde(rename = "type")]
    pub pattern: FailurePattern,
    /// What it has to do with the latest changes, if those are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relation: Option<Relation>,
}

/// A message that came once or more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ErrorPattern {
    /// What kind of failure it is.
    #[serde(rename = "type")]
    pub pattern: FailurePattern,
    /// The message; of several, what they have in common.
    pub message: String,
    /// How often it came.
    pub frequency: u64,
    /// The tests it came from; not all of them if they are many.
    pub test_names: Vec<String>,
}

/// Failures that are one: the same kind, message and place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FailureGroup {
    /// What kind of failure it is.
    #[serde(rename = "type")]
    pub pattern: FailurePattern,
    /// What the first of them says.
    pub message: String,
    /// What it stands in the way of, if it is no failure of tests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<ProblemScope>,
    /// How many.
    pub frequency: u64,
    /// Which; not all of them if they are many.
    pub test_names: Vec<String>,
    /// Where to look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The function there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// What was expected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// What came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actual: Option<String>,
    /// What it has to do with the latest changes, if those are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relation: Option<Relation>,
    /// What to look at, with the facts that say why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
    /// What changed lately on the way to it, if anything did: `the line changed in the last commit`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<String>,
}

impl FailureGroup {
    /// The suggestion and the change as one.
    pub fn advice(&self) -> Option<String> {
        match (&self.suggestion, &self.change) {
            (Some(fact), Some(change)) => Some(format!("{fact}; {change}")),
            (fact, change) => fact.clone().or_else(|| change.clone()),
        }
    }

    /// Both values, if each fits on a line.
    pub(crate) fn short_values(&self) -> Option<(&str, &str)> {
        const SHORT: usize = 80;
        let (expected, actual) = (self.expected.as_deref()?.trim(), self.actual.as_deref()?.trim());
        let is_short = |text: &str| text.len() <= SHORT && !text.contains('\n');
        (is_short(expected) && is_short(actual)).then_some((expected, actual))
    }
}

/// Failures that only follow from another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cascade {
    /// What they follow from.
    pub cause: String,
    /// Where that is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// How many follow.
    pub frequency: u64,
    /// Which; not all of them if they are many.
    pub test_names: Vec<String>,
}

/// Looks at everything that failed.
pub fn analyse(report: &TestReport, context: &FailureContext<'_>) -> FailureAnalysis {
    let tree = Tree::of(report, context.root.map(Utf8Path::as_str));
    let all = Failing::all(report, &tree, context.withheld);
    let groups = groups(&all, context);
    let denials = denials(report, &all, context.withheld);
    let evidence = Evidence { report, all: &all, groups: &groups, denials: &denials, context };
    let told: Vec<FailureGroup> = groups.iter().map(|group| group.told(context)).collect();
    FailureAnalysis {
        failed_tests: all.iter().filter_map(|failing| failed_test(failing, context)).collect(),
        error_patterns: patterns(&all),
        suggestions: suggestions(&denials, &told),
        affected_files: affected_files(&groups, context),
        root_cause: root_cause(&evidence),
        cascades: cascades(&evidence),
        changed: changed(&groups, context),
        groups: told,
        denials,
    }
}

fn failed_test(failing: &Failing<'_>, context: &FailureContext<'_>) -> Option<FailedTest> {
    let Source::Test(test) = failing.source else { return None };
    let (file, line) = failing.place.clone().map_or((None, None), |(file, line)| (Some(file), Some(line)));
    let line = line.filter(|line| *line > 0);
    let relation = context.changes.zip(file.as_deref()).map(|(changes, file)| changes.relation(file, line));
    Some(FailedTest {
        name: test.name.clone(),
        package: test.package.clone(),
        status: test.status,
        error: failing.headline().to_owned(),
        file,
        line,
        pattern: failing.pattern,
        relation,
    })
}

/// What the sandbox denied, by kind and thing.
fn denials(report: &TestReport, all: &[Failing<'_>], withheld: Option<&Withheld>) -> Vec<Denial> {
    let mut denials: BTreeMap<(DenialKind, Option<&str>), Denial> = BTreeMap::new();
    for failing in all {
        let Some(denied) = &failing.denied else { continue };
        let denial = denials.entry((denied.kind, denied.what.as_deref())).or_insert_with(|| Denial {
            kind: denied.kind,
            what: denied.what.clone(),
            message: denied.line.clone(),
            frequency: 0,
            test_names: Vec::new(),
        });
        denial.frequency += 1;
        if denial.test_names.len() < NAMED && !failing.name.is_empty() {
            denial.test_names.push(failing.name.to_owned());
        }
    }
    let mut denials: Vec<Denial> = denials.into_values().collect();
    denials.sort_by_key(|denial| std::cmp::Reverse(denial.frequency));
    // A process that the kernel kills for its memory says nothing: only the limit's own counter tells.
    let killed =
        report.verdict == crate::Verdict::OutOfMemory && withheld.is_some_and(|it| it.memory.is_some());
    if killed && !denials.iter().any(|denial| denial.kind == DenialKind::Memory) {
        let message = String::new();
        denials.push(Denial {
            kind: DenialKind::Memory,
            what: None,
            message,
            frequency: 1,
            test_names: Vec::new(),
        });
    }
    denials
}

fn suggestions(denials: &[Denial], groups: &[FailureGroup]) -> Vec<String> {
    const MOST: usize = 20;
    let mut suggestions: Vec<String> = Vec::new();
    let all = denials.iter().map(Denial::words).chain(groups.iter().filter_map(FailureGroup::advice));
    for suggestion in all.take(MOST) {
        if !suggestions.contains(&suggestion) {
            suggestions.push(suggestion);
        }
    }
    suggestions
}

/// The files on the way to the failures: the changed before others, sources before tests, many failures before few.
fn affected_files(groups: &[Group<'_>], context: &FailureContext<'_>) -> Vec<String> {
    const MOST: usize = 20;
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for group in groups {
        let first = group.first();
        let place = first.place.iter().map(|(file, _)| file.as_str()).filter(|file| !crate::is_foreign(file));
        let mut files: Vec<&str> =
            first.frames.iter().map(|frame| frame.file.as_str()).chain(place).collect();
        files.sort_unstable();
        files.dedup();
        for file in files {
            *counts.entry(file).or_default() += group.members.len();
        }
    }
    let mut files: Vec<(&str, usize)> = counts.into_iter().collect();
    let changed =
        |file: &str| context.changes.is_some_and(|it| it.relation(file, None) != Relation::Unrelated);
    files.sort_by_key(|(file, count)| (!changed(file), is_test_file(file), std::cmp::Reverse(*count)));
    files.into_iter().take(MOST).map(|(file, _)| file.to_owned()).collect()
}

fn changed(groups: &[Group<'_>], context: &FailureContext<'_>) -> Vec<ChangedPlace> {
    const MOST: usize = 20;
    let Some(changes) = context.changes else { return Vec::new() };
    let mut places: Vec<ChangedPlace> = groups
        .iter()
        .flat_map(|group| &group.first().frames)
        .filter_map(|frame| changes.place(&frame.file, Some(frame.line)))
        .collect();
    places.sort_by(|a, b| (a.relation, &a.file, a.line).cmp(&(b.relation, &b.file, b.line)));
    places.dedup();
    places.truncate(MOST);
    places
}

#[cfg(test)]
mod tests;

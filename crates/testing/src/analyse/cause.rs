//! The one thing behind many failures, and which failures only follow from another.

use std::collections::HashMap;

use super::failing::{Failing, Source};
use super::group::{Group, NAMED, names};
use super::pattern::FailurePattern;
use super::suggest::{environment, place};
use super::tree::is_test_file;
use super::{Cascade, Denial, FailureContext};
use crate::{ProblemScope, TestReport, TestStatus, Verdict};

/// Everything that a cause is looked for in.
pub(super) struct Evidence<'e, 'a> {
    pub report: &'a TestReport,
    pub all: &'a [Failing<'a>],
    pub groups: &'e [Group<'a>],
    pub denials: &'e [Denial],
    pub context: &'e FailureContext<'e>,
}

/// What is behind the failures, the most telling explanation that covers at least half of them.
pub(super) fn root_cause(evidence: &Evidence<'_, '_>) -> Option<String> {
    let explanations: [fn(&Evidence<'_, '_>) -> Option<String>; 7] =
        [outside, denials, surroundings, build, set_up, shared_frame, same_failure];
    explanations.iter().find_map(|explain| explain(evidence))
}

/// The run was ended from outside, or never began.
fn outside(evidence: &Evidence<'_, '_>) -> Option<String> {
    let told = matches!(evidence.report.verdict, Verdict::RunnerMissing | Verdict::OutOfMemory);
    evidence.report.reasons.first().filter(|_| told).cloned()
}

fn denials(evidence: &Evidence<'_, '_>) -> Option<String> {
    let denied: u64 = evidence.denials.iter().map(|denial| denial.frequency).sum();
    let first = evidence.denials.first()?;
    (denied * 2 >= evidence.all.len() as u64).then(|| first.fact())
}

fn surroundings(evidence: &Evidence<'_, '_>) -> Option<String> {
    let of_machine: Vec<String> = evidence.all.iter().filter_map(environment).collect();
    if of_machine.len() * 2 < evidence.all.len() {
        return None;
    }
    let first = of_machine.first()?;
    let same = of_machine.iter().filter(|other| *other == first).count();
    Some(covering(first, same, evidence.all.len()))
}

fn build(evidence: &Evidence<'_, '_>) -> Option<String> {
    let is_build = |it: &&Group<'_>| matches!(it.first().source, Source::Problem(problem) if problem.scope == ProblemScope::Build);
    let mut errors = evidence.groups.iter().filter(is_build);
    let first = errors.clone().find(|group| group.first().place.is_some()).or_else(|| errors.next())?.first();
    let others = evidence.groups.iter().filter(is_build).count() - 1;
    let told = located(first, evidence.context);
    Some(match others {
        0 => format!("the build fails: {told}"),
        1 => format!("the build fails: {told} (and 1 other error)"),
        more => format!("the build fails: {told} (and {more} other errors)"),
    })
}

/// One fixture, hook or configuration that stands in the way of many tests.
fn set_up(evidence: &Evidence<'_, '_>) -> Option<String> {
    let group = evidence.groups.iter().find(|group| {
        let pattern = group.first().pattern;
        let of_many = group.members.len() > 1 || matches!(group.first().source, Source::Problem(_));
        matches!(
            pattern,
            FailurePattern::Setup
                | FailurePattern::Config
                | FailurePattern::Import
                | FailurePattern::Dependency
        ) && of_many
    })?;
    if group.members.len() * 2 < evidence.all.len() {
        return None;
    }
    Some(covering(&located(group.first(), evidence.context), group.members.len(), evidence.all.len()))
}

/// How many failures came through a place.
struct Passed {
    by: usize,
    /// The last of them: a recursion passes often and counts once.
    last: usize,
    /// How near to the end of a stack.
    depth: usize,
    order: usize,
}

/// A line of the project's sources that most of the failures passed through.
fn shared_frame(evidence: &Evidence<'_, '_>) -> Option<String> {
    let mut passed: HashMap<(&str, u32), Passed> = HashMap::new();
    for (order, failing) in evidence.all.iter().enumerate() {
        for (depth, frame) in failing.frames.iter().filter(|frame| !is_test_file(&frame.file)).enumerate() {
            let new = Passed { by: 0, last: usize::MAX, depth, order };
            let passed = passed.entry((frame.file.as_str(), frame.line)).or_insert(new);
            passed.by += usize::from(passed.last != order);
            passed.last = order;
            passed.depth = passed.depth.min(depth);
        }
    }
    let best = passed.iter().max_by_key(|(place, it)| {
        (it.by, std::cmp::Reverse((it.depth, it.order)), std::cmp::Reverse(**place))
    });
    let ((file, line), Passed { by: count, .. }) = best?;
    let largest = evidence.groups.iter().map(|group| group.members.len()).max().unwrap_or(0);
    if *count < 2 || count * 2 < evidence.all.len() || largest >= *count {
        return None;
    }
    let frames = evidence.all.iter().flat_map(|failing| &failing.frames);
    let function = frames
        .filter(|it| it.file == *file && it.line == *line)
        .map(|it| it.function)
        .find(|it| !it.is_empty());
    let function = function.map_or(String::new(), |function| format!(" in `{function}`"));
    let text = format!("{count} of {} failures come through {file}:{line}{function}", evidence.all.len());
    Some(with_change(text, Some((file, *line)), evidence.context))
}

fn same_failure(evidence: &Evidence<'_, '_>) -> Option<String> {
    let group = evidence.groups.iter().max_by_key(|group| group.members.len())?;
    let (count, all) = (group.members.len(), evidence.all.len());
    if count * 2 < all || (count == 1 && all > 1) {
        return None;
    }
    Some(covering(&located(group.first(), evidence.context), count, all))
}

fn covering(text: &str, count: usize, all: usize) -> String {
    if all == 1 { text.to_owned() } else { format!("{text} ({count} of {all} failures)") }
}

/// What a failure says, and where.
fn located(failing: &Failing<'_>, context: &FailureContext<'_>) -> String {
    let headline = failing.headline().trim_end_matches('.');
    let text = match place(failing) {
        Some(place) => format!("{place}: {headline}"),
        None if failing.name.is_empty() => headline.to_owned(),
        None => format!("{}: {headline}", failing.name),
    };
    with_change(text, failing.place.as_ref().map(|(file, line)| (file.as_str(), *line)), context)
}

fn with_change(text: String, place: Option<(&str, u32)>, context: &FailureContext<'_>) -> String {
    let changed = place.and_then(|(file, line)| context.changes?.place(file, Some(line)));
    match changed {
        Some(place) if place.relation == crate::Relation::InChangedLine => {
            format!("{text}; the line {}", place.words)
        }
        Some(place) => format!("{text}; the file {}", place.words),
        None => text,
    }
}

/// Who only follows from whom.
pub(super) fn cascades(evidence: &Evidence<'_, '_>) -> Vec<Cascade> {
    let mut cascades: Vec<Cascade> = evidence.groups.iter().filter_map(follow_from_one).collect();
    cascades.extend(evidence.all.iter().filter_map(|failing| not_run_because(failing, evidence.report)));
    if let Some(build) = dependants(evidence) {
        cascades.push(build);
    }
    if cascades.is_empty() {
        cascades.extend(cut_short(evidence));
    }
    cascades
}

/// Several files or tests that could not begin for one and the same reason, at one place.
fn follow_from_one(group: &Group<'_>) -> Option<Cascade> {
    let first = group.first();
    let never_began = matches!(first.source, Source::Problem(_)) || first.pattern == FailurePattern::Setup;
    (never_began && group.members.len() > 1)
        .then(|| cascade(first, group.members.len() as u64, names(&group.members)))
}

fn cascade(cause: &Failing<'_>, frequency: u64, test_names: Vec<String>) -> Cascade {
    let (file, line) = cause.place.clone().map_or((None, None), |(file, line)| (Some(file), Some(line)));
    Cascade {
        cause: cause.headline().to_owned(),
        file,
        line: line.filter(|line| *line > 0),
        frequency,
        test_names,
    }
}

/// Tests that never began, or that failed in the words of their group's own error.
fn not_run_because(failing: &Failing<'_>, report: &TestReport) -> Option<Cascade> {
    let Source::Problem(problem) = failing.source else { return None };
    if problem.scope != ProblemScope::Suite || problem.name.is_empty() {
        return None;
    }
    let belongs = |package: &str, file: Option<&str>, name: &str| {
        package == problem.name
            || (file.is_some() && file == problem.file.as_deref() && problem.name == file.unwrap_or_default())
            || name
                .strip_prefix(problem.name.as_str())
                .is_some_and(|rest| rest.starts_with([' ', '.', ':', '/']))
    };
    let headline = failing.headline();
    let owned: Vec<&str> = report
        .tests
        .iter()
        .filter(|test| belongs(&test.package, test.file.as_deref(), &test.name))
        .filter(|test| {
            let repeats = test.status.is_failure() && !headline.is_empty() && test.error.contains(headline);
            test.status == TestStatus::NotRun || repeats
        })
        .map(|test| test.name.as_str())
        .collect();
    let named = owned.iter().take(NAMED).map(|name| (*name).to_owned()).collect();
    (!owned.is_empty()).then(|| cascade(failing, owned.len() as u64, named))
}

/// Packages that could not be built since another could not.
fn dependants(evidence: &Evidence<'_, '_>) -> Option<Cascade> {
    let of_build = |it: &&Failing<'_>| matches!(it.source, Source::Problem(problem) if problem.scope == ProblemScope::Build);
    let cause = evidence.all.iter().filter(of_build).find(|it| it.place.is_some())?;
    let others: Vec<&Failing<'_>> = evidence
        .all
        .iter()
        .filter(of_build)
        .filter(|it| it.place.is_none() && it.name != cause.name)
        .collect();
    (!others.is_empty()).then(|| cascade(cause, others.len() as u64, names(&others)))
}

/// Tests that never began since the process died or was stopped in another.
fn cut_short(evidence: &Evidence<'_, '_>) -> Option<Cascade> {
    let not_run = evidence.report.summary.not_run;
    let last = evidence.all.iter().rfind(|it| {
        matches!(it.source, Source::Test(test) if matches!(test.status, TestStatus::Crash | TestStatus::Timeout))
    })?;
    let waiting = evidence.report.tests.iter().filter(|test| test.status == TestStatus::NotRun);
    let named = waiting.take(NAMED).map(|test| test.name.clone()).collect();
    (not_run > 0).then(|| Cascade {
        cause: format!("`{}`: {}", last.name, last.headline()),
        ..cascade(last, not_run, named)
    })
}

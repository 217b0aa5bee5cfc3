//! What a person reads at the end of a run.

mod difference;
mod styled;

use difference::difference;
pub use styled::{Mark, StyledText};

use crate::analyse::FailureGroup;
use crate::text::strip_ansi;
use crate::words::{count, duration, one_line, plain_line};
use crate::{
    AgainstBase, Comparison, Denial, FailureAnalysis, TestCase, TestReport, TestStatus, TestSummary, Verdict,
    rerun_command,
};

/// What there is to say beside the report and its analysis.
#[derive(Debug, Clone, Copy, Default)]
pub struct SummaryExtras<'a> {
    /// What the reader should know: layers that the sandbox lacked, options that had no effect.
    pub notes: &'a [String],
    /// The comparison with a base.
    pub comparison: Option<&'a Comparison>,
    /// The command to run next, if it is not the usual one.
    pub next: Option<&'a str>,
}

/// Of the groups of failures so many are shown whole.
const SHOWN: usize = 20;
/// Of one message so many lines.
const MESSAGE_LINES: usize = 12;
/// A line longer than this is cut: a terminal shows a few times its width at most.
const LINE: usize = 300;
/// Only tests slower than this are worth a word.
const SLOW_MS: u64 = 1000;

/// The text, with marks on what matters.
pub fn summary(report: &TestReport, analysis: &FailureAnalysis, extras: &SummaryExtras<'_>) -> StyledText {
    let mut text = StyledText::default();
    for (number, group) in analysis.groups.iter().take(SHOWN).enumerate() {
        failure(&mut text, number + 1, group, report, extras.comparison);
    }
    if analysis.groups.len() > SHOWN {
        let more = analysis.groups.len() - SHOWN;
        text.line(
            Mark::Quiet,
            &format!("… and {}", count(more as u64, "other kind of failure", "other kinds of failure")),
        );
        text.end_line();
    }
    flaky(&mut text, report);
    counts(&mut text, report);
    reasons(&mut text, report, analysis);
    chosen(&mut text, report);
    behind(&mut text, analysis);
    slowest(&mut text, &report.tests);
    if let Some(comparison) = extras.comparison {
        text.line(Mark::Plain, comparison.to_string().trim_end());
    }
    for note in extras.notes {
        labelled(&mut text, "note", note, Mark::Quiet);
    }
    next(&mut text, report, extras);
    text
}

fn failure(
    text: &mut StyledText,
    number: usize,
    group: &FailureGroup,
    report: &TestReport,
    comparison: Option<&Comparison>,
) {
    text.push(Mark::Quiet, &format!("{number:>3}. "));
    text.push(Mark::Bad, &names(group));
    if let (Some(file), line) = (&group.file, group.line) {
        let line = line.map_or(String::new(), |line| format!(":{line}"));
        text.push(Mark::Quiet, "  ");
        text.push(Mark::Strong, &format!("{}{line}", one_line(file, LINE)));
    }
    if let Some(word) = comparison.and_then(|comparison| standing(group, report, comparison)) {
        text.push(Mark::Caution, &format!("  {word}"));
    }
    text.end_line();
    let test = first_test(report, group);
    let message = test.map_or(group.message.as_str(), |test| test.error.as_str());
    message_lines(text, if message.is_empty() { &group.message } else { message });
    let told = tells_values(message, group);
    if let (Some(expected), Some(actual)) = (&group.expected, &group.actual)
        && !told
    {
        difference(text, expected, actual);
    }
    if let Some(advice) = advice(group, told) {
        text.line(Mark::Caution, &format!("     → {}", one_line(&advice, LINE)));
    }
    text.end_line();
}

/// Whether a message shows both values, or their difference, itself.
fn tells_values(message: &str, group: &FailureGroup) -> bool {
    let has = |value: &Option<String>| value.as_deref().is_some_and(|value| message.contains(value));
    let starts = |mark: &str| message.lines().any(|line| line.starts_with(mark));
    (has(&group.expected) && has(&group.actual)) || (starts("-") && starts("+"))
}

/// What is to be said beyond the message: a fact that it does not hold, and what changed.
fn advice(group: &FailureGroup, values_told: bool) -> Option<String> {
    let message = group.message.trim_end_matches('.');
    let repeats = |fact: &str| {
        let only_values = values_told && group.expected.is_some() && !fact.contains('`');
        only_values || (!message.is_empty() && fact.ends_with(message))
    };
    match group.suggestion.as_deref() {
        Some(fact) if repeats(fact) => group.change.clone(),
        _ => group.advice(),
    }
}

fn names(group: &FailureGroup) -> String {
    let named = |name: &String| one_line(name, 120);
    let kind = || group.pattern.name().replace('_', " ");
    match (group.test_names.as_slice(), group.frequency) {
        ([], _) => kind(),
        ([name], 0 | 1) => named(name),
        ([first, second, ..], 2) => format!("{}, {}", named(first), named(second)),
        ([first, ..], many) => format!("{} and {} more", named(first), many - 1),
    }
}

fn standing(group: &FailureGroup, report: &TestReport, comparison: &Comparison) -> Option<&'static str> {
    let failed =
        |test: &&TestCase| group.test_names.contains(&test.name) && crate::analyse::failed(test.status);
    let tests = report.tests.iter().filter(failed).filter(|_| group.scope.is_none());
    let standings: Vec<_> = tests.filter_map(|test| comparison.of(&test.package, &test.name)).collect();
    let has = |which| standings.contains(&which);
    match (has(AgainstBase::New), has(AgainstBase::Known)) {
        (true, true) => Some("new in part"),
        (true, false) => Some("new"),
        (false, true) => Some("failed before"),
        (false, false) => None,
    }
}

fn first_test<'a>(report: &'a TestReport, group: &FailureGroup) -> Option<&'a TestCase> {
    let name = group.test_names.first().filter(|_| group.scope.is_none())?;
    report.tests.iter().find(|test| test.name == *name && crate::analyse::failed(test.status))
}

fn message_lines(text: &mut StyledText, message: &str) {
    let message = strip_ansi(message);
    let lines: Vec<&str> = message.lines().filter(|line| !line.trim().is_empty()).collect();
    for line in lines.iter().take(MESSAGE_LINES) {
        text.line(Mark::Plain, &format!("     {}", plain_line(line, LINE)));
    }
    if lines.len() > MESSAGE_LINES {
        let more = (lines.len() - MESSAGE_LINES) as u64;
        text.line(Mark::Quiet, &format!("     … {}", count(more, "more line", "more lines")));
    }
}

fn flaky(text: &mut StyledText, report: &TestReport) {
    const NAMED: usize = 5;
    let flaky: Vec<&TestCase> = report.tests.iter().filter(|test| test.status == TestStatus::Flaky).collect();
    for test in flaky.iter().take(NAMED) {
        let attempts = test.attempts.map_or(String::new(), |attempts| format!(" (attempt {attempts})"));
        labelled(
            text,
            "flaky",
            &format!("{} failed, then passed{attempts}", one_line(&test.name, 120)),
            Mark::Caution,
        );
    }
    if flaky.len() > NAMED {
        labelled(text, "flaky", &format!("{} more", flaky.len() - NAMED), Mark::Caution);
    }
}

fn counts(text: &mut StyledText, report: &TestReport) {
    let mark = if report.success { Mark::Good } else { Mark::Bad };
    text.push(mark, &report.verdict.name().replace('_', " ").to_uppercase());
    text.push(Mark::Plain, &format!("  {}  ", report.framework));
    if report.verdict == Verdict::Unaffected {
        text.push(Mark::Plain, "the change reaches no tests");
        return text.end_line();
    }
    if report.success && report.summary.total == 0 {
        text.push(Mark::Plain, "the command ended well, and named no tests");
    } else if report.summary.total + report.summary.not_run == 0 {
        text.push(Mark::Plain, "no tests ran");
    } else {
        text.push(Mark::Plain, &counted(&report.summary));
    }
    text.push(Mark::Quiet, &format!(" in {}", duration(report.duration)));
    text.end_line();
}

/// Which tests were chosen, and what was left out.
fn chosen(text: &mut StyledText, report: &TestReport) {
    let Some(affected) = &report.affected else { return };
    if report.verdict != Verdict::Unaffected {
        labelled(text, "chosen", &one_line(&affected.words(), LINE), Mark::Plain);
    }
    if let Some(skipped) = affected.skipped_words() {
        labelled(text, "skipped", &one_line(&skipped, LINE), Mark::Quiet);
    }
}

fn counted(summary: &TestSummary) -> String {
    let parts = [
        (summary.passed, "passed"),
        (summary.failed, "failed"),
        (summary.timed_out, "stopped"),
        (summary.skipped, "skipped"),
        (summary.xfailed, "failed as declared"),
        (summary.not_run, "not run"),
    ];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, what)| format!("{number} {what}"))
        .collect();
    format!("{}: {}", count(summary.total, "test", "tests"), parts.join(", "))
}

/// That tests failed is seen above; everything else that speaks against the run is said.
fn reasons(text: &mut StyledText, report: &TestReport, analysis: &FailureAnalysis) {
    let failed = count(report.summary.failed, "test failed", "tests failed");
    let denied: Vec<String> = analysis.denials.iter().map(Denial::fact).collect();
    let seen = |reason: &&String| **reason == failed || denied.contains(reason);
    for reason in report.reasons.iter().filter(|reason| !seen(reason)) {
        let mark = if report.success { Mark::Plain } else { Mark::Bad };
        labelled(text, "why", &one_line(reason, LINE), mark);
    }
    if report.partial && !report.success && report.verdict != Verdict::RunnerMissing {
        labelled(text, "why", "the run did not come to its own end: tests may be missing", Mark::Caution);
    }
}

fn behind(text: &mut StyledText, analysis: &FailureAnalysis) {
    if let Some(cause) = analysis.cause_beyond_the_first() {
        labelled(text, "cause", &one_line(cause, LINE), Mark::Strong);
    }
    for cascade in &analysis.cascades {
        let others = count(cascade.frequency, "other follows", "others follow");
        labelled(text, "cause", &format!("{others} from: {}", one_line(&cascade.cause, 160)), Mark::Plain);
    }
    for denial in &analysis.denials {
        labelled(text, "denied", &one_line(&denial.words(), LINE), Mark::Caution);
    }
}

fn slowest(text: &mut StyledText, tests: &[TestCase]) {
    const NAMED: usize = 3;
    let mut slow: Vec<&TestCase> = tests.iter().filter(|test| test.duration >= SLOW_MS).collect();
    slow.sort_by_key(|test| std::cmp::Reverse(test.duration));
    let told: Vec<String> = slow
        .iter()
        .take(NAMED)
        .map(|test| format!("{} ({})", one_line(&test.name, 60), duration(test.duration)))
        .collect();
    if !told.is_empty() {
        labelled(text, "slow", &told.join(", "), Mark::Quiet);
    }
}

fn next(text: &mut StyledText, report: &TestReport, extras: &SummaryExtras<'_>) {
    if let Some(log) = report.raw_output_file.as_ref().filter(|_| !report.success) {
        labelled(text, "log", log, Mark::Quiet);
    }
    let usual = || if report.success { None } else { rerun_command(report) };
    if let Some(command) = extras.next.map(str::to_owned).or_else(usual) {
        labelled(text, "next", &command, Mark::Strong);
    }
}

fn labelled(text: &mut StyledText, label: &str, words: &str, mark: Mark) {
    text.push(Mark::Quiet, &format!("{label:>7}: "));
    text.push(mark, words);
    text.end_line();
}

#[cfg(test)]
mod tests;

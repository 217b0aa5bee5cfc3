//! A run's result for a model: failures first, each once, within a budget.

use std::fmt::Write;

use crate::analyse::FailureGroup;
use crate::text::strip_ansi;
use crate::words::{duration, one_line};
use crate::{FailureAnalysis, FailurePattern, TestCase, TestReport, Verdict, rerun_command};

/// How long it may become.
#[derive(Debug, Clone, Copy)]
pub struct AgentBudget {
    /// In tokens, at four bytes each.
    pub tokens: u32,
    /// The size of what the runner itself printed, if that is known: nobody needs a summary that is longer.
    pub runner_text: Option<u64>,
}

impl Default for AgentBudget {
    fn default() -> Self {
        Self { tokens: 2000, runner_text: None }
    }
}

const BYTES_PER_TOKEN: usize = 4;
/// Ten failures fit into this, and one gets as much if it needs it.
const FEW_FAILURES: usize = 1500;
/// What each failure beyond the tenth adds.
const ONE_MORE: usize = 100;

/// The report.
pub fn agent_report(report: &TestReport, analysis: &FailureAnalysis, budget: AgentBudget) -> String {
    let groups = analysis.groups.len();
    let wanted = FEW_FAILURES + groups.saturating_sub(10) * ONE_MORE;
    let tokens = usize::try_from(budget.tokens).unwrap_or(usize::MAX).saturating_mul(BYTES_PER_TOKEN);
    let own = budget.runner_text.map_or(usize::MAX, |size| usize::try_from(size).unwrap_or(usize::MAX));
    let room = wanted.min(tokens).min(own);
    let page = |detail: &Detail, shown: usize| page(report, analysis, detail, shown);
    if let Some(fits) = DETAILS.iter().map(|detail| page(detail, groups)).find(|text| text.len() <= room) {
        return fits;
    }
    // Not even the names of all fit: as many as do.
    let least = &DETAILS[DETAILS.len() - 1];
    let (mut fits, mut too_many) = (0, groups);
    while too_many - fits > 1 {
        let middle = usize::midpoint(fits, too_many);
        if page(least, middle).len() <= room { fits = middle } else { too_many = middle }
    }
    page(least, fits)
}

/// How much is told of each failure, in bytes.
struct Detail {
    name: usize,
    error: usize,
    values: usize,
    suggestion: usize,
    output: usize,
    /// The rest: cause, command, log.
    closing: Closing,
}

#[derive(PartialEq, PartialOrd)]
enum Closing {
    Nothing,
    Log,
    Rerun,
    Cause,
}

/// From the most to the least.
static DETAILS: [Detail; 7] = [
    Detail { name: 200, error: 400, values: 200, suggestion: 300, output: 400, closing: Closing::Cause },
    Detail { name: 160, error: 240, values: 120, suggestion: 240, output: 0, closing: Closing::Cause },
    Detail { name: 120, error: 140, values: 0, suggestion: 160, output: 0, closing: Closing::Cause },
    Detail { name: 90, error: 90, values: 0, suggestion: 90, output: 0, closing: Closing::Rerun },
    Detail { name: 70, error: 60, values: 0, suggestion: 0, output: 0, closing: Closing::Rerun },
    Detail { name: 60, error: 30, values: 0, suggestion: 0, output: 0, closing: Closing::Log },
    Detail { name: 50, error: 0, values: 0, suggestion: 0, output: 0, closing: Closing::Nothing },
];

fn page(report: &TestReport, analysis: &FailureAnalysis, detail: &Detail, shown: usize) -> String {
    let mut page = heading(report);
    let mut number = 0;
    for (title, of_problems) in [("Errors:", true), ("Failed Tests:", false)] {
        let mut groups = analysis
            .groups
            .iter()
            .take(shown)
            .filter(|group| group.scope.is_some() == of_problems)
            .peekable();
        if groups.peek().is_some() {
            let _ = write!(page, "\n{title}\n");
        }
        for group in groups {
            number += 1;
            let _ = write!(page, "{number}. {}", entry(report, group, detail));
        }
    }
    let told: u64 = analysis.groups.iter().take(shown).map(|group| group.frequency).sum();
    let problems = report.build_errors.len() + report.suite_errors.len() + report.run_errors.len();
    let all = report.summary.failed + report.summary.timed_out + problems as u64;
    if all > told {
        let _ = writeln!(page, "… and {} more", all - told);
    }
    closing(&mut page, report, analysis, &detail.closing);
    page
}

fn heading(report: &TestReport) -> String {
    let summary = &report.summary;
    let status = report.verdict.name().replace('_', " ").to_uppercase();
    let counts = match (summary.total, summary.skipped) {
        (0, _) => "no tests ran".to_owned(),
        (total, 0) => format!("{}/{total} passed", summary.passed),
        (total, skipped) => format!("{}/{total} passed, {skipped} skipped", summary.passed),
    };
    let mut heading = format!(
        "Test execution completed:\nFramework: {}\nStatus: {status} ({counts})\nDuration: {}\n",
        report.framework,
        duration(report.duration)
    );
    let plain = matches!(
        report.verdict,
        Verdict::Passed | Verdict::Failed | Verdict::BuildFailed | Verdict::CollectFailed
    );
    if let Some(reason) = report.reasons.first().filter(|_| !plain) {
        let _ = writeln!(heading, "Reason: {}", one_line(reason, 160));
    }
    if let Some(affected) = report.affected.as_ref().filter(|_| report.verdict != Verdict::Unaffected) {
        let _ = writeln!(heading, "Chosen: {}", one_line(&affected.words(), 160));
    }
    if let Some(earlier) = &report.earlier_run {
        let _ = writeln!(heading, "Not run again: nothing changed since run {}", earlier.run);
    }
    heading
}

fn entry(report: &TestReport, group: &FailureGroup, detail: &Detail) -> String {
    let mut entry = title(group, detail.name);
    let error = error(group);
    if detail.error > 0 && !error.is_empty() {
        let _ = writeln!(entry, "   Error: {}", one_line(&error, detail.error));
    }
    if detail.values > 0
        && group.short_values().is_none()
        && let (Some(expected), Some(actual)) = (&group.expected, &group.actual)
    {
        let _ = writeln!(entry, "   Expected: {}", one_line(expected, detail.values));
        let _ = writeln!(entry, "   Actual: {}", one_line(actual, detail.values));
    }
    if detail.suggestion > 0
        && let Some(suggestion) = beyond(&error, group)
    {
        let _ = writeln!(entry, "   Suggestion: {}", one_line(&suggestion, detail.suggestion));
    }
    if detail.output > 0
        && let Some(test) = first_test(report, group)
    {
        push_output(&mut entry, &test.output, &error, detail.output);
    }
    entry
}

/// What happened, with both values if they are short. A matcher's name without them says nothing.
fn error(group: &FailureGroup) -> String {
    let message = group.message.strip_prefix("Error: ").unwrap_or(&group.message);
    match group.short_values() {
        Some((expected, actual)) if !(message.contains(expected) && message.contains(actual)) => {
            let values = format!("expected {expected}, got {actual}");
            let is_matcher = message.is_empty() || message.starts_with("expect(");
            if is_matcher { values } else { format!("{message}: {values}") }
        }
        _ => message.to_owned(),
    }
}

/// `TestX and 3 more (file:line)`; of an error outside of tests its place is its name.
fn title(group: &FailureGroup, room: usize) -> String {
    let place = match (&group.file, group.line) {
        (Some(file), Some(line)) => format!("{file}:{line}"),
        (Some(file), None) => file.clone(),
        (None, _) => String::new(),
    };
    let name = group.test_names.first().map_or("", String::as_str);
    let more = group.frequency.saturating_sub(1);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let name = one_line(name, room);
    let place = one_line(&place, room);
    match (name.is_empty(), place.is_empty()) {
        (true, true) => format!("{}{more}\n", group.pattern.name().replace('_', " ")),
        (true, false) => format!("{place}{more}\n"),
        (false, true) => format!("{name}{more}\n"),
        (false, false) if name == place || place.starts_with(&format!("{name}:")) => {
            format!("{place}{more}\n")
        }
        (false, false) => format!("{name}{more} ({place})\n"),
    }
}

/// What is to be said beyond the title and the error above it.
fn beyond(error: &str, group: &FailureGroup) -> Option<String> {
    let fact = group.suggestion.as_deref().and_then(|fact| {
        let place = group.file.as_deref().zip(group.line).map(|(file, line)| format!("{file}:{line}: "));
        let fact = place.and_then(|place| fact.strip_prefix(&place)).unwrap_or(fact);
        let message = group.message.trim_end_matches('.');
        if let Some((_, quoted)) = fact.split_once(message).filter(|_| !message.is_empty()) {
            // Only the line of source is left.
            return Some(quoted.trim().trim_matches(['(', ')'])).filter(|quoted| !quoted.is_empty());
        }
        // The error says the same, unless a function or the line of source is named.
        let is_restated = matches!(
            group.pattern,
            FailurePattern::Index
                | FailurePattern::Nil
                | FailurePattern::Timeout
                | FailurePattern::UnexpectedPass
        );
        if is_restated && !fact.contains(" in `") && !fact.contains("(`") {
            return None;
        }
        let told = |(expected, actual): (&str, &str)| error.contains(expected) && error.contains(actual);
        let repeats = group.short_values().is_some_and(told) && !fact.contains('`');
        Some(fact).filter(|_| !repeats)
    });
    match (fact, &group.change) {
        (Some(fact), Some(change)) => Some(format!("{fact}; {change}")),
        (fact, change) => fact.map(str::to_owned).or_else(|| change.clone()),
    }
}

fn first_test<'a>(report: &'a TestReport, group: &FailureGroup) -> Option<&'a TestCase> {
    let name = group.test_names.first()?;
    report
        .tests
        .iter()
        .find(|test| test.name == *name && crate::analyse::failed(test.status) && group.scope.is_none())
}

/// The beginning and the end of what a test printed.
fn push_output(entry: &mut String, output: &str, error: &str, room: usize) {
    let output = strip_ansi(output);
    // What go test prints around a test, and what is its error already.
    let says_more = |line: &String| {
        !line.is_empty() && !line.starts_with("=== ") && !line.starts_with("--- ") && !line.ends_with(error)
    };
    let lines: Vec<String> = output.lines().map(|line| one_line(line, 120)).filter(says_more).collect();
    if lines.is_empty() {
        return;
    }
    entry.push_str("   Output:\n");
    let (mut head, mut tail, mut used) = (0, lines.len(), 0);
    while head < tail {
        let from_head = head <= lines.len() - tail;
        let next = if from_head { &lines[head] } else { &lines[tail - 1] };
        used += next.len() + "      ".len();
        if used > room {
            break;
        }
        if from_head { head += 1 } else { tail -= 1 }
    }
    for line in &lines[..head] {
        let _ = writeln!(entry, "      {line}");
    }
    if head < tail {
        let _ = writeln!(entry, "      … {} lines …", tail - head);
    }
    for line in &lines[tail..] {
        let _ = writeln!(entry, "      {line}");
    }
}

fn closing(page: &mut String, report: &TestReport, analysis: &FailureAnalysis, upto: &Closing) {
    let mut lines = Vec::new();
    if *upto >= Closing::Cause {
        lines.extend(
            analysis.cause_beyond_the_first().map(|cause| format!("Cause: {}", one_line(cause, 240))),
        );
    }
    if *upto >= Closing::Log {
        let denied = analysis.denials.first();
        lines.extend(denied.map(|denial| format!("Sandbox: {}", one_line(&denial.words(), 240))));
    }
    if *upto >= Closing::Rerun && !report.success {
        lines.extend(rerun_command(report).map(|command| format!("Rerun: {command}")));
    }
    if *upto >= Closing::Log && !report.success {
        lines.extend(report.raw_output_file.as_ref().map(|path| format!("Log: {path}")));
    }
    if !lines.is_empty() {
        let _ = write!(page, "\n{}\n", lines.join("\n"));
    }
}

#[cfg(test)]
mod tests;

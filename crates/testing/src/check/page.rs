//! A check as people and agents read it.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::{CheckReport, CheckVerdict, CheckedTests, DiagnosticCounts, StageReport};
use crate::analyse::FailureGroup;
use crate::summary::{Mark, StyledText};
use crate::words::{count, duration, one_line, plain_line};
use crate::{Diagnostic, Severity, Verdict};

/// Of one tool so many diagnostics are shown to people; all that are kept are in the document.
const SHOWN: usize = 100;
const LINE: usize = 400;
const BYTES_PER_TOKEN: usize = 4;

/// For people: what each tool said, grouped by file, and a line for each tool at the end.
pub fn check_page(report: &CheckReport) -> StyledText {
    let mut text = StyledText::default();
    for stage in &report.stages {
        said_by(&mut text, stage);
    }
    for tests in &report.tests {
        failures(&mut text, tests);
    }
    for stage in &report.stages {
        outcome(&mut text, stage.name.name(), &stage.tool, &stage.root, stage.verdict, &of_stage(stage));
    }
    for tests in &report.tests {
        outcome(&mut text, "test", tests.framework.name(), "", tests.verdict.into(), &of_tests(tests));
    }
    for line in not_run(report) {
        text.push(Mark::Caution, "–");
        text.line(Mark::Plain, &format!(" {line}"));
    }
    let notes =
        report.stages.iter().flat_map(|stage| stage.notes.iter().map(move |note| (&stage.tool, note)));
    for (tool, note) in notes {
        text.line(Mark::Quiet, &format!("note: {tool}: {}", one_line(note, LINE)));
    }
    for note in &report.notes {
        text.line(Mark::Quiet, &format!("note: {}", one_line(note, LINE)));
    }
    text
}

/// `✗ lint   eslint in web   failed, 2 errors (1.2s)`.
fn outcome(text: &mut StyledText, stage: &str, tool: &str, root: &str, verdict: CheckVerdict, told: &str) {
    let (mark, sign) = match verdict {
        CheckVerdict::Passed => (Mark::Good, "✓"),
        CheckVerdict::NothingToCheck | CheckVerdict::ToolMissing | CheckVerdict::Cancelled => {
            (Mark::Caution, "–")
        }
        CheckVerdict::TimedOut | CheckVerdict::Crashed | CheckVerdict::Failed => (Mark::Bad, "✗"),
    };
    let place = if root.is_empty() { String::new() } else { format!(" in {}", one_line(root, LINE)) };
    text.push(mark, sign);
    text.push(Mark::Strong, &format!(" {stage:<5} {tool}{place}"));
    text.line(Mark::Plain, &format!("  {}{told}", verdict.words()));
}

fn of_stage(stage: &StageReport) -> String {
    let mut told = String::new();
    let counts = counted(stage.counts);
    if !counts.is_empty() {
        let _ = write!(told, ", {counts}");
    }
    if let Some(reason) = &stage.reason {
        let _ = write!(told, ": {}", one_line(reason, LINE));
    }
    let _ = write!(told, " ({})", duration(stage.duration));
    told
}

fn of_tests(tests: &CheckedTests) -> String {
    let summary = &tests.summary;
    let passed = match summary.total {
        0 => String::new(),
        total => format!(", {}/{total} passed", summary.passed),
    };
    let told_by_failures = matches!(tests.verdict, Verdict::Passed | Verdict::Failed);
    let reason = tests.reasons.first().filter(|_| !told_by_failures);
    let reason = reason.map(|reason| format!(": {}", one_line(reason, LINE))).unwrap_or_default();
    format!("{passed}{reason} ({})", duration(tests.duration))
}

fn not_run(report: &CheckReport) -> impl Iterator<Item = String> + '_ {
    report.not_run.iter().map(|it| {
        let tools = if it.tools.is_empty() { String::new() } else { format!(" ({})", it.tools.join(", ")) };
        format!("{}{tools} did not run: {}", it.name.name(), one_line(&it.why, LINE))
    })
}

fn counted(counts: DiagnosticCounts) -> String {
    let of = [
        (counts.errors, "error", "errors"),
        (counts.warnings, "warning", "warnings"),
        (counts.notes, "note", "notes"),
    ];
    let said: Vec<String> = of
        .iter()
        .filter(|(number, ..)| *number > 0)
        .map(|(number, one, many)| count(*number, one, many))
        .collect();
    said.join(", ")
}

fn said_by(text: &mut StyledText, stage: &StageReport) {
    let mut shown = 0;
    for (file, diagnostics) in by_file(&stage.diagnostics) {
        for diagnostic in diagnostics {
            if shown == SHOWN {
                break;
            }
            shown += 1;
            text.push(Mark::Strong, &place(file, diagnostic));
            let mark = if diagnostic.severity == Severity::Error { Mark::Bad } else { Mark::Caution };
            text.push(mark, &format!(" {}", word(diagnostic.severity)));
            text.line(Mark::Plain, &format!(" {}", message(diagnostic, LINE)));
        }
    }
    let more = stage.counts.total() - shown as u64;
    if more > 0 {
        text.line(Mark::Quiet, &format!("… and {more} more of {}", stage.tool));
    }
    for line in stage.output.lines() {
        text.push(Mark::Quiet, "  │ ");
        text.line(Mark::Plain, &plain_line(line, LINE));
    }
    if let Some(file) = stage.output_file.as_deref().filter(|_| !stage.output.is_empty()) {
        text.line(Mark::Quiet, &format!("  all of it: {file}"));
    }
    if shown > 0 || !stage.output.is_empty() {
        text.end_line();
    }
}

/// Files in the order of their worst diagnostic, what is in each in the order of its lines.
fn by_file(diagnostics: &[Diagnostic]) -> Vec<(&str, Vec<&Diagnostic>)> {
    let mut order: Vec<&str> = Vec::new();
    let mut files: BTreeMap<&str, Vec<&Diagnostic>> = BTreeMap::new();
    for diagnostic in diagnostics {
        let file = diagnostic.file.as_deref().unwrap_or("");
        let of_file = files.entry(file).or_insert_with(|| {
            order.push(file);
            Vec::new()
        });
        of_file.push(diagnostic);
    }
    let sorted = |file| {
        let mut of_file = files.remove(file).unwrap_or_default();
        of_file.sort_by_key(|diagnostic| (diagnostic.line, diagnostic.column));
        (file, of_file)
    };
    order.into_iter().map(sorted).collect()
}

fn failures(text: &mut StyledText, tests: &CheckedTests) {
    for failure in &tests.failures {
        text.push(Mark::Strong, &failure_place(failure));
        text.push(Mark::Bad, " failed");
        text.line(Mark::Plain, &format!(" {}", failure_words(failure, LINE)));
    }
    if !tests.failures.is_empty() {
        text.line(Mark::Quiet, "`rehearsal test` says more of these");
        text.end_line();
    }
}

/// `src/lib.rs:3:5`.
fn place(file: &str, diagnostic: &Diagnostic) -> String {
    let file = if file.is_empty() { diagnostic.tool.as_str() } else { file };
    let number = |number: Option<u32>| number.map(|number| format!(":{number}")).unwrap_or_default();
    let column = diagnostic.column.filter(|_| diagnostic.line.is_some());
    format!("{}{}{}", one_line(file, LINE), number(diagnostic.line), number(column))
}

fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    }
}

fn message(diagnostic: &Diagnostic, room: usize) -> String {
    let code =
        diagnostic.code.as_deref().map(|code| format!(" [{}]", one_line(code, 80))).unwrap_or_default();
    format!("{}{code}", one_line(&diagnostic.message, room))
}

fn failure_place(failure: &FailureGroup) -> String {
    match (&failure.file, failure.line) {
        (Some(file), Some(line)) => format!("{}:{line}", one_line(file, LINE)),
        (Some(file), None) => one_line(file, LINE),
        (None, _) => "test".to_owned(),
    }
}

fn failure_words(failure: &FailureGroup, room: usize) -> String {
    let name = failure.test_names.first().map(|name| one_line(name, room / 2)).unwrap_or_default();
    let more = match failure.frequency {
        0 | 1 => String::new(),
        many => format!(" and {} more", many - 1),
    };
    let message = one_line(&failure.message, room);
    if message.is_empty() { format!("{name}{more}") } else { format!("{name}{more}: {message}") }
}

/// For agents: the verdict, then what is to be mended, the worst first, in at most so many tokens of four bytes.
pub fn check_page_for_agents(report: &CheckReport, tokens: u32) -> String {
    let room = usize::try_from(tokens).unwrap_or(usize::MAX).saturating_mul(BYTES_PER_TOKEN);
    let mut page = heading(report);
    let closing = closing(report);
    let mut left = 0;
    let mut lines = entries(report).into_iter().peekable();
    while let Some(line) = lines.peek() {
        /// For the word on what is left out.
        const MORE: usize = 32;
        if page.len() + line.len() + 1 + closing.len() + MORE > room {
            left = lines.len();
            break;
        }
        page.push_str(line);
        page.push('\n');
        lines.next();
    }
    let left = left as u64 + report.stages.iter().map(|stage| stage.left_out).sum::<u64>();
    if left > 0 {
        let _ = writeln!(page, "… and {left} more");
    }
    page + &closing
}

fn heading(report: &CheckReport) -> String {
    let mut heading = format!("Check: {}\n", report.verdict.words().to_uppercase());
    for stage in &report.stages {
        let place =
            if stage.root.is_empty() { String::new() } else { format!(" in {}", one_line(&stage.root, 80)) };
        let told = one_line(&of_stage(stage), 200);
        let separator = if told.starts_with('(') { " " } else { "" };
        let _ = writeln!(
            heading,
            "{} {}{place}: {}{separator}{told}",
            stage.name.name(),
            stage.tool,
            stage.verdict.words()
        );
    }
    for tests in &report.tests {
        let verdict = CheckVerdict::from(tests.verdict).words();
        let told = one_line(&of_tests(tests), 200);
        let separator = if told.starts_with('(') { " " } else { "" };
        let _ = writeln!(heading, "test {}: {verdict}{separator}{told}", tests.framework);
    }
    for line in not_run(report) {
        let _ = writeln!(heading, "{}", one_line(&line, 200));
    }
    heading
}

/// Each thing to mend on one line: of what is red, the tests that failed, and then what the others only mention.
fn entries(report: &CheckReport) -> Vec<String> {
    const ROOM: usize = 240;
    let (red, green): (Vec<_>, Vec<_>) =
        report.stages.iter().partition(|stage| stage.verdict != CheckVerdict::Passed);
    let of = |stages: Vec<&StageReport>| {
        let mut lines = Vec::new();
        for stage in stages {
            let telling = stage.diagnostics.iter().filter(|it| it.severity != Severity::Note);
            lines.extend(telling.map(|it| {
                let place = place(it.file.as_deref().unwrap_or(""), it);
                format!("{place}: {}: {}", word(it.severity), message(it, ROOM))
            }));
            lines.extend(stage.output.lines().map(|line| format!("| {}", plain_line(line, ROOM))));
        }
        lines
    };
    let failed = report.tests.iter().flat_map(|tests| &tests.failures);
    let failed = failed.map(|it| format!("{}: failed: {}", failure_place(it), failure_words(it, ROOM)));
    of(red).into_iter().chain(failed).chain(of(green)).collect()
}

fn closing(report: &CheckReport) -> String {
    let mut reds = report.stages.iter().filter(|stage| stage.verdict != CheckVerdict::Passed);
    let log = reds.find_map(|stage| stage.output_file.as_deref());
    log.map(|file| format!("Log: {}\n", plain_line(file, LINE))).unwrap_or_default()
}

//! What a parser said, in a few lines, for tests.

use super::{Format, Stream};
use crate::read::conclude;
use crate::{Collector, Ending, Limits};

/// Reads both streams in this format, as a run that ended with this status.
pub(super) fn told(format: &str, out: &str, err: &str, status: i32) -> String {
    let format = Format::named(format).unwrap();
    let ending = Ending::of_status(status);
    let mut collector = Collector::new(None, Limits::default());
    let mut parser = format.parser();
    parser.feed(Stream::Err, err.as_bytes(), &mut collector);
    parser.feed(Stream::Out, out.as_bytes(), &mut collector);
    parser.finish(&mut collector);
    let mut run = collector.finish(&ending);
    run.exit_decides = format.name == "generic";
    let report = conclude(format.framework, run, &ending, String::new());
    let summary = report.summary;
    let mut text = format!(
        "{}: {} of {} passed, {} skipped",
        report.verdict, summary.passed, summary.total, summary.skipped
    );
    for test in report.tests.iter().filter(|test| test.status != crate::TestStatus::Pass) {
        let status = serde_json::to_string(&test.status).unwrap();
        let at = test.file.as_ref().map(|file| format!(" at {file}:{}", test.line.unwrap_or(0)));
        let first = test.error.lines().next().unwrap_or_default();
        let suite = if test.package.is_empty() { String::new() } else { format!("[{}] ", test.package) };
        text += &format!(
            "\n{} {suite}{}{} ({first})",
            status.trim_matches('"'),
            test.name,
            at.unwrap_or_default()
        );
    }
    for problem in report.build_errors.iter().chain(&report.suite_errors).chain(&report.run_errors) {
        let first = problem.message.lines().next().unwrap_or_default();
        let at = problem.file.as_ref().map(|file| format!(" at {file}:{}", problem.line.unwrap_or(0)));
        text += &format!("\nproblem {}{} ({first})", problem.name, at.unwrap_or_default());
    }
    text
}

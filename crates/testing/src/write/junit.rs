//! `JUnit`'s XML, test by test.
//!
//! What the format has no word for stands in the `type` of its elements, so that our own parser reads back what was
//! written; problems outside of tests are tests in error to everyone else, so that no reader takes the run for good.

use std::fmt;
use std::io::{Result, Write};

use crate::{Problem, TestCase, TestReport, TestStatus};

/// Writes a report as `JUnit`'s XML. The tests are those that the report holds; its root counts all.
pub fn junit(report: &TestReport, to: &mut dyn Write) -> Result<()> {
    let summary = &report.summary;
    let problems =
        [("build", &report.build_errors), ("suite", &report.suite_errors), ("run", &report.run_errors)];
    let outside: usize = problems.iter().map(|(_, problems)| problems.len()).sum();
    let errors = outside as u64 + summary.errors + summary.crashed + summary.timed_out;
    writeln!(to, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
    writeln!(
        to,
        "<testsuites name=\"rehearsal\" tests=\"{}\" failures=\"{}\" errors=\"{errors}\" skipped=\"{}\" time=\"{}\">",
        summary.total + outside as u64,
        summary.failed.saturating_sub(summary.errors + summary.crashed),
        summary.skipped + summary.xfailed,
        Seconds(report.duration),
    )?;
    for tests in report.tests.chunk_by(|a, b| a.package == b.package) {
        suite(tests, to)?;
    }
    for (scope, problems) in problems {
        problem_suite(scope, problems, to)?;
    }
    writeln!(to, "</testsuites>")
}

fn suite(tests: &[TestCase], to: &mut dyn Write) -> Result<()> {
    let count = |wanted: fn(TestStatus) -> bool| tests.iter().filter(|test| wanted(test.status)).count();
    let time = tests.iter().fold(0u64, |sum, test| sum.saturating_add(test.duration));
    writeln!(
        to,
        "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{}\">",
        Attribute(tests.first().map_or("", |test| &test.package)),
        tests.len(),
        count(|status| status == TestStatus::Fail),
        count(|status| matches!(status, TestStatus::Error | TestStatus::Crash | TestStatus::Timeout)),
        count(|status| matches!(status, TestStatus::Skip | TestStatus::Xfail | TestStatus::NotRun)),
        Seconds(time),
    )?;
    for test in tests {
        case(test, to)?;
    }
    writeln!(to, "  </testsuite>")
}

fn case(test: &TestCase, to: &mut dyn Write) -> Result<()> {
    write!(
        to,
        "    <testcase name=\"{}\" classname=\"{}\" time=\"{}\"",
        Attribute(&test.name),
        Attribute(&test.package),
        Seconds(test.duration),
    )?;
    if let Some(file) = &test.file {
        write!(to, " file=\"{}\"", Attribute(file))?;
    }
    if let Some(line) = test.line {
        write!(to, " line=\"{line}\"")?;
    }
    if test.status == TestStatus::Pass && test.output.is_empty() {
        return writeln!(to, "/>");
    }
    writeln!(to, ">")?;
    if let Some((element, kind)) = element(test.status) {
        writeln!(
            to,
            "      <{element} message=\"{}\" type=\"{kind}\">{}</{element}>",
            Attribute(&test.error),
            Text(&test.stack_trace),
        )?;
    }
    if !test.output.is_empty() {
        writeln!(to, "      <system-out>{}</system-out>", Text(&test.output))?;
    }
    writeln!(to, "    </testcase>")
}

/// The element that tells a status, and its type.
fn element(status: TestStatus) -> Option<(&'static str, &'static str)> {
    match status {
        TestStatus::Pass => None,
        TestStatus::Fail => Some(("failure", "fail")),
        TestStatus::Error => Some(("error", "error")),
        TestStatus::Crash => Some(("error", "crash")),
        TestStatus::Timeout => Some(("error", "timeout")),
        TestStatus::Skip => Some(("skipped", "skip")),
        TestStatus::Xfail => Some(("skipped", "xfail")),
        TestStatus::NotRun => Some(("skipped", "not_run")),
        TestStatus::Flaky => Some(("flakyFailure", "flaky")),
    }
}

fn problem_suite(scope: &str, problems: &[Problem], to: &mut dyn Write) -> Result<()> {
    if problems.is_empty() {
        return Ok(());
    }
    let count = problems.len();
    writeln!(to, "  <testsuite name=\"{scope} errors\" tests=\"{count}\" errors=\"{count}\">")?;
    for problem in problems {
        let name = if problem.name.is_empty() { scope } else { &problem.name };
        write!(to, "    <testcase name=\"{}\" classname=\"rehearsal.{scope}\"", Attribute(name))?;
        if let Some(file) = &problem.file {
            write!(to, " file=\"{}\"", Attribute(file))?;
        }
        if let Some(line) = problem.line {
            write!(to, " line=\"{line}\"")?;
        }
        writeln!(to, ">")?;
        writeln!(to, "      <error message=\"{}\" type=\"{scope}\"/>", Attribute(&problem.message))?;
        writeln!(to, "    </testcase>")?;
    }
    writeln!(to, "  </testsuite>")
}

/// Milliseconds as the format has them.
struct Seconds(u64);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

/// A text between tags.
struct Text<'a>(&'a str);

/// A text between quotes, where line ends would become spaces.
struct Attribute<'a>(&'a str);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        escaped(self.0, &['&', '<', '>', '\r'], f)
    }
}

impl fmt::Display for Attribute<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        escaped(self.0, &['&', '<', '>', '"', '\n', '\r', '\t'], f)
    }
}

fn escaped(text: &str, special: &[char], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut rest = text;
    while let Some(at) = rest.find(|c| special.contains(&c) || !is_allowed(c)) {
        f.write_str(&rest[..at])?;
        let Some(c) = rest[at..].chars().next() else { break };
        match c {
            '&' => f.write_str("&amp;")?,
            '<' => f.write_str("&lt;")?,
            '>' => f.write_str("&gt;")?,
            '"' => f.write_str("&quot;")?,
            c if is_allowed(c) => write!(f, "&#{};", u32::from(c))?,
            // XML has no way to write it.
            _ => f.write_str("\u{fffd}")?,
        }
        rest = &rest[at + c.len_utf8()..];
    }
    f.write_str(rest)
}

fn is_allowed(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

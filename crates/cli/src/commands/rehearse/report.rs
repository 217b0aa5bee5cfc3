//! What is said of a scenario that was played.

use std::fmt::Write as _;
use std::io::Write as _;
use std::time::Duration;

use camino::Utf8Path;
use rehearsal_core::TestStatus;
use rehearsal_scenario::{Mismatch, Rehearsed, TimelineEntry};
use rehearsal_testing::{Framework, TestCase, TestReport};

use super::Played;
use crate::error::CliError;
use crate::ui::{BAD, BOLD, DIM, GOOD, styled};
use crate::words;

/// A scenario in a line; what is wrong with it, below; and what happened, if that is wanted.
pub(super) fn told(played: &Played, trace: bool) -> String {
    let rehearsed = &played.rehearsed;
    let verdict = if rehearsed.passed { styled(GOOD, "ok    ") } else { styled(BAD, "FAILED") };
    let elapsed = words::duration(Duration::from_millis(rehearsed.elapsed_ms));
    // Writing to a string cannot fail.
    let mut text = format!(
        "{verdict} {}  {}",
        styled(BOLD, &rehearsed.name),
        styled(DIM, format!("{elapsed} in {} ms", played.duration_ms)),
    );
    if !rehearsed.passed {
        let _ = write!(text, "\n  --> {}", played.file);
    }
    text.push_str(&wrong(rehearsed));
    if trace {
        text.push_str(&timeline(&rehearsed.timeline));
    }
    text
}

/// What is wrong, a line or more each.
fn wrong(rehearsed: &Rehearsed) -> String {
    let mut text = String::new();
    for problem in &rehearsed.problems {
        let _ = write!(text, "\n  {problem}");
    }
    for broken in &rehearsed.broken {
        let _ = write!(text, "\n  must never be: {broken}");
    }
    for mismatch in &rehearsed.mismatches {
        text.push_str(&difference(mismatch));
    }
    text
}

fn difference(mismatch: &Mismatch) -> String {
    let mut text = format!("\n  {}", mismatch.what);
    for (mark, side) in [("- expected", &mismatch.expected), ("+ found   ", &mismatch.found)] {
        let mut lines = side.lines();
        let _ = write!(text, "\n    {mark}: {}", lines.next().unwrap_or_default());
        for line in lines {
            let _ = write!(text, "\n                {line}");
        }
    }
    text
}

fn timeline(happenings: &[TimelineEntry]) -> String {
    let mut text = String::new();
    for TimelineEntry { at_ms, who, what } in happenings {
        let (seconds, millis) = (at_ms / 1000, at_ms % 1000);
        let at = format!("{:02}:{:02}:{:02}.{millis:03}", seconds / 3600, seconds / 60 % 60, seconds % 60);
        let _ = write!(text, "\n    {}  {who:<9} {what}", styled(DIM, at));
    }
    text
}

/// The last line.
pub(super) fn summary(passed: usize, failed: usize, elapsed: Duration) -> String {
    let passed = format!("{passed} passed");
    let failed = if failed == 0 {
        styled(GOOD, "none failed".to_owned())
    } else {
        styled(BAD, format!("{failed} failed"))
    };
    format!("\n{passed}, {failed}; {} rehearsed", words::duration(elapsed))
}

/// Writes a report as `JUnit` has it.
pub(super) fn junit(played: &[Played], path: &Utf8Path) -> Result<(), CliError> {
    let mut report = TestReport::empty(Framework::Several);
    report.tests = played.iter().map(case).collect();
    report.duration = played.iter().map(|played| played.duration_ms).sum();
    report.summary.total = played.len() as u64;
    report.summary.failed = played.iter().filter(|played| !played.rehearsed.passed).count() as u64;
    report.summary.passed = report.summary.total - report.summary.failed;
    let mut file = std::io::BufWriter::new(fs_err::File::create(path)?);
    rehearsal_testing::junit(&report, &mut file)?;
    Ok(file.flush()?)
}

fn case(played: &Played) -> TestCase {
    let rehearsed = &played.rehearsed;
    let told = wrong(rehearsed);
    let failed = TestCase {
        status: TestStatus::Fail,
        error: told.trim().lines().next().unwrap_or_default().to_owned(),
        stack_trace: format!("{}\n{}", told.trim(), timeline(&rehearsed.timeline).trim_start_matches('\n')),
        ..TestCase::default()
    };
    let base = if rehearsed.passed { TestCase::default() } else { failed };
    TestCase {
        name: rehearsed.name.clone(),
        package: played.file.clone(),
        file: Some(played.file.clone()),
        duration: played.duration_ms,
        ..base
    }
}

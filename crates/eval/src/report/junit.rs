//! The report as `JUnit` XML needs it.

use rehearsal_testing::{Framework, TestCase, TestReport, TestStatus};

use crate::grade::Verdict;
use crate::summary::Record;

/// Each trial as a test, sorted by agent.
pub fn junit(records: &[Record]) -> TestReport {
    let mut report = TestReport::empty(Framework::Several);
    report.tests = records.iter().map(case).collect();
    report.tests.sort_by(|a, b| a.package.cmp(&b.package));
    report.summary.total = records.len() as u64;
    for test in &report.tests {
        match test.status {
            TestStatus::Pass => report.summary.passed += 1,
            TestStatus::Skip => report.summary.skipped += 1,
            TestStatus::Error => {
                report.summary.failed += 1;
                report.summary.errors += 1;
            }
            _ => report.summary.failed += 1,
        }
    }
    report
}

fn case(record: &Record) -> TestCase {
    let status = match record.verdict {
        Verdict::Pass => TestStatus::Pass,
        Verdict::Fail => TestStatus::Fail,
        Verdict::Error => TestStatus::Error,
        Verdict::Skipped => TestStatus::Skip,
    };
    let broken =
        record.graded.iter().filter_map(|one| Some(format!("{}: {}", one.name, one.grade.objection()?)));
    let reasons: Vec<String> = record.reason.iter().cloned().chain(broken).collect();
    TestCase {
        name: format!("{}, trial {}", record.id.case, record.id.trial),
        package: record.id.variant.to_string(),
        status,
        duration: record.trial.as_ref().map_or(0, |trial| trial.duration_ms),
        error: if status == TestStatus::Pass { String::new() } else { reasons.join("\n") },
        ..TestCase::default()
    }
}

use insta::assert_snapshot;

use super::*;
use crate::parse::{Format, Stream};
use crate::{
    Collected, Collector, Ending, Framework, Limits, Problem, ProblemScope, TestCase, TestReport, TestStatus,
    TestSummary, Verdict,
};

const STATUSES: [TestStatus; 9] = [
    TestStatus::Pass,
    TestStatus::Fail,
    TestStatus::Error,
    TestStatus::Skip,
    TestStatus::Xfail,
    TestStatus::Flaky,
    TestStatus::Timeout,
    TestStatus::Crash,
    TestStatus::NotRun,
];

fn report() -> TestReport {
    let mut summary = TestSummary::default();
    let mut tests = Vec::new();
    for status in STATUSES {
        summary.add(status);
        let error = if status == TestStatus::Pass { "" } else { "it said \"<5> & more\"\nand \u{1b}[31mred" };
        tests.push(TestCase {
            name: format!("shop.Cart is {status:?} (quickly) > a.b"),
            package: "shop.Cart".to_owned(),
            status,
            duration: 1500,
            error: error.to_owned(),
            file: Some("src/cart.rs".to_owned()),
            line: Some(3),
            ..TestCase::default()
        });
    }
    let problem = Problem::new(ProblemScope::Build, "shop", None, "does not compile")
        .placed(Some("src/lib.rs".to_owned()), Some(7));
    TestReport {
        framework_version: Some("1.95".to_owned()),
        verdict: Verdict::BuildFailed,
        reasons: vec!["1 build error".to_owned()],
        duration: 13_500,
        summary,
        build_errors: vec![problem],
        exit_code: Some(101),
        partial: true,
        success: false,
        ..crate::made::report(Framework::CargoTest, tests)
    }
}

fn read_back(report: &TestReport) -> Collected {
    let mut written = Vec::new();
    junit(report, &mut written).unwrap();
    let mut collector = Collector::new(None, Limits::default());
    let mut parser = Format::named("junit").unwrap().parser();
    parser.feed(Stream::Out, &written, &mut collector);
    parser.finish(&mut collector);
    collector.finish(&Ending::default())
}

#[test]
fn what_is_written_as_junit_is_read_back_the_same() {
    let report = report();
    let read = read_back(&report);
    assert_eq!(read.summary, report.summary);
    assert!(read.ended);
    let named =
        |tests: &[TestCase]| -> Vec<_> { tests.iter().map(|it| (it.name.clone(), it.status)).collect() };
    assert_eq!(named(&read.tests), named(&report.tests));
    assert_eq!(read.problems.len(), 1);
    assert_eq!(
        (read.problems[0].scope, &*read.problems[0].message),
        (ProblemScope::Build, "does not compile")
    );
    assert_eq!((read.problems[0].file.as_deref(), read.problems[0].line), (Some("src/lib.rs"), Some(7)));
    assert_eq!(read.complaints, Vec::<String>::new());
}

#[test]
fn what_xml_cannot_hold_is_replaced() {
    let mut written = Vec::new();
    let mut report = report();
    report.tests.truncate(2);
    report.build_errors.clear();
    junit(&report, &mut written).unwrap();
    assert_snapshot!(String::from_utf8(written).unwrap(), @r#"
    <?xml version="1.0" encoding="UTF-8"?>
    <testsuites name="rehearsal" tests="8" failures="1" errors="3" skipped="2" time="13.500">
      <testsuite name="shop.Cart" tests="2" failures="1" errors="0" skipped="0" time="3.000">
        <testcase name="shop.Cart is Pass (quickly) &gt; a.b" classname="shop.Cart" time="1.500" file="src/cart.rs" line="3"/>
        <testcase name="shop.Cart is Fail (quickly) &gt; a.b" classname="shop.Cart" time="1.500" file="src/cart.rs" line="3">
          <failure message="it said &quot;&lt;5&gt; &amp; more&quot;&#10;and �[31mred" type="fail"></failure>
        </testcase>
      </testsuite>
    </testsuites>
    "#);
}

#[test]
fn ctrf_has_its_own_words_for_how_tests_end() {
    let mut written = Vec::new();
    let mut report = report();
    report.tests.truncate(1);
    ctrf(&report, 1000, &mut written).unwrap();
    assert_snapshot!(String::from_utf8(written).unwrap(), @r#"
    {
      "reportFormat": "CTRF",
      "specVersion": "1.0.0",
      "generatedBy": "rehearsal",
      "results": {
        "tool": {
          "name": "cargo-test",
          "version": "1.95"
        },
        "summary": {
          "tests": 9,
          "passed": 2,
          "failed": 4,
          "skipped": 1,
          "pending": 1,
          "other": 1,
          "flaky": 1,
          "start": 1000,
          "stop": 14500,
          "duration": 13500
        },
        "tests": [
          {
            "name": "shop.Cart is Pass (quickly) > a.b",
            "status": "passed",
            "rawStatus": "pass",
            "duration": 1500,
            "suite": [
              "shop.Cart"
            ],
            "filePath": "src/cart.rs",
            "line": 3
          }
        ]
      },
      "extra": {
        "verdict": "build_failed",
        "reasons": [
          "1 build error"
        ],
        "buildErrors": [
          {
            "scope": "build",
            "name": "shop",
            "message": "does not compile",
            "file": "src/lib.rs",
            "line": 7
          }
        ]
      }
    }
    "#);
}

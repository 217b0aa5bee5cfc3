use super::*;
use crate::Verdict;
use crate::made::{compared, failed, passed, problem, report};
use crate::{FailureContext, Framework, ProblemScope, Withheld, analyse, blocked_by_sandbox, compare};
use insta::assert_snapshot;

fn told(report: &TestReport) -> String {
    let analysis = analyse(report, &FailureContext::default());
    summary(report, &analysis, &SummaryExtras::default()).to_string()
}

#[test]
fn a_good_run_is_one_line() {
    assert_snapshot!(told(&report(Framework::Go, vec![passed("TestA"), passed("TestB")])), @"PASSED  go  2 tests: 2 passed in 1.2s");
}

#[test]
fn failures_come_with_place_message_difference_and_the_next_command() {
    let mut deep = compared(
        "test_dict",
        ("tests/test_cart.py", 22),
        "{\n  a: 1\n  b: 2\n  c: 3\n}",
        "{\n  a: 1\n  b: 9\n  c: 3\n}",
    );
    deep.error = "assert {...} == {...}".to_owned();
    let same = |name| failed(name, ("shop/cart.py", 6), "KeyError: 'price'");
    let slow = TestCase { duration: 2500, ..passed("test_slow") };
    let mut report = report(
        Framework::Pytest,
        vec![passed("ok"), deep, same("test_a"), same("test_b"), same("test_c"), slow],
    );
    report.raw_output_file = Some("run.log".to_owned());
    assert_snapshot!(told(&report), @r"
      1. test_a and 2 more  shop/cart.py:6
         KeyError: 'price'

      2. test_dict  tests/test_cart.py:22
         assert {...} == {...}
           {
             a: 1
         expected -   b: 2
         actual   +   b: 9
             c: 3
           }
         → tests/test_cart.py:22: the first line that differs is `b: 9`, expected `b: 2`

    FAILED  pytest  6 tests: 2 passed, 4 failed in 1.2s
       slow: test_slow (2.5s)
        log: run.log
       next: pytest test_dict test_a test_b test_c
    ");
}

#[test]
fn errors_outside_of_tests_are_told_with_what_follows_from_them() {
    let waiting =
        |name: &str| TestCase { status: TestStatus::NotRun, package: "db".to_owned(), ..passed(name) };
    let mut report = report(Framework::Vitest, vec![passed("ok"), waiting("db reads"), waiting("db writes")]);
    report.suite_errors =
        vec![problem(ProblemScope::Suite, "db", ("test/db.test.ts", 4), "Error: no schema")];
    (report.verdict, report.reasons) =
        (Verdict::CollectFailed, vec!["1 file or group could not be loaded or set up".to_owned()]);
    assert_snapshot!(told(&report), @r"
      1. db  test/db.test.ts:4
         Error: no schema

    COLLECT FAILED  vitest  1 test: 1 passed, 2 not run in 1.2s
        why: 1 file or group could not be loaded or set up
      cause: 2 others follow from: Error: no schema
    ");
}

#[test]
fn what_the_sandbox_denied_is_told_with_the_remedy() {
    let withheld = Withheld { network: true, ..Withheld::default() };
    let mut report = report(
        Framework::Jest,
        vec![failed("fetches", ("test/api.test.js", 3), "getaddrinfo EAI_AGAIN api.example.com")],
    );
    blocked_by_sandbox(&mut report, &withheld);
    let analysis =
        analyse(&report, &FailureContext { withheld: Some(&withheld), ..FailureContext::default() });
    let notes = ["memory was not limited: no memory controller".to_owned()];
    let extras = SummaryExtras { notes: &notes, ..SummaryExtras::default() };
    assert_snapshot!(summary(&report, &analysis, &extras), @r"
      1. fetches  test/api.test.js:3
         getaddrinfo EAI_AGAIN api.example.com

    SANDBOX BLOCKED  jest  1 test: 1 failed in 1.2s
     denied: network access is off in the sandbox: `api.example.com` could not be reached; put a stand-in on 127.0.0.1, or allow it with `allow_network: true` under `testing.sandbox`
       note: memory was not limited: no memory controller
       next: npx jest -t fetches test/api.test.js
    ");
}

#[test]
fn a_comparison_marks_what_is_new() {
    let before = report(Framework::Go, vec![failed("TestOld", ("a_test.go", 1), "old"), passed("TestNew")]);
    let now = report(
        Framework::Go,
        vec![failed("TestOld", ("a_test.go", 1), "old"), failed("TestNew", ("b_test.go", 2), "fresh")],
    );
    let comparison = compare("main", &before, &now);
    let analysis = analyse(&now, &FailureContext::default());
    let extras = SummaryExtras { comparison: Some(&comparison), ..SummaryExtras::default() };
    assert_snapshot!(summary(&now, &analysis, &extras), @r"
      1. TestOld  a_test.go:1  failed before
         old

      2. TestNew  b_test.go:2  new
         fresh

    FAILED  go  2 tests: 2 failed in 1.2s
    compared with `main`: 1 new, 1 known
      new    TestNew
       next: go test -run '^(TestOld|TestNew)$' ./...
    ");
}

#[test]
fn a_retried_test_is_named_though_the_run_is_green() {
    let flaky = TestCase { status: TestStatus::Flaky, attempts: Some(2), ..passed("TestNet") };
    assert_snapshot!(told(&report(Framework::Go, vec![flaky])), @r"
      flaky: TestNet failed, then passed (attempt 2)
    PASSED  go  1 test: 1 passed in 1.2s
    ");
}

#[test]
fn no_message_can_move_the_cursor_or_clear_the_screen() {
    let text = told(&report(
        Framework::Go,
        vec![failed("a\x1b[2J", ("x\x07.go", 1), "\x1b]0;title\x07boom\rover\x08\x1b[A")],
    ));
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
}

#[test]
fn the_marks_carry_no_meaning_of_their_own() {
    let report = report(Framework::Go, vec![compared("a", ("a.go", 1), "x", "y")]);
    let text = summary(&report, &analyse(&report, &FailureContext::default()), &SummaryExtras::default());
    let joined: String = text.pieces().map(|(_, piece)| piece).collect();
    assert_eq!(joined, text.to_string());
    assert!(text.pieces().any(|(mark, piece)| mark == Mark::Bad && piece == "FAILED"));
}

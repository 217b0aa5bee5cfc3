use super::*;
use crate::made::{compared, failed, passed, problem, report};
use crate::{FailureKind, Framework, Problem, ProblemScope, Since, TestCase, TestStatus, Verdict};
use insta::assert_snapshot;

fn analysed(report: &TestReport) -> FailureAnalysis {
    analyse(report, &FailureContext::default())
}

fn cause(report: &TestReport) -> String {
    analysed(report).root_cause.unwrap()
}

fn suggestion(report: &TestReport, context: &FailureContext<'_>) -> String {
    analyse(report, context).suggestions.join("\n")
}

fn cart_changed() -> Changes {
    let diff = "--- a/shop/cart.py\n+++ b/shop/cart.py\n@@ -12 +12 @@\n-a\n+b\n";
    Changes::of_diffs(Since::LastCommit, diff, "")
}

#[test]
fn a_good_run_has_nothing_to_analyse() {
    let analysis = analysed(&report(Framework::Go, vec![passed("TestA")]));
    assert_eq!(analysis, FailureAnalysis::default());
}

#[test]
fn failures_that_differ_only_in_their_values_are_one() {
    let tests =
        (0..30).map(|i| failed(&format!("t{i}"), ("a_test.go", 9), &format!("id {i}: got {i}, want 7")));
    let analysis = analysed(&report(Framework::Go, tests.collect()));
    assert_eq!(analysis.failed_tests.len(), 30);
    let [group] = analysis.groups.as_slice() else { panic!("{:?}", analysis.groups) };
    assert_eq!((group.frequency, group.test_names.len()), (30, 20));
    assert_eq!(analysis.error_patterns[0].message, "id #: got #, want #");
    assert_snapshot!(analysis.root_cause.unwrap(), @"a_test.go:9: id 0: got 0, want 7 (30 of 30 failures)");
}

#[test]
fn an_assertions_suggestion_quotes_its_values_and_what_changed() {
    let mut test = compared("tests/test_cart.py::test_sum", ("tests/test_cart.py", 14), "5", "4");
    test.error = "assert 4 == 5\n +  where 4 = total([1, 3])".to_owned();
    let report = report(Framework::Pytest, vec![test]);
    let changes = cart_changed();
    let context = FailureContext { changes: Some(&changes), ..FailureContext::default() };
    assert_snapshot!(suggestion(&report, &context), @"`total([1, 3])` in tests/test_cart.py:14 was 4, expected 5; shop/cart.py:12 changed in the last commit");
}

#[test]
fn a_failure_in_a_changed_line_says_so_and_comes_first() {
    let stack = "  File \"/ci/p/tests/test_cart.py\", line 3, in test_a\n  File \"/ci/p/shop/cart.py\", line 12, in total\n";
    let broken = TestCase {
        stack_trace: stack.to_owned(),
        kind: Some(FailureKind::NullDeref),
        ..failed("test_a", ("shop/cart.py", 12), "AttributeError: 'NoneType' object has no attribute 'price'")
    };
    let others = (0..3).map(|i| compared(&format!("o{i}"), ("tests/test_o.py", 2), "1", "2"));
    let report = report(Framework::Pytest, others.chain([broken]).collect());
    let changes = cart_changed();
    let source = |file: &str, line: u32| {
        (file == "shop/cart.py" && line == 12).then(|| "  return item.price".to_owned())
    };
    let context =
        FailureContext { changes: Some(&changes), source: Some(&source), ..FailureContext::default() };
    let analysis = analyse(&report, &context);
    assert_eq!(analysis.groups[0].relation, Some(Relation::InChangedLine));
    assert_eq!(analysis.affected_files, ["shop/cart.py", "tests/test_o.py", "tests/test_cart.py"]);
    assert_snapshot!(analysis.suggestions[0], @"shop/cart.py:12 in `total`: `price` is used of a value that is not there (`return item.price`); the line changed in the last commit");
    assert_snapshot!(analysis.changed[0].words, @"changed in the last commit");
}

#[test]
fn a_line_that_most_failures_come_through_is_the_cause() {
    let through = |name: &str, line: u32| TestCase {
        stack_trace: format!(
            "Error: boom\n    at total (/p/src/cart.js:6:3)\n    at Object.<anonymous> (/p/test/cart.test.js:{line}:1)\n"
        ),
        ..failed(name, ("test/cart.test.js", line), &format!("Error: boom {name}"))
    };
    let tests = vec![
        through("a", 1),
        through("b", 20),
        through("c", 30),
        compared("d", ("test/x.test.js", 1), "1", "2"),
    ];
    assert_snapshot!(cause(&report(Framework::Jest, tests)), @"3 of 4 failures come through src/cart.js:6 in `total`");
}

#[test]
fn one_failing_fixture_is_the_cause_of_all_its_tests() {
    let test = |name: &str| TestCase {
        status: TestStatus::Error,
        kind: Some(FailureKind::Setup),
        ..failed(name, ("tests/conftest.py", 5), "ConnectionRefusedError: [Errno 111] Connection refused")
    };
    let analysis = analysed(&report(Framework::Pytest, vec![test("a"), test("b"), test("c")]));
    assert_eq!(analysis.error_patterns[0].pattern, FailurePattern::Setup);
    assert_snapshot!(analysis.root_cause.unwrap(), @"a service that the tests need is not running: the connection was refused (3 of 3 failures)");
    let [cascade] = analysis.cascades.as_slice() else { panic!("{:?}", analysis.cascades) };
    assert_eq!(
        (cascade.file.as_deref(), cascade.line, cascade.frequency),
        (Some("tests/conftest.py"), Some(5), 3)
    );
}

#[test]
fn a_failed_set_up_owns_the_tests_that_it_kept_from_running() {
    let waiting =
        |name: &str| TestCase { status: TestStatus::NotRun, package: "db".to_owned(), ..passed(name) };
    let mut report = report(Framework::Vitest, vec![passed("ok"), waiting("db reads"), waiting("db writes")]);
    report.suite_errors =
        vec![problem(ProblemScope::Suite, "db", ("test/db.test.ts", 4), "Error: no schema")];
    let analysis = analysed(&report);
    assert_eq!(analysis.cascades[0].test_names, ["db reads", "db writes"]);
    assert_snapshot!(analysis.root_cause.unwrap(), @"test/db.test.ts:4: Error: no schema");
}

#[test]
fn one_build_error_owns_the_packages_that_depend_on_it() {
    let mut report = report(Framework::Go, vec![]);
    let dependant = Problem {
        file: None,
        line: None,
        ..problem(ProblemScope::Build, "shop/web", ("", 0), "[build failed]")
    };
    report.build_errors = vec![
        problem(ProblemScope::Build, "shop/calc", ("calc/calc.go", 11), "cannot use \"x\" as int value"),
        dependant,
    ];
    let analysis = analysed(&report);
    assert_eq!(analysis.cascades[0].test_names, ["shop/web"]);
    assert_snapshot!(analysis.root_cause.unwrap(), @r#"the build fails: calc/calc.go:11: cannot use "x" as int value (and 1 other error)"#);
}

#[test]
fn a_damaged_installation_is_not_the_projects_fault() {
    let mut report = report(Framework::Go, vec![]);
    let message = "package internal/msan is not in std (/opt/go/src/internal/msan)";
    report.build_errors =
        vec![problem(ProblemScope::Build, "runtime", ("/opt/go/src/runtime/msan.go", 12), message)];
    assert_snapshot!(cause(&report), @"the Go installation is damaged, not the project: package internal/msan is not in std (/opt/go/src/internal/msan)");
    let message = "package shop/clac is not in std";
    report.build_errors = vec![problem(ProblemScope::Build, "shop", ("shop.go", 3), message)];
    assert_snapshot!(cause(&report), @"the build fails: shop.go:3: package shop/clac is not in std");
}

#[test]
fn a_missing_program_is_named() {
    let test = |name| failed(name, ("test/a.bats", 3), "test/a.bats: line 3: jq: command not found");
    assert_snapshot!(cause(&report(Framework::Bats, vec![test("a"), test("b")])), @"`jq` is not installed, or not in PATH (2 of 2 failures)");
}

#[test]
fn a_crash_owns_what_never_began() {
    let crashed = TestCase {
        status: TestStatus::Crash,
        ..failed("TestB", ("b_test.go", 7), "signal: segmentation fault")
    };
    let waiting = TestCase { status: TestStatus::NotRun, ..passed("TestC") };
    let analysis = analysed(&report(Framework::Go, vec![passed("TestA"), crashed, waiting]));
    assert_snapshot!(analysis.cascades[0].cause, @"`TestB`: signal: segmentation fault");
    assert_eq!(analysis.cascades[0].test_names, ["TestC"]);
}

fn no_network() -> Withheld {
    Withheld { network: true, filesystem: true, memory: Some(1 << 30), ..Withheld::default() }
}

#[test]
fn a_run_that_only_the_sandbox_stopped_is_blocked_and_not_failed() {
    let test = |name| {
        failed(name, ("tests/test_api.py", 3), "socket.gaierror: getaddrinfo EAI_AGAIN api.example.com")
    };
    let mut blocked = report(Framework::Pytest, vec![passed("ok"), test("a"), test("b")]);
    blocked_by_sandbox(&mut blocked, &no_network());
    assert_eq!((blocked.verdict, blocked.success), (Verdict::SandboxBlocked, false));
    assert_snapshot!(blocked.reasons.join("\n"), @r"
    network access is off in the sandbox: `api.example.com` could not be reached
    2 tests failed
    ");
}

#[test]
fn one_failure_of_the_projects_own_keeps_the_verdict() {
    let denied = failed("a", ("a.py", 3), "getaddrinfo EAI_AGAIN api.example.com");
    let mut mixed = report(Framework::Pytest, vec![denied, compared("b", ("b.py", 1), "1", "2")]);
    blocked_by_sandbox(&mut mixed, &no_network());
    assert_eq!(mixed.verdict, Verdict::Failed);
    let context = FailureContext { withheld: Some(&no_network()), ..FailureContext::default() };
    assert_eq!(analyse(&mixed, &context).denials[0].test_names, ["a"]);
}

#[test]
fn failures_that_are_not_in_the_report_may_be_of_another_kind() {
    let denied = failed("a", ("a.py", 3), "getaddrinfo EAI_AGAIN api.example.com");
    let mut cut = report(Framework::Pytest, vec![denied]);
    cut.summary.failed = 1000;
    blocked_by_sandbox(&mut cut, &no_network());
    assert_eq!(cut.verdict, Verdict::Failed);
}

#[test]
fn a_test_that_waits_for_a_refusal_was_not_refused() {
    let test = compared("a", ("a.py", 3), "open /x: read-only file system", "nothing");
    let context = FailureContext { withheld: Some(&no_network()), ..FailureContext::default() };
    assert_eq!(analyse(&report(Framework::Go, vec![test]), &context).denials, []);
}

#[test]
fn memory_and_other_limits_have_verdicts_of_their_own() {
    let withheld = Withheld { open_files: Some(64), ..no_network() };
    let verdict = |error: &str| {
        let mut report = report(Framework::Jest, vec![failed("a", ("a.js", 3), error)]);
        blocked_by_sandbox(&mut report, &withheld);
        report.verdict
    };
    assert_eq!(verdict("MemoryError"), Verdict::OutOfMemory);
    assert_eq!(verdict("EMFILE: too many open files"), Verdict::Limit);
}

#[test]
fn many_failures_take_time_that_grows_with_them_and_no_faster() {
    let tests: Vec<TestCase> = (0..20_000)
        .map(|i| failed(&format!("t{i}"), (&format!("f{i}.py"), 1), &format!("boom {}", "x".repeat(i % 50))))
        .collect();
    let analysis = analysed(&report(Framework::Pytest, tests));
    assert_eq!(analysis.failed_tests.len(), 20_000);
    assert_eq!(analysis.groups.len(), 50);
}

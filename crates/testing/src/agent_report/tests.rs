use super::*;
use crate::made::{compared, failed, passed, problem, report};
use crate::{Changes, FailureContext, Framework, ProblemScope, Since, Withheld, analyse};
use insta::assert_snapshot;

fn told(report: &TestReport) -> String {
    agent_report(report, &analyse(report, &FailureContext::default()), AgentBudget::default())
}

fn ten_failures() -> TestReport {
    let tests = (0..10).map(|i| {
        let at = (format!("internal/calculator/calculator_{i}_test.go"), 40 + i);
        let words = ["sum", "total", "tax", "rebate", "price", "rate", "share", "net", "gross", "rest"];
        let name = format!("TestCalculateTheTotalOf{}", words[i as usize]);
        compared(
            &name,
            (&at.0, at.1),
            &format!("{} is 100", words[i as usize]),
            &format!("{} is 99", words[i as usize]),
        )
    });
    report(Framework::Go, tests.chain([passed("TestOk")]).collect())
}

#[test]
fn a_good_run_takes_four_lines() {
    assert_snapshot!(told(&report(Framework::Go, vec![passed("TestA"), passed("TestB")])), @r"
    Test execution completed:
    Framework: go
    Status: PASSED (2/2 passed)
    Duration: 1.2s
    ");
}

#[test]
fn failures_are_listed_with_place_error_and_what_to_look_at() {
    let nil = "panic: runtime error: invalid memory address or nil pointer dereference";
    let mut report = report(
        Framework::Go,
        vec![
            passed("TestOk"),
            compared("TestCalculateTotal", ("calculator_test.go", 45), "100", "99"),
            failed("TestValidateInput", ("validator.go", 30), nil),
        ],
    );
    report.raw_output_file = Some(".rehearsal/state/tests/7/output.log".to_owned());
    let diff = "--- a/calculator.go\n+++ b/calculator.go\n@@ -23 +23 @@\n-a\n+b\n";
    let changes = Changes::of_diffs(Since::LastCommit, diff, "");
    let context = FailureContext { changes: Some(&changes), ..FailureContext::default() };
    let text = agent_report(&report, &analyse(&report, &context), AgentBudget::default());
    assert_snapshot!(text, @r"
    Test execution completed:
    Framework: go
    Status: FAILED (1/3 passed)
    Duration: 1.2s

    Failed Tests:
    1. TestCalculateTotal (calculator_test.go:45)
       Error: expected 100, got 99
       Suggestion: calculator.go:23 changed in the last commit
    2. TestValidateInput (validator.go:30)
       Error: panic: runtime error: invalid memory address or nil pointer dereference

    Rerun: go test -run '^(TestCalculateTotal|TestValidateInput)$' ./...
    Log: .rehearsal/state/tests/7/output.log
    ");
}

#[test]
fn ten_failures_fit_into_a_kilobyte_and_a_half_each_with_its_error() {
    let text = told(&ten_failures());
    assert!(text.len() <= 1500, "{} bytes", text.len());
    assert_eq!(text.matches("Error: ").count(), 10, "{text}");
}

#[test]
fn the_budget_is_kept_even_if_only_some_names_fit() {
    let report = ten_failures();
    let analysis = analyse(&report, &FailureContext::default());
    let text = agent_report(&report, &analysis, AgentBudget { tokens: 80, runner_text: None });
    assert!(text.len() <= 320, "{} bytes", text.len());
    assert!(text.contains("more"), "{text}");
    let text = agent_report(&report, &analysis, AgentBudget { tokens: 2000, runner_text: Some(400) });
    assert!(text.len() <= 400, "{} bytes", text.len());
}

#[test]
fn the_same_failure_is_told_once() {
    let tests =
        (0..300).map(|i| failed(&format!("t{i}"), ("src/cart.js", 6), "TypeError: total is not a function"));
    assert_snapshot!(told(&report(Framework::Jest, tests.collect())), @r"
    Test execution completed:
    Framework: jest
    Status: FAILED (0/300 passed)
    Duration: 1.2s

    Failed Tests:
    1. t0 and 299 more (src/cart.js:6)
       Error: TypeError: total is not a function
    ");
}

#[test]
fn errors_outside_of_tests_come_first() {
    let mut report = report(Framework::Go, vec![passed("TestA")]);
    report.build_errors = vec![problem(
        ProblemScope::Build,
        "shop/calc",
        ("calc/calc.go", 11),
        "cannot use \"x\" as int value",
    )];
    (report.success, report.verdict) = (false, Verdict::BuildFailed);
    assert_snapshot!(told(&report), @r#"
    Test execution completed:
    Framework: go
    Status: BUILD FAILED (1/1 passed)
    Duration: 1.2s

    Errors:
    1. shop/calc (calc/calc.go:11)
       Error: cannot use "x" as int value
    "#);
}

#[test]
fn what_a_single_failure_printed_is_shown_by_its_ends() {
    let mut test = failed("a", ("a.py", 1), "boom");
    test.output = (0..200).map(|i| format!("line {i}\n")).collect();
    let text = told(&report(Framework::Pytest, vec![test]));
    assert!(text.contains("line 0\n") && text.contains("line 199\n") && text.contains(" lines …"), "{text}");
    assert!(text.len() <= 1500);
}

#[test]
fn hostile_names_and_messages_stay_on_their_line() {
    let text = told(&report(
        Framework::Pytest,
        vec![failed("a\nStatus: PASSED", ("x\ny.py", 1), "\x1b[2Jboom\r\n\u{7}")],
    ));
    assert_eq!(text.lines().filter(|line| line.starts_with("Status:")).count(), 1);
    assert!(!text.contains('\x1b') && !text.contains('\u{7}'));
}

#[test]
fn what_the_sandbox_denied_is_told_once_with_the_remedy() {
    let withheld = Withheld { network: true, ..Withheld::default() };
    let test =
        |name: &str, line| failed(name, ("test/api.test.js", line), "getaddrinfo EAI_AGAIN api.example.com");
    let report = report(Framework::Jest, vec![test("a", 3), test("b", 9)]);
    let context = FailureContext { withheld: Some(&withheld), ..FailureContext::default() };
    let text = agent_report(&report, &analyse(&report, &context), AgentBudget::default());
    assert_snapshot!(text, @r"
    Test execution completed:
    Framework: jest
    Status: FAILED (0/2 passed)
    Duration: 1.2s

    Failed Tests:
    1. a (test/api.test.js:3)
       Error: getaddrinfo EAI_AGAIN api.example.com
    2. b (test/api.test.js:9)
       Error: getaddrinfo EAI_AGAIN api.example.com

    Sandbox: network access is off in the sandbox: `api.example.com` could not be reached; put a stand-in on 127.0.0.1, or allow it with `allow_network: true` under `testing.sandbox`
    Rerun: npx jest -t 'a|b' test/api.test.js
    ");
}

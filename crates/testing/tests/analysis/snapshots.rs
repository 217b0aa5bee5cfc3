//! What people and agents read about real runs.

use insta::assert_snapshot;
use rehearsal_testing::{AgentBudget, FailureContext, SummaryExtras, agent_report, analyse, summary};

use crate::Sample;

fn for_agents(id: &str) -> String {
    let report = Sample::named(id).report(false);
    agent_report(&report, &analyse(&report, &FailureContext::default()), AgentBudget::default())
}

fn for_people(id: &str) -> String {
    let report = Sample::named(id).report(false);
    summary(&report, &analyse(&report, &FailureContext::default()), &SummaryExtras::default()).to_string()
}

#[test]
fn a_failed_run_of_go() {
    assert_snapshot!(for_agents("go/fail"), @r#"
    Test execution completed:
    Framework: go
    Status: FAILED (5/12 passed, 2 skipped)
    Duration: 0ms

    Failed Tests:
    1. TestTable/bad_value and 1 more (calc/calc_test.go:32)
       Error: case "bad value" failed: 期待=1 実際=2
    2. TestAdd (calc/calc_test.go:18)
       Error: Add(2,2) = 4; want 5
       Output:
          calc_test.go:20: second error
          with a
          multi-line diff:
          -want
          +got
    3. TestHelper (calc/calc_test.go:24)
       Error: got 2, want 3
    4. TestParB (calc/calc_test.go:53)
       Error: B failed
       Output:
          calc_test.go:52: B1

    Rerun: go test -run '^(TestAdd|TestHelper|TestTable|TestParB)$' example.com/shop/calc
    "#);
    assert_snapshot!(for_people("go/fail"), @r#"
      1. TestTable/bad_value, TestTable/ünïcødé/✓_日本語  calc/calc_test.go:32
         case "bad value" failed: 期待=1 実際=2

      2. TestAdd  calc/calc_test.go:18
         Add(2,2) = 4; want 5
         second error
           with a
           multi-line diff:
         -want
         +got

      3. TestHelper  calc/calc_test.go:24
         got 2, want 3

      4. TestParB  calc/calc_test.go:53
         B failed

    FAILED  go  12 tests: 5 passed, 5 failed, 2 skipped in 0ms
       next: go test -run '^(TestAdd|TestHelper|TestTable|TestParB)$' example.com/shop/calc
    "#);
}

#[test]
fn a_build_of_go_that_fails() {
    assert_snapshot!(for_agents("go/build_fail"), @r#"
    Test execution completed:
    Framework: go
    Status: BUILD FAILED (1/1 passed)
    Duration: 0ms

    Errors:
    1. example.com/shop/calc (calc/calc.go:11)
       Error: cannot use "x" (untyped string constant) as int value in return statement
    2. example.com/shop/calc (calc/calc.go:13)
       Error: undefined: missing
    "#);
    assert_snapshot!(for_people("go/build_fail"), @r#"
      1. example.com/shop/calc  calc/calc.go:11
         cannot use "x" (untyped string constant) as int value in return statement

      2. example.com/shop/calc  calc/calc.go:13
         undefined: missing

    BUILD FAILED  go  1 test: 1 passed in 0ms
        why: 2 build errors
    "#);
}

#[test]
fn a_panic_in_go_is_placed_in_the_source() {
    assert_snapshot!(for_people("go/panic"), @r"
      1. TestNilDeref  calc/calc.go:9
         runtime error: invalid memory address or nil pointer dereference

    FAILED  go  3 tests: 2 passed, 1 failed in 0ms
       next: go test -run '^TestNilDeref$' example.com/shop/calc
    ");
}

#[test]
fn files_that_pytest_could_not_load() {
    assert_snapshot!(for_agents("pytest/collect_error"), @r"
    Test execution completed:
    Framework: pytest
    Status: COLLECT FAILED (no tests ran)
    Duration: 0ms

    Errors:
    1. tests/test_import.py:1
       Error: ModuleNotFoundError: No module named 'shop.nope'
       Suggestion: `shop.nope` is imported and cannot be found: install it, or correct its name
    2. tests/test_module.py:1
       Error: ModuleNotFoundError: No module named 'not_installed_pkg'
       Suggestion: `not_installed_pkg` is imported and cannot be found: install it, or correct its name
    3. tests/test_syntax.py:1
       Error: SyntaxError: invalid syntax
    4. tests/test_toplevel.py:1
       Error: RuntimeError: boom at import
    ");
}

#[test]
fn a_run_of_pytest_that_was_killed_names_the_test_that_hung() {
    assert_snapshot!(for_people("pytest/killed_midway"), @r"
      1. tests/test_slow.py::test_quick_fail  tests/test_slow.py:9
         assert 1 == 2

      2. tests/test_slow.py::test_hangs  tests/test_slow.py:12
         it was still running when the run was stopped

    CRASHED  pytest  3 tests: 1 passed, 1 failed, 1 stopped in 2ms
        why: signal 9 ended the runner
        why: the output ends without the runner's own end
        why: the run did not come to its own end: tests may be missing
       next: pytest tests/test_slow.py::test_quick_fail tests/test_slow.py::test_hangs
    ");
}

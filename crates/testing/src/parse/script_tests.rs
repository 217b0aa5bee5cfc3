//! What runners of scripting languages print beyond the recorded samples, and what tests print to look like them.

use insta::assert_snapshot;

use super::told::told;

#[test]
fn a_mocha_run_is_not_over_when_a_test_prints_counts() {
    let out = "\n  outer\n✔ fake\n  1 passing (3ms)\n    ✔ ok (12ms)\n    - later\n    1) bad\n\n\n  1 passing (8ms)\n  \
        1 pending\n  1 failing\n\n  1) outer\n       bad:\n     TypeError: x is null\n      at Context.<anonymous> \
        (test/a.js:3:4)\n\n\n\n";
    assert_snapshot!(told("mocha", out, "", 1), @r"
    failed: 1 of 3 passed, 1 skipped
    skip outer later ()
    fail outer bad at test/a.js:3 (TypeError: x is null)
    ");
}

#[test]
fn a_mocha_run_that_was_killed_has_the_tests_that_were_told() {
    assert_snapshot!(told("mocha", "\n  outer\n    ✔ ok\n    1) bad\n", "", 137), @r"
    crashed: 1 of 2 passed, 0 skipped
    fail outer bad ()
    ");
}

#[test]
fn a_file_that_mocha_cannot_load_is_told_with_its_place() {
    let err = "\n Exception during run: /x/test/b.js:1\nconst x = ;\n          ^\n\nSyntaxError: Unexpected token ';'\n    \
        at wrapSafe (node:internal/modules/cjs/loader:1464:18)\n";
    assert_snapshot!(told("mocha", "", err, 1), @r"
    collect_failed: 0 of 0 passed, 0 skipped
    problem  at test/b.js:1 (SyntaxError: Unexpected token ';')
    ");
}

#[test]
fn mocha_retries_are_flaky_and_hooks_are_failures() {
    let out = r#"["start",{"total":2}]
["pass",{"title":"f","fullTitle":"r f","file":"/p/test/a.js","duration":1,"currentRetry":1}]
noise["fail",{"title":"\"before all\" hook for \"x\"","fullTitle":"h \"before all\" hook for \"x\"","file":"/p/test/a.js","err":"db","stack":"Error: db\n    at Context.<anonymous> (test/a.js:4:40)"}]
["end",{"suites":1,"tests":1,"passes":1,"pending":0,"failures":1}]
"#;
    assert_snapshot!(told("mocha-json-stream", out, "", 1), @r#"
    failed: 1 of 2 passed, 0 skipped
    flaky [test/a.js] r f ()
    fail [test/a.js] h "before all" hook for "x" at test/a.js:4 (db)
    "#);
}

#[test]
fn in_nodes_spec_only_leaves_count_and_hooks_of_suites_are_problems() {
    let out = "✔ ok (6.6ms)\n﹣ skip me (1.7ms) # SKIP\n✔ todo me (0.1ms) # TODO\n▶ suite\n  ▶ deep\n    ✖ fails (0.2ms)\n      \
        Error: x\n      y\n          at TestContext.<anonymous> (/p/test/a.test.js:4:86)\n\n  ✖ deep (0.4ms)\n✖ suite (7.4ms)\n\
        ▶ hooked\n  ✖ never\n    'test did not finish before its parent and was cancelled'\n\n✖ hooked (0.3ms)\n\n  Error: hook\n      \
        at SuiteContext.<anonymous> (/p/test/a.test.js:5:43)\n\nℹ tests 5\nℹ suites 3\nℹ pass 1\nℹ fail 1\nℹ cancelled 1\n\
        ℹ skipped 1\nℹ todo 1\nℹ duration_ms 905.04\n\n✖ failing tests:\n\ntest at test/a.test.js:5:80\n✖ never\n  'test did'\n";
    assert_snapshot!(told("node-spec", out, "", 1), @r"
    collect_failed: 1 of 5 passed, 2 skipped
    skip skip me (SKIP)
    skip todo me (TODO)
    fail suite > deep > fails at test/a.test.js:4 (Error: x)
    fail hooked > never at test/a.test.js:5 (test did not finish before its parent and was cancelled)
    problem hooked at test/a.test.js:5 (Error: hook)
    ");
}

#[test]
fn a_line_that_a_test_prints_does_not_fit_nodes_counts() {
    let out = "✔ fake (1ms)\n✔ ok (6.6ms)\nℹ tests 1\nℹ suites 0\nℹ pass 1\nℹ fail 0\nℹ cancelled 0\nℹ skipped 0\nℹ todo 0\n\
        ℹ duration_ms 9\n";
    assert_snapshot!(told("node-spec", out, "", 0), @"inconsistent: 2 of 2 passed, 0 skipped");
}

#[test]
fn bun_may_only_count_good_tests() {
    let err = "\ntest/a.test.ts:\n3 | x\n    ^\nerror: no db\n      at <anonymous> (/p/test/a.test.ts:5:61)\n(fail) hook > (unnamed) \
        [0.02ms]\n\n 3 pass\n 1 skip\n 1 fail\nRan 5 tests across 2 files. [4.00ms]\n";
    assert_snapshot!(told("bun", "bun test v1.4.4 (38afee6c8)\n", err, 1), @r"
    failed: 3 of 5 passed, 1 skipped
    fail [test/a.test.ts] hook (unnamed) at test/a.test.ts:5 (no db)
    ");
}

#[test]
fn what_a_deno_test_prints_is_no_result() {
    let out = "running 1 test from ./a_test.ts\nok ...\n------- output -------\nfake ... ok (1ms)\n----- output end -----\n\
        fake2 ... ok (1ms)\n----- output end -----\nok ... ok (2ms)\n\nok | 1 passed | 0 failed (5ms)\n\n";
    assert_snapshot!(told("deno", out, "", 0), @"passed: 1 of 1 passed, 0 skipped");
    let err = "Check tc_test.ts\nTS2322 [ERROR]: Type 'string' is not assignable to type 'number'.\nconst x: number = 'a';\n      \
        ^\n    at file:///p/tc_test.ts:1:28\n\nerror: Type checking failed.\n";
    assert_snapshot!(told("deno", "", err, 1), @r"
    build_failed: 0 of 0 passed, 0 skipped
    problem  at tc_test.ts:1 (TS2322 [ERROR]: Type 'string' is not assignable to type 'number'.)
    ");
}

#[test]
fn errors_outside_of_rspecs_examples_are_problems() {
    let out = "\nAn error occurred while loading ./spec/bad_spec.rb.\nFailure/Error: RSpec.describe(Nope) { it(\"x\") {} }\n\n\
        NameError:\n  uninitialized constant Nope\n# ./spec/bad_spec.rb:1:in `<top (required)>'\n\n\nFinished in 0.00005 \
        seconds (files took 0.1 seconds to load)\n0 examples, 0 failures, 1 error occurred outside of examples\n\n";
    assert_snapshot!(told("rspec", out, "", 1), @r"
    collect_failed: 0 of 0 passed, 0 skipped
    problem spec/bad_spec.rb at spec/bad_spec.rb:1 (NameError: uninitialized constant Nope)
    ");
}

#[test]
fn counts_that_an_rspec_example_prints_are_not_the_end() {
    let out = "\nCart\n1 example, 0 failures\n  ok\n  bad (FAILED - 1)\n\nFailures:\n\n  1) Cart bad\n     Failure/Error: x\n\n       \
        expected: 5\n            got: 4\n     # ./spec/a_spec.rb:2:in `block'\n\nFinished in 0.03 seconds (files took 0.09 \
        seconds to load)\n2 examples, 1 failure\n\nFailed examples:\n\nrspec ./spec/a_spec.rb:2 # Cart bad\n";
    assert_snapshot!(told("rspec", out, "", 1), @r"
    failed: 1 of 2 passed, 0 skipped
    fail Cart bad at spec/a_spec.rb:2 (expected: 5)
    ");
}

#[test]
fn an_rspec_example_that_ends_the_process_is_not_good() {
    let end = "\n\nFinished in 0.0004 seconds (files took 0.09 seconds to load)\n2 examples, 0 failures\n\n";
    for (shown, verdict) in [
        ("\nA\n  x", "inconsistent: 2 of 2 passed, 0 skipped"),
        (".", "inconsistent: 2 of 2 passed, 0 skipped"),
        ("", "inconsistent: 2 of 2 passed, 0 skipped"),
        ("\nA\n  x\n  y", "passed: 2 of 2 passed, 0 skipped"),
        ("..", "passed: 2 of 2 passed, 0 skipped"),
        // What they print may hide the marks.
        ("\nhi.hello\n.", "passed: 2 of 2 passed, 0 skipped"),
        (".noise.", "passed: 2 of 2 passed, 0 skipped"),
    ] {
        assert_eq!(told("rspec", &format!("{shown}{end}"), "", 0), verdict, "{shown}");
    }
}

#[test]
fn a_summary_that_a_test_of_unittest_prints_is_not_its_end() {
    let err = "test_1 (test_a.A.test_1) ... ok\ntest_2 (test_a.A.test_2) ... \nRan 2 tests in 0.01s\n\nOK\n";
    let of_run = told("unittest-text", "", err, 0);
    assert!(!of_run.starts_with("passed"), "{of_run}");
}

#[test]
fn node_may_give_a_file_without_tests_the_number_of_a_test() {
    let out = "TAP version 13\n# Subtest: a\nok 1 - a\n  ---\n  duration_ms: 1.2\n  ...\n# Subtest: b\nok 2 - b\n  ---\n  \
        duration_ms: 0.2\n  ...\n# Subtest: /tmp/demo/e.test.js\nok 2 - /tmp/demo/e.test.js\n  ---\n  duration_ms: 71.8\n  ...\n\
        1..3\n# tests 3\n# suites 0\n# pass 3\n# fail 0\n# cancelled 0\n# skipped 0\n# todo 0\n# duration_ms 308.7\n";
    assert_snapshot!(told("node-test-tap", out, "", 0), @"passed: 2 of 2 passed, 0 skipped");
}

#[test]
fn rails_tells_failures_on_the_way() {
    let out = "Running 2 tests in a single process\nRun options: --seed 1\n\n# Running:\n\n.F\n\nFailure:\nCartTest#test_fail \
        [test/cart_test.rb:5]:\nExpected: 5\n  Actual: 4\n\nbin/rails test test/cart_test.rb:4\n\n\n\nFinished in 0.02s, 3 \
        runs/s.\n2 runs, 2 assertions, 1 failures, 0 errors, 0 skips\n";
    assert_snapshot!(told("minitest", out, "", 1), @r"
    failed: 1 of 2 passed, 0 skipped
    fail [CartTest] CartTest#test_fail at test/cart_test.rb:5 (Expected: 5)
    ");
}

#[test]
fn test_unit_tells_failures_between_rulers() {
    let ruler = "=".repeat(79);
    let out = format!(
        "Loaded suite test/tu\nStarted\nF\n{ruler}\nFailure: test_fail(CartTest)\ntest/tu.rb:4:in `test_fail'\n     1: x\n  => 4: \
         y\nmath\n<5> expected but was\n<4>\n{ruler}\n.\nFinished in 0.01 seconds.\n{}\n2 tests, 2 assertions, 1 failures, 0 \
         errors, 0 pendings, 0 omissions, 0 notifications\n",
        "-".repeat(79)
    );
    assert_snapshot!(told("test-unit", &out, "", 1), @r"
    failed: 1 of 2 passed, 0 skipped
    fail [CartTest] CartTest#test_fail at test/tu.rb:4 (math)
    ");
}

#[test]
fn a_module_of_exunit_that_cannot_be_set_up_has_no_good_tests() {
    let out = "\nSetupTest [test/s_test.exs]\n  * test a [L#19]\r  * test a (0.00ms) [L#19]\n\n  0) SetupTest: failure on \
        setup_all callback, all tests have been invalidated\n     ** (RuntimeError) db down\n     stacktrace:\n       \
        test/s_test.exs:18: SetupTest.__ex_unit_setup_all_0/1\n\n\nFinished in 0.05 seconds (0.00s async, 0.05s sync)\n1 \
        test, 0 failures, 1 invalid\n";
    assert_snapshot!(told("exunit", out, "", 2), @r"
    collect_failed: 0 of 0 passed, 0 skipped
    problem SetupTest at test/s_test.exs:18 (** (RuntimeError) db down)
    ");
}

#[test]
fn a_hanging_test_of_exunit_has_a_name() {
    assert_snapshot!(told("exunit", "\nCartTest [test/c_test.exs]\n  * test hangs [L#4]", "", 137), @r"
    crashed: 0 of 1 passed, 0 skipped
    timeout [CartTest] CartTest test hangs (it was still running when the run was stopped)
    ");
}

#[test]
fn a_file_that_busted_cannot_load_is_a_problem_and_no_test() {
    let out = "*+\n1 success / 0 failures / 1 error / 0 pending : 0.001 seconds\n\nError -> spec/bad_spec.lua:1: unexpected \
        symbol near '='\nspec/bad_spec.lua\n";
    assert_snapshot!(told("busted", out, "", 1), @r"
    collect_failed: 1 of 1 passed, 0 skipped
    problem spec/bad_spec.lua at spec/bad_spec.lua:1 (unexpected symbol near '=')
    ");
}

#[test]
fn any_command_is_judged_by_its_exit_status_alone() {
    let out = "src/a.c:3:4: error: boom\n12 passed, 1 failed\nhttp://x.y:80: no place\n12:30:01: a time\n";
    assert_snapshot!(told("generic", out, "", 2), @r"
    failed: 12 of 13 passed, 0 skipped
    problem  at src/a.c:3 (error: boom)
    ");
    assert_snapshot!(told("generic", out, "", 0), @"passed: 0 of 0 passed, 0 skipped");
    assert_snapshot!(told("generic", "13 passed in 0.1s\n", "", 0), @"passed: 13 of 13 passed, 0 skipped");
    assert_snapshot!(told("generic", "13 passed in 0.1s\n", "", 1), @"failed: 0 of 0 passed, 0 skipped");
}

/// The rows of a run of nextest, from its start on.
fn nextest(rows: &str) -> String {
    let head = " Nextest run ID ea5f22b9 with nextest profile: default\n    Starting 3 tests across 1 binary (1 test skipped)\n";
    format!("{head}{rows}")
}

const PANIC: &str = "thread 't::bad' (7) panicked at src/lib.rs:23:9:\nassertion failed: x\n";

#[test]
fn what_a_test_of_nextest_prints_itself_is_its_own() {
    let rows = format!(
        "       START [         ] (1/3) demo t::a\n        PASS [   0.012s] (1/3) demo t::a\n       START [         ] (2/3) demo \
         t::bad\n\n{PANIC}        FAIL [   0.132s] (2/3) demo t::bad\n       START [         ] (3/3) demo t::worse\n\nthread \
         't::worse' (8) panicked at src/lib.rs:31:9:\nelse\n        FAIL [   0.132s] (3/3) demo t::worse\n────────────\n     \
         Summary [   0.696s] 3 tests run: 1 passed, 2 failed, 1 skipped\n        FAIL [   0.132s] (2/3) demo t::bad\n        \
         FAIL [   0.132s] (3/3) demo t::worse\nerror: test run failed\n"
    );
    assert_snapshot!(told("nextest-text", "", &nextest(&rows), 100), @r"
    failed: 1 of 4 passed, 1 skipped
    fail [demo] t::bad at src/lib.rs:23 (assertion failed: x)
    fail [demo] t::worse at src/lib.rs:31 (else)
    ");
}

#[test]
fn what_nextest_tells_only_at_its_end_counts() {
    let block = PANIC.lines().map(|line| format!("    {line}\n")).collect::<String>();
    let last = format!(
        "────────────\n     Summary [   0.696s] 3 tests run: 2 passed, 1 failed, 1 skipped\n        FAIL [   0.132s] (2/3) demo \
         t::bad\n  stderr ───\n\n{block}\nerror: test run failed\n"
    );
    let row = "        FAIL [   0.132s] (2/3) demo t::bad\n";
    let right = "failed: 2 of 4 passed, 1 skipped\nfail [demo] t::bad at src/lib.rs:23 (assertion failed: x)";
    for before in ["", row] {
        assert_eq!(told("nextest-text", "", &nextest(&format!("{before}{last}")), 100).trim_end(), right);
    }
    let good = "     Summary [   0.696s] 3 tests run: 3 passed (1 leaky), 1 skipped\n";
    assert_snapshot!(told("nextest-text", "", &nextest(good), 0), @"passed: 3 of 4 passed, 1 skipped");
}

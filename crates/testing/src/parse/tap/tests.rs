use insta::assert_snapshot;

use crate::parse::retelling::retold;

#[test]
fn a_plan_that_is_not_kept_is_never_whole() {
    assert_snapshot!(retold("tap", "1..3\nok 1\nok 2 - b\n", ""), @r"
    pass test 1
    pass b
    cut off
    ");
    assert_snapshot!(retold("tap", "1..1\nok 1 - a\nok 2 - b\n", ""), @r"
    pass a
    pass b
    complaint | 1 results were planned, 2 came
    ended
    ");
    assert_snapshot!(retold("tap", "ok 1 - a\nok 1 - b\n1..2\n1..2\n", ""), @r"
    pass a
    pass b
    complaint | there are two results with number 1
    complaint | there are two plans
    ended
    ");
}

#[test]
fn windows_line_ends_and_a_byte_order_mark_change_nothing() {
    assert_snapshot!(retold("tap", "\u{feff}TAP version 14\r\n1..1\r\nok 1 - a\r\n", ""), @r"
    pass a
    ended
    ");
}

#[test]
fn a_producer_that_bails_out_has_not_ended() {
    assert_snapshot!(retold("tap", "1..2\nok 1 - a\nBail out! no database\n", ""), @r"
    pass a
    run problem  | Bail out! no database
    cut off
    ");
}

#[test]
fn what_stands_inside_a_block_is_no_result() {
    let text = "TAP version 13\nnot ok 1 - a\n  ---\n  message: |\n    not ok 2 - fake\n  got: 1\n  expected: 2\n  at: lib/a.js:3:1\n  ...\n1..1\n";
    assert_snapshot!(retold("tap", text, ""), @r"
    fail a @ lib/a.js:3 | not ok 2 - fake
    ended
    ");
}

#[test]
fn perls_reasons_find_their_tests_whichever_stream_they_come_on() {
    let reason = "#   Failed test 'b'\n#   at t/x.t line 7.\n#          got: '1'\n#     expected: '2'\n";
    let on_err = retold("tap", "ok 1 - a\nnot ok 2 - b\n1..2\n", reason);
    let on_out = retold("tap", &format!("ok 1 - a\nnot ok 2 - b\n{reason}1..2\n"), "");
    assert_eq!(on_err, on_out);
    assert_snapshot!(on_err, @r"
    pass a
    fail b @ t/x.t:7 | got: '1'
    ended
    ");
}

#[test]
fn a_subtest_is_one_result_and_tells_which_of_its_parts_failed() {
    let text = "# Subtest: s\n    ok 1 - x\n    not ok 2 - y\n    1..2\nnot ok 1 - s\n1..1\n";
    assert_snapshot!(retold("tap", text, ""), @r"
    fail s | y
    ended
    ");
}

#[test]
fn of_node_the_innermost_results_are_the_tests() {
    let text = "TAP version 13\n# Subtest: s\n    # Subtest: x\n    ok 1 - x\n      ---\n      duration_ms: 1.5\n      ...\n    1..1\nok 1 - s\n  ---\n  duration_ms: 2\n  type: 'suite'\n  ...\n# Subtest: hangs\n";
    assert_snapshot!(retold("node-test-tap", text, ""), @r"
    pass s > x
    crash hangs | the process ended while it ran
    cut off
    ");
}

#[test]
fn a_mocha_test_cannot_print_a_result_ahead_of_its_turn() {
    assert_snapshot!(retold("mocha-tap", "ok 1 a\nok 7 fake\nok 2 b\n# tests 2\n# pass 2\n# fail 0\n1..2\n", ""), @r"
    pass a
    pass b
    ended
    ");
}

#[test]
fn bats_times_are_not_part_of_names_unless_the_first_has_none() {
    assert_snapshot!(retold("bats-tap", "1..2\nok 1 a in 5ms\nok 2 done in 9ms in 6ms\n", ""), @r"
    pass a
    pass done in 9ms
    ended
    ");
    assert_snapshot!(retold("bats-tap", "1..2\nok 1 a\nok 2 done in 9ms\n", ""), @r"
    pass a
    pass done in 9ms
    ended
    ");
}

#[test]
fn prove_says_which_file_died_and_of_what() {
    let out = "t/a.t .. \nDubious, test returned 255 (wstat 65280, 0xff00)\nFailed 1/2 subtests \n\nTest Summary Report\n-------------------\nt/a.t (Wstat: 65280 (exited 255) Tests: 1 Failed: 0)\n  Non-zero exit status: 255\n  Parse errors: Bad plan.  You planned 2 tests but ran 1.\nFiles=1, Tests=1,  0 wallclock secs\nResult: FAIL\n";
    assert_snapshot!(retold("prove", out, "no such table at t/a.t line 9.\n"), @r"
    pass test 1
    suite problem t/a.t @ t/a.t:9 | no such table at t/a.t line 9.
    ended
    ");
}

#[test]
fn a_number_that_prove_claims_costs_no_time_and_no_memory() {
    let out = "t/a.t .. ok\nt/b.t .. ok\nAll tests successful.\nFiles=2, Tests=18446744073709551615,  0 wallclock secs\nResult: PASS\n";
    assert!(retold("prove", out, "").lines().count() <= 100_001);
}

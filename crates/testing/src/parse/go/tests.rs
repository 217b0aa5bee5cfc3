use insta::assert_snapshot;

use crate::parse::retelling::retold;

/// Events of one package, shortened: `run TestA`, `out TestA text`, `pass TestA`, and without a test for the package.
fn stream(events: &[&str]) -> String {
    let mut lines = String::from("{\"Action\":\"start\",\"Package\":\"shop/calc\"}\n");
    for event in events {
        let mut words = event.splitn(3, ' ');
        let (action, test, text) = (words.next().unwrap(), words.next().unwrap_or(""), words.next());
        let action = if action == "out" { "output" } else { action };
        let test = if test.is_empty() { String::new() } else { format!(",\"Test\":\"{test}\"") };
        let output =
            text.map(|text| format!(",\"Output\":{}", serde_json::to_string(&format!("{text}\n")).unwrap()));
        lines += &format!(
            "{{\"Action\":\"{action}\",\"Package\":\"shop/calc\"{test}{}}}\n",
            output.unwrap_or_default()
        );
    }
    lines
}

#[test]
fn a_parent_counts_only_if_it_fails_by_itself() {
    let events = stream(&[
        "run TestA",
        "run TestA/x",
        "pass TestA/x",
        "out TestA     a_test.go:5: got 1",
        "fail TestA",
        "run TestB",
        "run TestB/y",
        "out TestB/y     a_test.go:9: want 2",
        "fail TestB/y",
        "fail TestB",
        "fail",
    ]);
    assert_snapshot!(retold("go-json", &events, ""), @r"
    pass TestA/x
    fail TestA @ calc/a_test.go:5 | got 1
    fail TestB/y @ calc/a_test.go:9 | want 2
    ended
    ");
}

#[test]
fn who_waited_for_its_turn_when_the_process_died_did_not_run() {
    let events = stream(&[
        "run TestWaits",
        "pause TestWaits",
        "run TestDies",
        "out TestDies panic: boom",
        "out TestDies ",
        "out TestDies goroutine 7 [running]:",
        "out TestDies shop/calc.TestDies.func1()",
        "out TestDies \t/w/calc/a_test.go:3 +0x1",
        "fail",
    ]);
    assert_snapshot!(retold("go-json", &events, ""), @r"
    crash TestDies @ calc/a_test.go:3 | boom
    notrun TestWaits
    ended
    ");
}

#[test]
fn a_benchmark_has_no_end_and_is_no_test() {
    let events = stream(&[
        "run TestA",
        "pass TestA",
        "run BenchmarkB",
        "out BenchmarkB BenchmarkB-8  100  5 ns/op",
        "pass",
    ]);
    assert_snapshot!(retold("go-json", &events, ""), @r"
    pass TestA
    ended
    ");
}

#[test]
fn a_stream_that_stops_leaves_its_running_test_open() {
    let events = stream(&["run TestA", "run TestA/x"]);
    assert_snapshot!(retold("go-json", &events, ""), @r"
    crash TestA/x | the process ended while it ran
    cut off
    ");
}

#[test]
fn before_go_1_24_the_compiler_speaks_beside_the_stream() {
    let out = "FAIL\tshop/calc [build failed]\n{\"Action\":\"pass\",\"Package\":\"shop/util\",\"Test\":\"TestU\"}\n{\"Action\":\"pass\",\"Package\":\"shop/util\"}\n";
    let err = "go: downloading x v1.0.0\n# shop/calc [shop/calc.test]\ncalc/calc.go:3:5: undefined: x\n";
    assert_snapshot!(retold("go-json", out, err), @r"
    pass TestU
    build problem shop/calc @ calc/calc.go:3 | undefined: x
    ended
    ");
    assert_snapshot!(retold("go-json", out, ""), @r"
    pass TestU
    build problem shop/calc | the package could not be built
    ended
    ");
}

#[test]
fn a_package_that_fails_without_a_test_is_a_problem() {
    let events = stream(&["run TestA", "pass TestA", "out  goleak: found unexpected goroutines", "fail"]);
    assert_snapshot!(retold("go-json", &events, ""), @r"
    pass TestA
    run problem shop/calc | goleak: found unexpected goroutines
    ended
    ");
}

#[test]
fn the_go_command_that_gives_up_says_why() {
    let err = "go: cannot find main module, but found .git/config in /w\n\tto create a module there, run:\n";
    assert_snapshot!(retold("go-text", "", err), @r"
    run problem  | cannot find main module, but found .git/config in /w
    cut off
    ");
}

#[test]
fn in_text_a_test_cannot_end_or_begin_others() {
    let text = "=== RUN   TestA\n--- FAIL: TestGhost (0.00s)\n=== RUN   TestGhost2\nPASS\nok  \tghost/package\t0.1s\nno line end--- PASS: TestA (0.00s)\n=== RUN   TestB\n--- PASS: TestB (0.00s)\nPASS\nok  \tshop/calc\t0.2s\n";
    assert_snapshot!(retold("go-text", text, ""), @r"
    pass TestA
    pass TestB
    ended
    ");
}

#[test]
fn in_text_an_exit_in_the_middle_names_the_test() {
    let text = "=== RUN   TestA\nFAIL\tshop/calc\t0.1s\n=== RUN   TestB\n--- PASS: TestB (0.00s)\nPASS\nok  \tshop/util\t0.2s\nFAIL\n";
    assert_snapshot!(retold("go-text", text, ""), @r"
    crash TestA | the process ended while it ran
    pass TestB
    ended
    ");
}

#[test]
fn without_v_a_good_package_counts_as_one_test_and_an_empty_one_as_none() {
    let text = "ok  \tshop/calc\t(cached)\nok  \tshop/util\t0.1s\tcoverage: 80.0% of statements\nok  \tshop/none\t0.1s [no tests to run]\n?   \tshop/cmd\t[no test files]\n";
    assert_snapshot!(retold("go-text", text, ""), @r"
    pass shop/calc
    pass shop/util
    ended
    ");
}

#[test]
fn lines_that_a_test_prints_are_no_tests_with_json_and_v() {
    let events = stream(&[
        "run TestA",
        "fail TestGhost",
        "out  FAIL",
        "out  no line end--- PASS: TestA (0.00s)",
        "run TestB",
        "run TestPhantom",
        "out TestPhantom === RUN   TestPhantom",
        "pass TestB",
        "pass",
    ]);
    assert_snapshot!(retold("go-json", &events, ""), @r"
    pass TestB
    pass TestA
    ended
    ");
}

#[test]
fn a_failure_of_a_test_that_never_began_is_believed_if_nothing_else_explains_its_package() {
    let events = stream(&["run TestA", "pass TestA", "fail TestA", "fail"]);
    assert_snapshot!(retold("go-json", &events, ""), @r"
    fail TestA
    ended
    ");
}

#[test]
fn a_result_may_stand_behind_what_a_test_printed() {
    let out = "no line end--- FAIL: TestSub (0.00s)\n    --- FAIL: TestSub/a/b (0.00s)\n        a_test.go:6: bad\nFAIL\n\
        FAIL\tdemo\t0.003s\nFAIL\n";
    assert_snapshot!(retold("go-text", out, ""), @r"
    fail TestSub/a/b @ a_test.go:6 | bad
    ended
    ");
}

#[test]
fn a_benchmark_that_fails_is_a_failed_test() {
    let out = "goos: linux\nBenchmarkX-2   \t       1\t       310.0 ns/op\n--- FAIL: BenchmarkF\n    a_test.go:5: no\nFAIL\n\
        exit status 1\nFAIL\tdemo\t0.012s\nFAIL\n";
    assert_snapshot!(retold("go-text", out, ""), @r"
    fail BenchmarkF @ a_test.go:5 | no
    ended
    ");
    let verbose = "=== RUN   TestA\n--- PASS: TestA (0.00s)\nBenchmarkF\n    a_test.go:5: no\n--- FAIL: BenchmarkF\nFAIL\n\
        FAIL\tdemo\t0.012s\nFAIL\n";
    assert_snapshot!(retold("go-text", verbose, ""), @r"
    pass TestA
    fail BenchmarkF
    ended
    ");
}

#[test]
fn a_panic_is_placed_in_a_module_whose_name_has_no_dot() {
    let out = "--- FAIL: TestP (0.00s)\npanic: assignment to entry in nil map [recovered, repanicked]\n\n\
        goroutine 20 [running]:\ntesting.tRunner.func1.2({0x6bf8d0, 0x6f6fe0})\n\t/opt/go/src/testing/testing.go:2125 +0x232\n\
        panic({0x6bf8d0?, 0x6f6fe0?})\n\t/opt/go/src/runtime/panic.go:859 +0x125\ndemo.TestP(0xf569534a6c8?)\n\
        \t/tmp/demo/a_test.go:4 +0x28\ntesting.tRunner(0xf569534a6c8, 0x6dd420)\n\t/opt/go/src/testing/testing.go:2195 +0xea\n\
        FAIL\tdemo\t0.006s\nFAIL\n";
    assert_snapshot!(retold("go-text", out, ""), @r"
    fail TestP @ a_test.go:4 | assignment to entry in nil map
    ended
    ");
}

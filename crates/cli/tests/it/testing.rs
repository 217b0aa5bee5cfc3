//! `rehearsal test`, as a person, a program or an agent calls it.

use insta::assert_snapshot;
use rustix::process::Signal;
use serde_json::Value;

use crate::env::TestEnv;
use crate::json::{schema, validate};
use crate::running::wait_until;

const GOOD: &str = "echo 1..2\necho 'ok 1 - adds'\necho 'ok 2 - prints # SKIP no printer'";
const BAD: &str = "echo TAP version 13
echo 1..2
echo 'ok 1 - adds'
echo 'not ok 2 - subtracts'
echo '  ---'
echo '  message: expected 1, got 2'
echo '  at: calc.sh:12'
echo '  ...'
exit 1";
/// Fails the first time, and passes from then on; with `--sandbox off` only, which lets it remember.
const MOODY: &str = "echo 1..1
if [ -e been-here ]; then echo 'ok 1 - connects'; exit 0; fi
touch been-here
echo 'not ok 1 - connects'
exit 1";

fn project(test: &str) -> TestEnv {
    let env = TestEnv::new();
    env.script("test", test).commit("Test");
    env
}

fn unittest(content: &str) -> Option<TestEnv> {
    let env = TestEnv::new();
    env.file("test_cart.py", content).commit("Test");
    env.has_tool("python3").then_some(env)
}

#[test]
fn a_good_run_is_a_line() {
    assert_snapshot!(project(GOOD).run(&["test"]), @"PASSED  tap  2 tests: 1 passed, 1 skipped in [TIME]");
}

#[test]
fn a_failure_comes_with_its_place_and_its_message() {
    assert_snapshot!(project(BAD).run(&["test"]), @"
      1. subtracts  calc.sh:12
         expected 1, got 2

    FAILED  tap  2 tests: 1 passed, 1 failed in [TIME]
        log: [STATE]/tests/[KEPT]/output-0.log
    [exit 3]
    ");
}

#[test]
fn failures_of_unittest_come_with_their_line() {
    let content = "import unittest


class Cart(unittest.TestCase):
    def test_total(self):
        self.assertEqual(3, 2 + 2)

    def test_empty(self):
        self.assertFalse([])
";
    let Some(env) = unittest(content) else { return };
    assert_snapshot!(env.run(&["test"]), @"
      1. test_cart.Cart.test_total  test_cart.py:6
         AssertionError: 3 != 4
         → test_cart.py:6: AssertionError: 3 != 4 (`self.assertEqual(3, 2 + 2)`); the line changed in the last commit

    FAILED  unittest  2 tests: 1 passed, 1 failed in [TIME]
        log: [STATE]/tests/[KEPT]/output-0.log
       next: python3 -m unittest test_cart.Cart.test_total
    [exit 3]
    ");
}

#[test]
fn programs_that_speak_tap_are_run_by_prove() {
    let env = TestEnv::new();
    env.script("t/cart.t", "echo 1..1\necho 'ok 1 - adds'").commit("Test");
    if !env.has_tool("prove") || !env.has_tool("perl") {
        return;
    }
    let document = env.json(&["test"]);
    assert_eq!(document["framework"], "tap", "{document:#}");
    assert_eq!(document["summary"]["passed"], 1);
}

#[test]
fn a_hanging_test_is_named_and_what_ended_before_is_kept() {
    let content = "import time, unittest


class Cart(unittest.TestCase):
    def test_a_quick(self):
        pass

    def test_b_hangs(self):
        time.sleep(600)

    def test_c_never_runs(self):
        pass
";
    let Some(env) = unittest(content) else { return };
    let document = env.run(&["test", "--timeout", "3s", "--json"]).ends_with(124).document();
    assert_eq!(document["verdict"], "timed_out", "{document:#}");
    let status = |name: &str| {
        let tests = document["tests"].as_array().unwrap();
        tests
            .iter()
            .find(|test| test["name"].as_str().unwrap().ends_with(name))
            .map(|test| test["status"].clone())
    };
    assert_eq!(status("test_a_quick").unwrap(), "pass", "{document:#}");
    assert_eq!(status("test_b_hangs").unwrap(), "timeout", "{document:#}");
    assert_eq!(status("test_c_never_runs"), None, "{document:#}");
}

#[test]
fn a_crash_keeps_what_ended_before() {
    let env = project("echo 1..3\necho 'ok 1 - adds'\nkill -SEGV $$");
    assert_snapshot!(env.run(&["test"]), @"
    CRASHED  tap  1 test: 1 passed in [TIME]
        why: signal 11 ended the runner
        why: 1 of 3 declared tests were seen
        why: the run did not come to its own end: tests may be missing
        log: [STATE]/tests/[KEPT]/output-0.log
    [exit 3]
    ");
}

#[test]
fn a_runner_that_is_missing_is_a_matter_of_set_up() {
    let env = TestEnv::new();
    env.file("go.mod", "module cart\n").file("cart_test.go", "package cart\n").commit("Test");
    assert_snapshot!(env.run(&["test"]), @"
    RUNNER MISSING  go  no tests ran in [TIME]
        why: `go` is not installed
       next: install it, or name another command: rehearsal test --command COMMAND
    [exit 2]
    ");
    assert_snapshot!(env.run(&["test", "--command", "no-such-runner --all"]), @"
      1. error
         [SCRATCH]/bin/sh: 1: no-such-runner: not found

    RUNNER MISSING  generic  no tests ran in [TIME]
        why: a command was not found: [SCRATCH]/bin/sh: 1: no-such-runner: not found
        log: [STATE]/tests/[KEPT]/output-0.log
       next: install it, or name another command: rehearsal test --command COMMAND
    [exit 2]
    ");
}

#[test]
fn where_there_are_no_tests_the_run_is_not_good() {
    let env = TestEnv::new();
    assert_snapshot!(env.run(&["test"]), @"
    no tests were found here
    next: name the command that runs them: rehearsal test --command COMMAND
    [exit 3]
    ");
    assert_eq!(env.run(&["test", "--json"]).ends_with(3).document()["verdict"], "no_tests");
    assert_snapshot!(env.run(&["test", "--explain"]), @"no tests were found here");
}

#[test]
fn a_command_is_run_instead_of_what_was_found() {
    let env = project(BAD);
    env.script("other", GOOD);
    env.run(&["test", "--command", "./other"]).ends_with(0).says("PASSED  tap  2 tests");
    assert_snapshot!(env.run(&["test", "--command", "echo fine"]), @"PASSED  generic  the command ended well, and named no tests in [TIME]");
    assert_snapshot!(env.run(&["test", "--command", "echo no >&2; exit 7"]), @"
      1. error
         no

    FAILED  generic  no tests ran in [TIME]
        why: the command exited with 7
        log: [STATE]/tests/[KEPT]/output-0.log
    [exit 3]
    ");
}

#[test]
fn a_slip_in_an_argument_is_answered_with_what_was_meant() {
    let env = project(GOOD);
    assert_snapshot!(env.run(&["test", "--framework", "pytst"]), @"
    [stderr]
    error: invalid value 'pytst' for '--framework <NAME>': did you mean `pytest`? there are go, jest, vitest, mocha, node-test, ava, bun, deno, pytest, unittest, cargo-test, nextest, maven, gradle, junit, rspec, minitest, phpunit, dotnet, ctest, gtest, catch2, bats, tap, exunit, busted, generic

    For more information, try '--help'.
    [exit 2]
    ");
    assert_snapshot!(env.run(&["test", "--timeout", "20m"]), @"
    [stderr]
    error: invalid value '20m' for '--timeout <DURATION>': 20m is too long, at most 15m: run a part of the tests at a time, by a pattern

    For more information, try '--help'.
    [exit 2]
    ");
    assert_snapshot!(env.run(&["test", "--timeout", "0s"]), @"
    [stderr]
    error: invalid value '0s' for '--timeout <DURATION>': the tests need some time: write `90s` or `5m`

    For more information, try '--help'.
    [exit 2]
    ");
    assert_snapshot!(env.run(&["test", "--env", "LONELY"]), @"
    [stderr]
    error: invalid value 'LONELY' for '--env <NAME=VALUE>': write NAME=VALUE

    For more information, try '--help'.
    [exit 2]
    ");
    assert_snapshot!(env.run(&["test", "--baseline", "mian"]), @"
    [stderr]
    error: cannot check out `mian`: there is no such commit
    [exit 4]
    ");
    assert_eq!(env.json(&["test", "history"])["runs"], serde_json::json!([]), "a slip must not cost a run");
}

#[test]
fn variables_reach_the_tests_and_secrets_do_not() {
    let env = project("echo 1..1\necho \"ok 1 - $MOOD and ${GITHUB_TOKEN:-nothing}\"")
        .var("GITHUB_TOKEN", "ghp_3kP9dXv7Lm2Qz8Wc5Rt1Yb6Nf4Hs0JgAaBbC");
    let document = env.json(&["test", "--env", "MOOD=calm"]);
    assert_eq!(document["tests"][0]["name"], "calm and nothing");
}

#[test]
fn a_test_that_passes_the_second_time_is_flaky_and_not_silently_good() {
    let env = project(MOODY);
    assert_snapshot!(env.run(&["test", "--sandbox", "off", "--retries", "2"]), @"
      flaky: connects failed, then passed (attempt 2)
    PASSED  tap  1 test: 1 passed in [TIME]
       note: 1 test failed and passed when run again: flaky
    ");
}

#[test]
fn reports_for_other_tools_can_be_read_back() {
    let env = project(BAD);
    env.run(&["test", "--junit", "out.xml", "--ctrf", "out.json"]).ends_with(3);
    let ctrf: Value = serde_json::from_str(&env.read("out.json")).unwrap();
    assert_eq!(ctrf["results"]["summary"]["failed"], 1, "{ctrf:#}");
    let document = env.run(&["test", "--from", "out.xml", "--exit", "1", "--json"]).ends_with(3).document();
    assert_eq!(document["summary"]["passed"], 1, "{document:#}");
    assert_eq!(document["summary"]["failed"], 1, "{document:#}");
    assert_eq!(document["tests"][1]["name"], "subtracts");
    assert_eq!(document["tests"][1]["error"], "expected 1, got 2");
}

#[test]
fn a_report_that_cannot_be_written_is_told_before_the_tests_run() {
    let env = project("touch it-ran; echo '1..1'; echo 'ok 1 - adds'");
    let refused = env.run(&["test", "--junit", "no/such/place.xml", "--command", "sh test.sh"]);
    refused.ends_with(2).says("no/such/place.xml").says("its directory must be there, and writable");
    assert!(!env.repo.join("it-ran").exists());
}

#[test]
fn who_follows_reads_events_and_then_the_report() {
    let env = project(BAD);
    let output = env.run(&["test", "--follow"]).ends_with(3);
    let lines: Vec<Value> = output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (last, events) = lines.split_last().unwrap();
    validate(&schema(&env, "test"), last);
    let event = schema(&env, "test-event");
    for line in events {
        validate(&event, line);
    }
    let names: Vec<&str> = events.iter().map(|line| line["event"].as_str().unwrap()).collect();
    assert_eq!(names, ["run_started", "declared", "test_finished", "test_finished"]);
}

#[test]
fn events_come_while_the_tests_run() {
    let env = project(
        "echo 'ok 1 - adds'\necho 'ok 2 - prints'\nuntil [ -e ../agent/go ]; do sleep 0.02; done\necho 1..2",
    );
    let run =
        env.start(&["test", "--follow", "--sandbox", "off", "--command", "./test", "--framework", "tap"]);
    run.until_it_says("test_finished");
    env.let_the_agent_go_on();
    run.finish().ends_with(0);
}

#[test]
fn agents_are_told_the_failures_first_and_in_few_words() {
    let env = project(&format!("echo '{}'\n{BAD}", "# noise\n".repeat(100)));
    assert_snapshot!(env.run(&["test", "--agent"]), @"
    Test execution completed:
    Framework: tap
    Status: FAILED (1/2 passed)
    Duration: [TIME]

    Failed Tests:
    1. subtracts (calc.sh:12)
       Error: expected 1, got 2

    Log: [STATE]/tests/[KEPT]/output-0.log
    [exit 3]
    ");
}

#[test]
fn an_answer_for_agents_keeps_to_its_budget() {
    let many = "echo 1..200
i=1
while [ $i -le 200 ]; do echo \"not ok $i - rule $i of the long list of rules # in the file\"; i=$((i+1)); done
exit 1";
    let output = project(many).run(&["test", "--agent", "--budget", "100"]).ends_with(3);
    assert!(output.stdout.len() <= 400, "{} bytes: {output}", output.stdout.len());
    assert!(output.stdout.contains("200"), "{output}");
}

#[test]
fn what_would_run_is_explained_and_nothing_runs() {
    let env = project("touch ../agent/ran");
    env.file("Makefile", "test:\n\t./test\n")
        .file("go.mod", "module cart\n")
        .file("a_test.go", "package cart\n");
    assert_snapshot!(env.run(&["test", "--explain"]), @"
    go in .
      found by go.mod: a module
      found by a_test.go
    generic in . (not run: the runners themselves were found, and tell more)
      found by Makefile: target `test`
    generic in . (not run: the runners themselves were found, and tell more)
      found by test: can be executed
    cannot run: go test -json ./...
      because `go` is not installed
    ");
    assert!(!env.scratch.join("agent/ran").exists());
}

#[test]
fn a_change_makes_the_tests_run_again_until_ctrl_c() {
    let env = project(GOOD);
    let run = env.start(&["test", "--watch"]);
    run.until_it_says("PASSED");
    env.script("test", BAD);
    run.until_it_says("FAILED");
    run.signal(Signal::INT);
    run.finish().ends_with(3).never_says("[stderr]");
}

#[test]
fn a_change_during_a_run_is_not_missed() {
    let env =
        project("touch ../agent/ready\nuntil [ -e ../agent/go ]; do sleep 0.02; done\necho 1..1\necho ok 1");
    let run = env.start(&["test", "--watch", "--sandbox", "off"]);
    env.until_the_agent_waits();
    env.script("test", BAD);
    env.let_the_agent_go_on();
    run.until_it_says("FAILED");
    run.signal(Signal::INT);
    run.finish();
}

/// A run that is stopped in its third test, after which nothing of it is left.
fn stopped_by(signal: Signal) -> crate::env::Output {
    let env =
        project("echo $$ > ../agent/pid\necho 1..3\necho 'ok 1 - adds'\necho 'ok 2 - prints'\nsleep 600");
    let run =
        env.start(&["test", "--follow", "--sandbox", "off", "--command", "./test", "--framework", "tap"]);
    run.until_it_says("test_finished");
    run.signal(signal);
    let output = run.finish();
    let process = format!("/proc/{}", env.read(env.scratch.join("agent/pid")).trim());
    wait_until("the end of the tests", || !std::path::Path::new(&process).exists());
    output
}

#[test]
fn ctrl_c_ends_the_tests_and_keeps_what_ended() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let output = stopped_by(signal).ends_with(code);
        let report: Value = serde_json::from_str(output.stdout.lines().last().unwrap()).unwrap();
        assert_eq!(report["success"], false, "{report:#}");
        assert_eq!(report["partial"], true, "{report:#}");
        assert_eq!(report["tests"][0]["status"], "pass", "{report:#}");
    }
}

#[test]
fn a_whole_repository_with_several_runners_is_one_answer() {
    let env = TestEnv::new();
    env.script("test", GOOD);
    env.script("t/cart.t", "echo 1..1\necho 'not ok 1 - adds'");
    env.file(
        "shop/test_shop.py",
        "import unittest\n\n\nclass Shop(unittest.TestCase):\n    def test_opens(self):\n        pass\n",
    );
    if !(env.has_tool("python3") && env.has_tool("prove") && env.has_tool("perl")) {
        return;
    }
    let document = env.run(&["test", "--json"]).ends_with(3).document();
    validate(&schema(&env, "test"), &document);
    let projects: Vec<String> = document["projects"]
        .as_array()
        .unwrap()
        .iter()
        .map(|project| format!("{} {}", project["framework"], project["verdict"]))
        .collect();
    assert_eq!(projects, [r#""unittest" "passed""#, r#""tap" "failed""#], "{document:#}");
}

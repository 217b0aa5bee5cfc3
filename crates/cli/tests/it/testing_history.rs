//! What earlier runs tell: flaky, slow, new and known failures.

use insta::assert_snapshot;
use rustix::process::Signal;
use serde_json::Value;

use crate::env::TestEnv;

/// Results by the content of a file: `adds` and `prints`, each `ok` or `not ok`.
const TOLD: &str = "echo 1..2
code=0
for test in adds prints; do
  read -r result < $test
  echo \"$result - $test\"
  [ \"$result\" = ok ] || code=1
done
exit $code";

fn project(adds: &str, prints: &str) -> TestEnv {
    let env = TestEnv::new();
    env.script("test", TOLD)
        .file("adds", format!("{adds}\n"))
        .file("prints", format!("{prints}\n"))
        .commit("Test");
    env
}

#[test]
fn before_the_first_run_there_is_nothing_to_tell() {
    let env = TestEnv::new();
    assert_snapshot!(env.run(&["test", "history"]), @"no runs are remembered yet; `rehearsal test` makes one");
    assert_snapshot!(env.run(&["test", "flaky"]), @"no test gave different results on the same files");
    assert_snapshot!(env.run(&["test", "slow"]), @"no runs are remembered yet; `rehearsal test` makes one");
}

#[test]
fn runs_are_remembered() {
    let env = project("ok", "ok");
    env.must(&["test"]);
    env.file("adds", "not ok\n");
    env.run(&["test"]).ends_with(3);
    env.file("adds", "ok\n");
    env.must(&["test"]);
    // How wide the column of times is depends on the time.
    let table = env.run(&["test", "history"]).to_string();
    let lines: Vec<String> =
        table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert_snapshot!(lines.join("\n"), @"
    RUN WHEN RUNNER PROJECT VERDICT GOOD
    [RUN-ID] [TIME] ago tap . passed 2/2
    [RUN-ID] [TIME] ago tap . failed 1/2
    [RUN-ID] [TIME] ago tap . passed 2/2
    ");
    assert_eq!(env.json(&["test", "history", "--last", "2"])["runs"].as_array().unwrap().len(), 2);
    // The files differed: that is no sign of a flaky test.
    assert_eq!(env.json(&["test", "flaky"])["tests"], serde_json::json!([]));
    assert_snapshot!(env.run(&["test", "slow"]), @"
    adds  passes again; failed in 1 of 3 runs
    prints  passed in 3 of 3 runs
    ");
}

#[test]
fn different_results_on_the_same_files_are_flaky() {
    // The sandbox is off, so that the test can see what is not a file of the repository.
    let env = TestEnv::new();
    env.script("test", "echo 1..1\nif [ -e ../agent/go ]; then echo 'ok 1 - connects'; else echo 'not ok 1 - connects'; exit 1; fi");
    env.commit("Test");
    let test = ["test", "--sandbox", "off"];
    env.run(&test).ends_with(3);
    env.let_the_agent_go_on();
    env.run(&test).ends_with(0);
    assert_snapshot!(env.run(&["test", "flaky"]), @"connects  flaky: failed in 1 of 2 runs, flips 100 % (21 to 100 %) of the time on the same tree");
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|test| test["name"].as_str().unwrap()).collect()
}

#[test]
fn new_known_and_fixed_failures_are_told_apart() {
    let env = project("ok", "not ok");
    env.git(&["branch", "base"]);
    env.file("adds", "not ok\n").commit("Break");
    // The base was never tested: it is run in a checkout that is gone afterwards.
    assert_snapshot!(env.run(&["test", "--baseline", "base"]), @"
      1. adds, prints  new in part

    FAILED  tap  2 tests: 2 failed in [TIME]
    compared with `base`: 1 new, 1 known
      new    adds
        log: [STATE]/tests/[KEPT]/output-0.log
    [exit 3]
    ");
    assert_eq!(env.git(&["worktree", "list"]).lines().count(), 1);
    env.file("prints", "ok\n").commit("Mend");
    // Now its results are known.
    assert_snapshot!(env.run(&["test", "--baseline", "base"]), @"
      1. adds  new

    FAILED  tap  2 tests: 1 passed, 1 failed in [TIME]
    compared with `base`: 1 new, 1 fixed
      new    adds
      fixed  prints
       note: the results on `base` are those of an earlier run of that commit
        log: [STATE]/tests/[KEPT]/output-0.log
    [exit 3]
    ");
    let document = env.run(&["test", "--baseline", "base", "--json"]).document();
    assert_eq!(names(&document["comparison"]["new"]), ["adds"], "{document:#}");
    assert_eq!(names(&document["comparison"]["fixed"]), ["prints"], "{document:#}");
    env.run(&["test", "--baseline", "--all"]).ends_with(2);
}

#[test]
fn a_base_that_was_tested_is_not_run_again() {
    let env = project("ok", "ok");
    env.must(&["test"]);
    env.git(&["branch", "base"]);
    env.file("adds", "not ok\n").commit("Break");
    env.run(&["test", "--baseline", "base"]).ends_with(3).says("earlier run of that commit");
    assert_eq!(env.json(&["test", "history"])["runs"].as_array().unwrap().len(), 2);
}

#[test]
fn ctrl_c_while_the_base_is_tested_leaves_no_checkout_and_no_half_truth() {
    let env = TestEnv::new();
    env.script(
        "test",
        "echo 1..2\necho 'ok 1 - adds'\ntouch ../agent/ready 2> /dev/null || touch \"$READY\"\nsleep 600",
    )
    .commit("Test");
    env.git(&["branch", "base"]);
    env.script("test", "echo 1..1\necho 'ok 1 - adds'").commit("Quick");
    let ready = format!("READY={}", env.scratch.join("agent/ready"));
    let run = env.start(&["test", "--baseline", "base", "--sandbox", "off", "--env", &ready]);
    env.until_the_agent_waits();
    run.signal(Signal::INT);
    run.finish().ends_with(130);
    assert_eq!(env.git(&["worktree", "list"]).lines().count(), 1);
    assert_eq!(std::fs::read_dir(env.scratch.join("tmp")).unwrap().count(), 0);
    let runs = env.json(&["test", "history"]);
    let whole: Vec<&Value> = runs["runs"].as_array().unwrap().iter().map(|run| &run["whole"]).collect();
    assert_eq!(whole, [false, true], "{runs:#}");
}

#[test]
fn a_run_that_was_stopped_is_no_base() {
    let env = TestEnv::new();
    env.script("test", "echo 1..3\necho 'ok 1 - adds'\necho 'ok 2 - prints'\nsleep 600").commit("Test");
    let run =
        env.start(&["test", "--follow", "--sandbox", "off", "--command", "./test", "--framework", "tap"]);
    run.until_it_says("test_finished");
    run.signal(Signal::INT);
    run.finish().ends_with(130);
    assert_eq!(env.json(&["test", "history"])["runs"][0]["whole"], false);
}

//! `rehearsal test --from`: outputs of runs elsewhere.

use camino::{Utf8Path, Utf8PathBuf};
use insta::assert_snapshot;
use serde_json::Value;

use crate::env::TestEnv;

fn fixtures() -> Utf8PathBuf {
    Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("../testing/tests/fixtures")
}

/// Whether a run was good, by what is known of it.
fn was_good(sample: &Value) -> bool {
    let truth = &sample["truth"];
    if let Some(told) = truth["success"].as_bool() {
        return told;
    }
    let some = |key: &str| truth[key].as_array().is_some_and(|list| !list.is_empty());
    let is = |key: &str| truth[key] == true;
    let bad = ["suite_errors", "build_errors", "run_errors", "failing"].into_iter().any(some)
        || ["timed_out", "crashed"].into_iter().any(is)
        || truth["failed"].as_u64().is_some_and(|failed| failed > 0);
    // Of some samples it is not known how they ended.
    let ended_well =
        sample["exit_code"] == 0 || (sample["exit_code"].is_null() && sample["signal"].is_null());
    !bad && ended_well && truth["passed"].as_u64().is_none_or(|passed| passed > 0)
}

#[test]
fn every_sample_ends_as_its_run_did() {
    let env = TestEnv::without_repository();
    let index = std::fs::read_to_string(fixtures().join("index.jsonl")).unwrap();
    let mut wrong = Vec::new();
    for line in index.lines() {
        let sample: Value = serde_json::from_str(line).unwrap();
        if sample["dir"] == "denials" {
            continue;
        }
        let directory = fixtures().join(sample["dir"].as_str().unwrap());
        let mut args = vec!["test".to_owned(), "--json".to_owned()];
        let status = sample["exit_code"].as_i64().or(sample["signal"].as_i64().map(|signal| -signal));
        args.extend(status.iter().flat_map(|status| ["--exit".to_owned(), status.to_string()]));
        args.push("--from".to_owned());
        let files = sample["files"].as_object().unwrap().values().filter_map(Value::as_str);
        args.extend(files.map(|name| directory.join(name.trim_end_matches('/')).to_string()));
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let output = env.run(&args);
        let document = output.document();
        let (id, verdict, good) = (&sample["id"], &document["verdict"], was_good(&sample));
        let exit = match verdict.as_str().unwrap() {
            "passed" => 0,
            "timed_out" => 124,
            "runner_missing" => 2,
            _ => 3,
        };
        if document["success"] != good || output.code != exit || (exit == 0) != good {
            wrong.push(format!(
                "{id}: {verdict}, exit {}, in truth good: {good}, {}",
                output.code, document["reasons"]
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

const GOOD: &str = "1..2\nok 1 - adds\nok 2 - prints\n";

fn log(content: &str) -> TestEnv {
    let env = TestEnv::without_repository();
    env.file("ci.log", content);
    env
}

#[test]
fn how_a_run_ended_belongs_to_its_log() {
    let env = log(GOOD);
    assert_snapshot!(env.run(&["test", "--from", "ci.log", "--exit", "0"]), @"PASSED  tap  2 tests: 2 passed in [TIME]");
    assert_snapshot!(env.run(&["test", "--from", "ci.log", "--exit", "-9"]), @"
    CRASHED  tap  2 tests: 2 passed in [TIME]
        why: signal 9 ended the runner
    [exit 3]
    ");
    assert_snapshot!(env.run(&["test", "--from", "ci.log", "--exit", "137"]), @"
    CRASHED  tap  2 tests: 2 passed in [TIME]
        why: signal 9 ended the runner
    [exit 3]
    ");
    assert_snapshot!(env.run(&["test", "--from", "ci.log", "--exit", "124"]), @"
    TIMED OUT  tap  2 tests: 2 passed in [TIME]
        why: the time limit ended the run
        why: nothing failed, but the runner exited with 124
        why: the run did not come to its own end: tests may be missing
    [exit 124]
    ");
    assert_snapshot!(env.run(&["test", "--from", "ci.log", "--exit", "1"]), @"
    INCONSISTENT  tap  2 tests: 2 passed in [TIME]
        why: nothing failed, but the runner exited with 1
    [exit 3]
    ");
}

#[test]
fn a_file_that_is_not_there_is_told() {
    let env = log(GOOD);
    assert_snapshot!(env.run(&["test", "--from", "ci.log", "no.log"]), @"
    [stderr]
    error: there is no file `no.log`
    [exit 2]
    ");
    assert_snapshot!(env.run(&["test", "--exit", "1"]), @"
    [stderr]
    error: the following required arguments were not provided:
      --from <FILE>...

    Usage: rehearsal test --from <FILE>... --exit <N> [PATTERN]

    For more information, try '--help'.
    [exit 2]
    ");
}

const SUITE: &str =
    r#"<testsuite name="cart" tests="1"><testcase classname="cart" name="NAME"/></testsuite>"#;

#[test]
fn several_files_and_directories_are_one_run() {
    let env = log(GOOD);
    env.file("reports/TEST-a.xml", SUITE.replace("NAME", "a"));
    env.file("reports/TEST-b.xml", SUITE.replace("NAME", "b"));
    let total = |args: &[&str]| {
        let args = [&["test", "--json", "--exit", "0", "--from"], args].concat();
        env.run(&args).ends_with(0).document()["summary"]["total"].clone()
    };
    assert_eq!(total(&["reports"]), 2);
    assert_eq!(total(&["reports/TEST-a.xml", "reports/TEST-b.xml"]), 2);
}

#[test]
fn nothing_to_read_is_not_good() {
    let env = log("");
    assert_eq!(
        env.run(&["test", "--from", "ci.log", "--exit", "0", "--json"]).ends_with(3).document()["success"],
        false
    );
    env.file("empty/.keep", "");
    assert_snapshot!(env.run(&["test", "--from", "empty"]), @"
    NO TESTS  generic  no tests ran in [TIME]
        why: no tests ran
        why: the run did not come to its own end: tests may be missing
    [exit 3]
    ");
}

#[test]
fn places_are_relative_to_where_the_run_was() {
    let env = log("1..1\nnot ok 1 - adds\n  ---\n  at: /builds/cart/src/calc.sh:12\n  ...\n");
    let document = env
        .run(&["test", "--from", "ci.log", "--exit", "1", "--root", "/builds/cart", "--json"])
        .ends_with(3)
        .document();
    assert_eq!(document["tests"][0]["file"], "src/calc.sh", "{document:#}");
    assert_eq!(document["tests"][0]["line"], 12);
}

#[test]
fn the_format_can_be_named() {
    let env = log(GOOD);
    let document = env.json(&["test", "--from", "ci.log", "--exit", "0", "--framework", "tap"]);
    assert_eq!(document["framework"], "tap");
}

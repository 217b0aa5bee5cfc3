//! `test --action`: the action `run_tests`, asked and answered in JSON.

use insta::assert_snapshot;
use serde_json::json;

use crate::env::TestEnv;
use crate::json::{schema, validate};

/// A repository with a test that passes and one that fails.
fn repository() -> TestEnv {
    let env = TestEnv::new();
    env.file("tests.sh", "echo 1..2; echo 'ok 1 - adds'; echo 'not ok 2 - subtracts'; exit 1\n")
        .file(".rehearsal/config.yaml", "testing: { command: sh tests.sh, framework: tap }\n");
    env
}

#[test]
fn a_request_is_answered_with_the_failures() {
    let env = repository();
    let request = json!({"action": "run_tests", "parameters": {"timeout_seconds": 60}});
    validate(&schema(&env, "run-tests"), &request);
    let answer = env.run_with_input(&["test", "--action", "-"], request.to_string()).ends_with(3).document();
    validate(&schema(&env, "run-tests-answer"), &answer);
    let result = &answer["test_result"];
    assert_eq!((&result["success"], &result["verdict"]), (&json!(false), &json!("failed")));
    assert_eq!(result["summary"], json!({"total": 2, "passed": 1, "failed": 1, "skipped": 0}));
    assert_eq!(result["failed_tests"][0]["name"], "subtracts");
}

#[test]
fn a_request_in_a_file_may_ask_for_nothing_special() {
    let env = repository();
    env.file("tests.sh", "echo 1..1; echo 'ok 1 - adds'\n")
        .file("request.json", "{\"action\": \"run_tests\"}");
    let answer = env.run(&["test", "--action", "request.json"]).ends_with(0).document();
    assert_eq!(answer["test_result"]["success"], true);
}

#[test]
fn a_request_with_a_mistake_is_told_where_it_is() {
    let env = repository();
    let request = "{\"action\": \"run_tests\",\n \"parameters\": {\"pattern\": \"x\"}}";
    assert_snapshot!(env.run_with_input(&["test", "--action", "-"], request), @r"
    [stderr]
    error: unknown field `pattern`, expected one of `test_pattern`, `framework`, `timeout_seconds`
      --> standard input:2:25
    hint: `rehearsal schema run-tests` has the form of a request
    [exit 2]
    ");
    env.run(&["test", "--action", "nothing.json"]).ends_with(2).says("there is no file `nothing.json`");
}

//! From a wish to a merged, green change, by the crew and its real tools, with a model's answers from a script or a cassette.

use serde_json::json;

use crate::env::{Output, TestEnv};
use crate::stage::OpenStage;

/// A repository with a test that fails; none where Python is not installed.
fn failing() -> Option<TestEnv> {
    let env = TestEnv::new();
    if !env.has_tool("python3") {
        return None;
    }
    env.file("add.py", "def add(a, b):\n    return a - b\n")
        .file(
            "test_add.py",
            "import unittest\nfrom add import add\n\n\nclass Add(unittest.TestCase):\n    def test_sum(self):\n        self.assertEqual(add(2, 3), 5)\n",
        )
        .commit("A test that fails");
    Some(env)
}

/// What the model answers: a plan, then each agent's turns.
fn script() -> String {
    let plan = json!({ "tasks": [
        { "id": "find", "agent": "search", "description": "Find out why test_add.py fails" },
        { "id": "mend", "agent": "code", "description": "Make test_add.py pass", "depends_on": ["find"], "touches": ["add.py"] },
    ] });
    let tool = |name: &str, arguments: serde_json::Value| json!({ "tool": { "name": name, "arguments": arguments } });
    let edit = json!({ "path": "add.py", "old_string": "a - b", "new_string": "a + b" });
    json!({ "turns": [
        { "say": plan.to_string() },
        { "do": [tool("grep", json!({ "pattern": "return" }))] },
        { "expect": { "result": "a - b" }, "say": "add.py:2 subtracts where it should add." },
        { "expect": { "contains": "add.py:2 subtracts" }, "do": [tool("run_tests", json!({}))] },
        { "do": [tool("edit_file", edit)] },
        { "do": [tool("run_tests", json!({}))] },
        { "say": "It adds now, and the test passes." },
    ] })
    .to_string()
}

fn plans(env: &TestEnv, url: &str) -> Output {
    let vars = [("ANTHROPIC_BASE_URL", url), ("ANTHROPIC_API_KEY", "a-key-for-the-stage")];
    env.run_with_vars(&vars, &["plan", "Make the test green", "--yes", "--work", "--json"])
}

#[track_caller]
fn is_merged_and_green(env: &TestEnv, output: &Output) {
    assert_eq!(output.code, 0, "{output}");
    let work = &output.document()["work"];
    assert_eq!(work["open"], 0, "{output}");
    let pull = work["get_it"].as_str().unwrap();
    let arguments: Vec<&str> = pull.split(' ').skip(1).collect();
    env.git(&arguments);
    assert_eq!(env.read("add.py"), "def add(a, b):\n    return a + b\n");
    env.run(&["test"]).ends_with(0);
    assert_eq!(env.outcomes(), ["no_changes", "done"]);
}

#[test]
fn a_wish_becomes_a_merged_green_change() {
    let Some(env) = failing() else { return };
    let stage = OpenStage::open(&env, &script());
    let output = plans(&env, stage.url());
    let (closed, _) = stage.close();
    assert_eq!(closed["clean"], true, "{closed}\n{output}");
    is_merged_and_green(&env, &output);
}

#[test]
fn the_same_wish_goes_through_from_a_cassette() {
    let (Some(env), Some(again)) = (failing(), failing()) else { return };
    let cassette = env.scratch.join("wish.jsonl");
    let vendor = OpenStage::open(&env, &script());
    let recorder = OpenStage::start(&env, &["--record", cassette.as_str(), "--upstream", vendor.url()]);
    let output = plans(&env, recorder.url());
    let (recorded, _) = recorder.close();
    assert_eq!(recorded["requests"], 7, "{recorded}\n{output}");
    vendor.close();
    is_merged_and_green(&env, &output);

    // The ids of tasks are drawn anew, and stand in the prompts.
    let player = OpenStage::start(&again, &["--replay", cassette.as_str(), "--relaxed", "texts"]);
    let output = plans(&again, player.url());
    let (played, _) = player.close();
    assert_eq!((&played["played"], &played["missed"]), (&json!(7), &json!(0)), "{played}\n{output}");
    is_merged_and_green(&again, &output);
}

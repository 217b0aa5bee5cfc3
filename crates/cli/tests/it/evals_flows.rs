//! Evals whose cases go through flows: with stand-ins, and with the crew on a recording.

use insta::assert_snapshot;
use serde_json::Value;

use crate::env::TestEnv;
use crate::json::{schema, validate};
use crate::stage::OpenStage;

/// A writer who writes, one who writes nothing, and a gatekeeper who lets in what has a greeting.
const AGENTS: &str = r#"  writer:
    driver: command
    program: sh
    args: [-c, 'cat >/dev/null; echo hi > hello.txt; git add hello.txt; git commit -qm "Say hi"; echo I said hi']
  idler:
    driver: command
    program: sh
    args: [-c, 'cat >/dev/null; echo I said hi']
  gatekeeper:
    driver: command
    program: sh
    args: [-c, 'cat >/dev/null; echo "{\"decision\":\"approve\",\"comment\":\"good\"}" > "$REHEARSAL_TASK_DIR/result.json"; echo approved']
testing: { command: sh run-tests }"#;

const EVAL: &str = "name: delivery
agents: [writer]
flows: [pull-request]
cases:
  - name: greeting
    prompt: Say hello in hello.txt
    repository:
      files:
        run-tests: \"test -e hello.txt && echo ok\\n\"
    assert:
      - { type: trajectory_contains, value: [writer, gatekeeper] }
      - { type: pull-request, value: { merged: true, title: Say hello } }
      - { type: gh-called, value: pr create }
      - { type: gh-called, value: pr merge }
      - { type: files-created, value: hello.txt }
      - { type: git, value: { commits: 1 } }
      - { type: command, value: 'grep hi hello.txt' }
";

fn project(agents: &str, eval: &str) -> TestEnv {
    let env = TestEnv::new().config(agents);
    assert!(env.has_tool("test"));
    env.file(".rehearsal/evals/delivery.yaml", eval).commit("Measure");
    env
}

fn trials(env: &TestEnv, document: &Value) -> Vec<Value> {
    let text = env.read(format!("{}/trials.jsonl", document["directory"].as_str().unwrap()));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Who worked, in order.
fn agents(trial: &Value) -> Vec<&str> {
    let steps = trial["trial"]["steps"].as_array().unwrap().iter();
    steps.filter(|step| step["step"] == "agent").map(|step| step["name"].as_str().unwrap()).collect()
}

#[test]
fn a_case_goes_through_a_flow_until_it_is_merged() {
    let env = project(AGENTS, EVAL);
    let document = env.run(&["eval", "run", "--json"]).document();
    let trial = &trials(&env, &document)[0];
    assert_eq!(trial["verdict"], "pass", "{trial:#}");
    validate(&schema(&env, "eval-trial"), trial);
    assert_eq!(agents(trial), ["writer", "gatekeeper"]);
    assert_eq!(
        trial["trial"]["pull_request"],
        serde_json::json!({ "title": "Say hello in hello.txt", "merged": true })
    );
    assert_eq!(trial["trial"]["commits"], serde_json::json!(["Say hi"]));
    assert_eq!(trial["trial"]["outcome"]["name"], "done", "{trial:#}");
    // Nothing of it is in the project: no task, no branch, no remote.
    assert_eq!(env.git(&["branch", "--list"]), "* main");
    assert_eq!(env.json(&["task", "list", "--all"])["tasks"], serde_json::json!([]));
}

#[test]
fn a_task_that_does_not_get_through_its_flow_fails() {
    let env =
        project(AGENTS, &EVAL.replace("[writer]", "[idler]").replace("[writer, gatekeeper]", "[idler]"));
    let document = env.run(&["eval", "run", "--json"]).ends_with(3).document();
    let trial = &trials(&env, &document)[0];
    assert_eq!(trial["verdict"], "fail", "{trial:#}");
    assert_eq!(agents(trial), ["idler", "idler"], "it has a second try");
    assert_eq!(trial["trial"].get("pull_request"), None);
    assert_snapshot!(trial["trial"]["outcome"], @r#"{"name":"failed","reason":"the task is failed in state `failed`"}"#);
}

#[test]
fn everyone_who_works_in_a_flow_must_be_a_stand_in_or_paid_for() {
    let spends = AGENTS.replace("  gatekeeper:\n    driver: command", "  gatekeeper:\n    driver: claude");
    let env = project(&spends, EVAL);
    env.run(&["eval", "run"]).ends_with(3).says("`gatekeeper` (claude) spends tokens; run it with --live");
    let env = project(AGENTS, &EVAL.replace("[pull-request]", "[pull-requests]"));
    env.run(&["eval", "run"]).ends_with(2).says("there is no flow `pull-requests`");
}

/// Writes a file where it works, and commits it.
const TURNS: &str = r#"
turns:
  - { say: I write the file., do: [{ write_file: { path: hello.txt, content: "hi\n" } }] }
  - { do: [{ run: 'git add hello.txt && git commit -qm "Say hi"' }] }
  - { say: I said hi. }
"#;

#[test]
fn a_flow_is_recorded_once_and_replayed_for_nothing() {
    let stage_env = TestEnv::without_repository();
    let stage = OpenStage::open(&stage_env, TURNS);
    let crew = AGENTS.replace(
        "  writer:\n",
        "  coder:\n    driver: crew\n    role: code\n    model: anthropic:some-model\n  writer:\n",
    );
    let env = project(
        &crew,
        &EVAL.replace("[writer]", "[coder]").replace("[writer, gatekeeper]", "[coder, gatekeeper]"),
    );
    assert!(env.has_tool("bash"));
    let env =
        env.var("ANTHROPIC_BASE_URL", stage.url()).var("ANTHROPIC_API_KEY", "a-key-that-opens-nothing-4711");
    let document = env.run(&["eval", "run", "--record", "--json"]).document();
    let recorded = &trials(&env, &document)[0];
    assert_eq!(recorded["verdict"], "pass", "{recorded:#}");
    stage.close();
    let env = env.var("ANTHROPIC_BASE_URL", "http://127.0.0.1:9").var("ANTHROPIC_API_KEY", "");
    let document = env.run(&["eval", "run", "--replay", "--json"]).document();
    let replayed = &trials(&env, &document)[0];
    assert_eq!(
        (&replayed["verdict"], &replayed["trial"]["replay"]["exact"]),
        (&"pass".into(), &true.into()),
        "{replayed:#}"
    );
    assert_eq!(agents(replayed), ["coder", "gatekeeper"]);
}

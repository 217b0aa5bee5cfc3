//! `rehearsal eval` with models that are asked directly: no process, no repository, no tools.

use insta::assert_snapshot;
use serde_json::Value;

use crate::env::{Output, TestEnv};
use crate::json::{schema, validate};
use crate::stage::OpenStage;

const CASES: &str = "cases:
  - name: greeting
    prompt: Say hello
    assert: [{ type: contains, value: hello }]
";

fn project(agents: &str) -> TestEnv {
    let env = TestEnv::new();
    env.file(".rehearsal/evals/asked.yaml", format!("name: asked\nagents: {agents}\n{CASES}"))
        .commit("Measure");
    env
}

/// The trials of the only run.
fn trials(env: &TestEnv) -> Vec<Value> {
    let runs = env.json(&["eval", "list"])["runs"].clone();
    let text = env.read(env.state_dir().join(format!("evals/{}/trials.jsonl", runs[0].as_str().unwrap())));
    let trials: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of_a_trial = schema(env, "eval-trial");
    for trial in &trials {
        validate(&of_a_trial, trial);
    }
    trials
}

/// Runs it with every vendor on one stage.
fn on_stage(env: &TestEnv, script: &str, args: &[&str]) -> Output {
    let stage = OpenStage::open(env, script);
    let v1 = format!("{}/v1", stage.url());
    let vars = [
        ("ANTHROPIC_BASE_URL", stage.url()),
        ("OPENAI_BASE_URL", v1.as_str()),
        ("GOOGLE_GEMINI_BASE_URL", stage.url()),
    ];
    let output = env.run_with_vars(&vars, args);
    stage.close();
    output
}

#[test]
fn echo_answers_with_its_prompt() {
    let env = project("[echo]");
    let document = env.run(&["eval", "run", "--json"]).ends_with(0).document();
    assert_eq!(document["cells"][0]["passed"], 1, "{document:#}");
    let trial = &trials(&env)[0]["trial"];
    assert_eq!((&trial["output"], &trial["turns"]), (&"Say hello".into(), &1.into()));
    assert_eq!(trial["source"]["kind"], "scripted");
}

#[test]
fn models_of_all_vendors_are_asked_at_their_address() {
    let env = project("['anthropic:a', 'openai:b', 'responses:c', 'gemini:d']");
    let script = "turns:\n  - { say: Oh hello., times: any }\n";
    let document = on_stage(&env, script, &["eval", "run", "--json"]).ends_with(0).document();
    assert_eq!(document["cells"].as_array().unwrap().len(), 4, "{document:#}");
    for record in trials(&env) {
        let trial = &record["trial"];
        assert_eq!((&trial["output"], &trial["turns"]), (&"Oh hello.".into(), &1.into()), "{record:#}");
        assert_eq!(trial["source"]["kind"], "scripted");
        assert!(trial["tokens"]["output"].as_u64().unwrap() > 0, "{record:#}");
        assert_eq!(trial["cost_usd"], Value::Null);
    }
}

#[test]
fn what_may_spend_money_is_stamped_live() {
    let env = project("['openai:b', echo]");
    on_stage(&env, "turns:\n  - { say: Oh hello., times: any }\n", &["eval", "run", "--live"]).ends_with(0);
    let mut kinds: Vec<_> =
        trials(&env).iter().map(|one| one["trial"]["source"]["kind"].to_string()).collect();
    kinds.sort();
    assert_eq!(kinds, ["\"live\"", "\"scripted\""]);
}

#[test]
fn a_model_elsewhere_is_not_asked_without_the_users_word() {
    let env = project("['openai:b', 'gemini:d']");
    let vars = [("OPENAI_BASE_URL", "https://gateway.example/v1"), ("OPENAI_API_KEY", "not-a-real-key")];
    let told = env.run_with_vars(&vars, &["eval", "run"]).ends_with(3);
    let spends = "spends tokens; run it with --live, or give it the address of a fake model API such as `rehearsal stage`";
    told.says(&format!("skipped greeting, openai:b, trial 1: `openai:b` {spends}"))
        .says(&format!("skipped greeting, gemini:d, trial 1: `gemini:d` {spends}"));
}

#[test]
fn what_a_vendor_does_not_answer_is_an_error_and_no_failure() {
    let told = |status: &str| {
        let env = project("['openai:b']");
        let script = format!("turns:\n  - {{ fault: {{ status: {{ {status} }} }}, times: any }}\n");
        on_stage(&env, &script, &["eval", "run"])
            .ends_with(3)
            .says("✗ openai:b: pass rate 1: 0 of 0 passed, and 1 error")
            .to_string()
    };
    assert!(
        told("code: 401").contains("error greeting, openai:b, trial 1: openai:b: the vendor refuses the key")
    );
    let limited = told("code: 429, retry: false");
    assert!(limited.contains("error greeting, openai:b, trial 1: openai:b: rate-limited"), "{limited}");
}

#[test]
fn a_vendor_without_a_key_or_out_of_reach_is_an_error() {
    let env = project("['openai:b']");
    env.run(&["eval", "run", "--live"])
        .ends_with(3)
        .says("error greeting, openai:b, trial 1: openai:b: `OPENAI_API_KEY` is not set");
    let bad = [("OPENAI_BASE_URL", "127.0.0.1:1")];
    env.run_with_vars(&bad, &["eval", "run"])
        .ends_with(3)
        .says("error greeting, openai:b, trial 1: openai:b: the base address");
}

#[test]
fn no_answer_in_time_is_an_error() {
    let env = TestEnv::new();
    env.file(
        ".rehearsal/evals/asked.yaml",
        format!("name: asked\nagents: ['openai:b']\n{CASES}    timeout: 50ms\n"),
    );
    on_stage(&env, "turns:\n  - { fault: hang, times: any }\n", &["eval", "run"])
        .ends_with(3)
        .says("error greeting, openai:b, trial 1: openai:b: there was no answer within the case's `timeout`");
}

#[test]
fn a_repository_for_someone_who_has_none_is_told_with_its_place() {
    let env = TestEnv::new();
    env.file(
        ".rehearsal/evals/asked.yaml",
        format!("name: asked\nagents: [echo]\n{CASES}    repository: {{ files: {{ a: b }} }}\n"),
    );
    assert_snapshot!(env.run(&["eval", "run"]), @"
    [stderr]
    error: `echo` has no repository: case `greeting` gives it one
      --> .rehearsal/evals/asked.yaml:4:5
    hint: `rehearsal schema eval` has the form of the file
    [exit 2]
    ");
}

#[test]
fn an_agent_of_the_configuration_cannot_be_called_echo_in_an_eval() {
    let env = TestEnv::new().config("  echo: { driver: command, program: cat }");
    env.file(".rehearsal/evals/asked.yaml", format!("name: asked\nagents: [echo]\n{CASES}"));
    assert_snapshot!(env.run(&["eval", "run"]), @"
    [stderr]
    error: `echo` is the stand-in that answers with its prompt, and an agent of the configuration
    hint: give the agent `echo` another name
    [exit 2]
    ");
}

#[test]
fn what_a_model_says_is_recorded_judged_and_replayed_for_nothing() {
    let env = TestEnv::new();
    let rubric = "assert: [{ type: llm-rubric, value: { rubric: Is it polite? } }, ";
    let eval = format!("name: asked\njudge: anthropic:judge\nagents: ['openai:b', echo]\n{CASES}");
    env.file(".rehearsal/evals/asked.yaml", eval.replace("assert: [", rubric));
    let script = r#"turns:
  - { when: { contains: Is it polite }, say: '{"pass": true, "reason": "it greets"}', times: any }
  - { say: Oh hello., times: any }
"#;
    on_stage(&env, script, &["eval", "run", "--record"]).ends_with(0);
    let of_model = |one: &&Value| one["id"]["variant"]["agent"] == "openai:b";
    let recorded = trials(&env);
    let recorded = recorded.iter().find(of_model).unwrap();
    assert_eq!(recorded["trial"]["source"]["kind"], "live", "{recorded:#}");
    let elsewhere = "http://127.0.0.1:9/v1";
    let vars = [("OPENAI_BASE_URL", elsewhere), ("ANTHROPIC_BASE_URL", elsewhere)];
    let args = ["eval", "run", "--replay", "--repeat", "3", "--json"];
    let document = env.run_with_vars(&vars, &args).ends_with(0).document();
    let cell = &document["cells"][0];
    assert_eq!(cell["variant"]["agent"], "openai:b", "{document:#}");
    // Three replays of one recording are one sample.
    assert_eq!((&cell["trials"], &cell["passed"]), (&3.into(), &1.into()), "{document:#}");
}

//! `llm-rubric`: a judge that a stage plays, live, recorded and replayed.

use serde_json::Value;

use crate::env::TestEnv;
use crate::stage::OpenStage;

const KEY: &str = "a-key-that-opens-nothing-4711";

const AGENT: &str = "  talker:
    driver: command
    program: sh
    args: [-c, 'cat >/dev/null; echo good > day.txt; echo Good day to you']";

const EVAL: &str = "name: manners
judge: anthropic:some-judge
agents: [talker]
cases:
  - name: greeting
    prompt: Greet me
    assert:
      - { type: llm-rubric, value: { rubric: Is the greeting polite?, votes: 3 } }
";

fn project(eval: &str, url: &str) -> TestEnv {
    let env = TestEnv::new().config(AGENT);
    env.file(".rehearsal/evals/manners.yaml", eval).commit("Measure");
    env.var("ANTHROPIC_BASE_URL", url).var("ANTHROPIC_API_KEY", KEY)
}

fn judges(answers: &[&str]) -> String {
    let turns = answers.iter().map(|answer| format!("  - say: '{answer}'\n"));
    format!("turns:\n{}", turns.collect::<String>())
}

fn trial(env: &TestEnv, document: &Value) -> Value {
    let text = env.read(format!("{}/trials.jsonl", document["directory"].as_str().unwrap()));
    serde_json::from_str(text.lines().next().unwrap()).unwrap()
}

const YES: &str = r#"{"pass": true, "reason": "it says good day"}"#;
const NO: &str = r#"{"pass": false, "reason": "it is curt"}"#;

#[test]
fn the_majority_of_judges_decides_and_is_replayed_for_nothing() {
    let stage_env = TestEnv::without_repository();
    let stage = OpenStage::open(&stage_env, &judges(&[YES, NO, YES]));
    let env = project(EVAL, stage.url());
    let document = env.run(&["eval", "run", "--record", "--json"]).ends_with(0).document();
    let recorded = trial(&env, &document);
    assert_eq!(recorded["graded"][0]["because"], "2 of 3 judges agree: \"it is curt\"", "{recorded:#}");
    let tokens = &recorded["trial"]["judge_tokens"];
    assert!(tokens["input"].as_u64() > Some(0) && tokens["output"].as_u64() > Some(0), "{recorded:#}");
    let (closed, _) = stage.close();
    assert_eq!(closed["report"]["requests"], 3, "{closed:#}");
    let tape = env.read(".rehearsal/cassettes/evals/manners/greeting/talker.judge.jsonl");
    assert!(!tape.contains(KEY) && tape.contains("Is the greeting polite?"), "{tape}");

    let env = env.var("ANTHROPIC_BASE_URL", "http://127.0.0.1:9").var("ANTHROPIC_API_KEY", "");
    for _ in 0..3 {
        let document = env.run(&["eval", "run", "--replay", "--json"]).ends_with(0).document();
        assert_eq!(trial(&env, &document)["trial"]["judged"], recorded["trial"]["judged"]);
    }
    env.run(&["eval", "show"]).ends_with(0).never_says("the judges used");
    // What was voted is stored: nobody is asked when a run is graded again.
    env.run(&["eval", "grade"]).ends_with(0);
}

#[test]
fn a_judge_sees_what_was_asked_said_and_changed() {
    let stage_env = TestEnv::without_repository();
    let turn = format!(
        "turns:\n  - expect: {{ matches: '(?s)Is the greeting polite.*they are not instructions.*Greet me.*Good day to you.*\\+good' }}\n    say: '{YES}'\n"
    );
    let stage = OpenStage::open(&stage_env, &turn);
    let env = project(&EVAL.replace("votes: 3", "votes: 1"), stage.url());
    env.run(&["eval", "run", "--live"]).ends_with(0);
    assert_eq!(stage.close().1.code, 0);
}

#[test]
fn most_judges_against_it_fail_it_and_one_that_cannot_be_read_is_an_error() {
    for (answers, verdict, because) in [
        ([NO, YES, NO], "fail", "1 of 3 judges agree: \"it is curt\""),
        (
            [YES, "I think so.", YES],
            "error",
            "the judge could not be read: this is no {\"pass\": …}: \"I think so.\"",
        ),
    ] {
        let stage_env = TestEnv::without_repository();
        let stage = OpenStage::open(&stage_env, &judges(&answers));
        let env = project(EVAL, stage.url());
        let document = env.run(&["eval", "run", "--live", "--json"]).ends_with(3).document();
        let trial = trial(&env, &document);
        assert_eq!((&trial["verdict"], &trial["graded"][0]["because"]), (&verdict.into(), &because.into()));
        stage.close();
    }
}

#[test]
fn without_anyone_to_ask_nothing_can_be_said() {
    let env = project(EVAL, "http://127.0.0.1:9");
    env.run(&["eval", "run"])
        .ends_with(3)
        .says("needs a judge: ask it with --live, or --record it for --replay");
    let env = env.var("ANTHROPIC_BASE_URL", "").var("ANTHROPIC_API_KEY", "");
    env.run(&["eval", "run", "--live"])
        .ends_with(3)
        .says("error greeting, talker, trial 1: the judge `anthropic:some-judge`: anthropic cannot be asked: `ANTHROPIC_API_KEY` is not set");
}

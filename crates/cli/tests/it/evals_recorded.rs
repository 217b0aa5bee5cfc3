//! `rehearsal eval run --record` and `--replay`: the crew and the real CLIs, recorded from a stage that plays their vendor.

use insta::assert_snapshot;
use serde_json::Value;

use crate::env::TestEnv;
use crate::json::{schema, validate};
use crate::real_agents::agents;
use crate::stage::OpenStage;

/// A value that must be nowhere.
const KEY: &str = "a-key-that-opens-nothing-4711";

/// Writes a file, looks at it, and says so.
const TURNS: &str = r#"
turns:
  - { say: I write the file., do: [{ write_file: { path: hello.txt, content: "hello world\n" } }] }
  - { do: [{ run: cat hello.txt }] }
  - { expect: { result: hello world }, say: I greeted. }
"#;

const EVAL: &str = "name: greeting
agents: [coder]
cases:
  - name: hello
    prompt: Write hello.txt
    assert:
      - { type: contains, value: greeted }
      - { type: files-created, value: hello.txt }
";

const CREW: &str = "  coder:
    driver: crew
    role: code
    model: anthropic:some-model";

/// A project with an eval, whose agent asks a vendor on this machine.
fn project(agents: &str, eval: &str, url: &str) -> TestEnv {
    let env = TestEnv::new().config(agents);
    assert!(env.has_tool("bash"));
    env.file(".rehearsal/evals/greeting.yaml", eval).commit("Measure");
    env.var("ANTHROPIC_BASE_URL", url).var("ANTHROPIC_API_KEY", KEY)
}

/// The same where no vendor can be asked: what it would ask does not listen.
fn offline(env: TestEnv) -> TestEnv {
    env.var("ANTHROPIC_BASE_URL", "http://127.0.0.1:9").var("ANTHROPIC_API_KEY", "")
}

fn trials(env: &TestEnv, document: &Value) -> Vec<Value> {
    let text = env.read(format!("{}/trials.jsonl", document["directory"].as_str().unwrap()));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Every file below a directory, with its content.
fn files(directory: &camino::Utf8Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in directory.read_dir_utf8().unwrap() {
        let path = entry.unwrap().into_path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            let bytes = std::fs::read(&path).unwrap();
            found.push((path.to_string(), String::from_utf8_lossy(&bytes).into_owned()));
        }
    }
    found
}

#[test]
fn a_trial_is_recorded_once_and_replayed_for_nothing() {
    let stage_env = TestEnv::without_repository();
    let stage = OpenStage::open(&stage_env, TURNS);
    let env = project(CREW, EVAL, stage.url());
    let document = env.run(&["eval", "run", "--record", "--json"]).ends_with(0).document();
    let recorded = &trials(&env, &document)[0]["trial"];
    assert_eq!(recorded["source"]["kind"], "live", "{recorded:#}");
    let (closed, _) = stage.close();
    assert_eq!(closed["report"]["requests"], 3, "{closed:#}");

    let cassette = env.read(".rehearsal/cassettes/evals/greeting/hello/coder.jsonl");
    assert!(!cassette.contains(KEY) && !cassette.contains(env.scratch.as_str()), "{cassette}");
    env.run(&["cassette", "lint", ".rehearsal/cassettes/evals/greeting/hello/coder.jsonl"]).ends_with(0);

    let env = offline(env);
    let document = env.run(&["eval", "run", "--replay", "--repeat", "5", "--json"]).ends_with(0).document();
    validate(&schema(&env, "eval-run"), &document);
    let cell = &document["cells"][0];
    assert_eq!(
        (&cell["trials"], &cell["passed"], &cell["failed"]),
        (&5.into(), &1.into(), &0.into()),
        "{cell:#}"
    );
    let replayed = trials(&env, &document);
    let of_a_trial = schema(&env, "eval-trial");
    for trial in &replayed {
        validate(&of_a_trial, trial);
        let trial = &trial["trial"];
        assert_eq!(trial["source"]["kind"], "replayed", "{trial:#}");
        assert_eq!(trial["source"]["tape"], replayed[0]["trial"]["source"]["tape"]);
        assert_eq!(trial["replay"]["exact"], true, "{trial:#}");
        for same in ["output", "steps", "changes", "diff", "turns", "tokens", "outcome"] {
            assert_eq!(trial[same], recorded[same], "{same}");
        }
    }
    env.run(&["eval", "show"])
        .ends_with(0)
        .says("hello, coder: 5 trials are 1 sample, because they play the same recording");
}

#[test]
fn no_key_is_in_any_file_that_a_run_leaves() {
    let leaks = format!(
        "turns:\n  - {{ say: The key is {KEY}., do: [{{ write_file: {{ path: hello.txt, content: 'key = {KEY}' }} }}] }}\n  - say: I greeted with {KEY}.\n"
    );
    let stage_env = TestEnv::without_repository();
    let stage = OpenStage::open(&stage_env, &leaks);
    let eval = EVAL.to_owned() + "      - { type: command, value: cat hello.txt }\n";
    let env = project(CREW, &eval, stage.url());
    env.run(&["eval", "run", "--record", "--html", "e.html", "--markdown", "e.md", "--junit", "e.xml"])
        .never_says(KEY);
    assert_eq!(stage.close().1.code, 0);
    let all = files(&env.repo);
    assert!(all.iter().any(|(path, _)| path.ends_with("trials.jsonl")));
    assert!(all.iter().any(|(path, _)| path.ends_with("coder.jsonl")));
    for (path, content) in all {
        assert!(!content.contains(KEY), "{path}: {content}");
    }
}

#[test]
fn what_was_not_recorded_is_skipped_and_told() {
    let env = offline(project(CREW, EVAL, "http://127.0.0.1:9"));
    env.run(&["eval", "run", "--replay"]).ends_with(3).says(
        "skipped hello, coder, trial 1: there is no recording `evals/greeting/hello/coder.jsonl`; record it first: rehearsal eval run greeting --case hello --record",
    );
    env.run(&["eval", "run", "--replay", "--record"]).ends_with(2).says("cannot be used with");
    env.run(&["eval", "run", "--live", "--record"]).ends_with(2).says("cannot be used with");
}

#[test]
fn a_recording_that_does_not_fit_any_more_is_no_failure_of_the_agent() {
    let stage_env = TestEnv::without_repository();
    let stage = OpenStage::open(&stage_env, TURNS);
    let env = project(CREW, EVAL, stage.url());
    env.run(&["eval", "run", "--record"]).ends_with(0);
    stage.close();
    let env = offline(env);
    env.file(".rehearsal/evals/greeting.yaml", EVAL.replace("Write hello.txt", "Write good-bye.txt"));
    let document = env.run(&["eval", "run", "--replay", "--json"]).ends_with(3).document();
    let record = &trials(&env, &document)[0];
    assert_eq!(record["verdict"], "error", "{record:#}");
    let reason = record["reason"].as_str().unwrap();
    assert_snapshot!(reason, @"the recording does not fit any more: POST /v1/messages was not recorded: it differs from request 1 in lane main at /messages/0/content/0/text");
    assert_eq!(record["trial"]["replay"]["exact"], false, "{record:#}");
    assert_eq!(document["cells"][0]["errors"], 1);
}

#[test]
fn an_unplayed_answer_is_told_and_fails_only_who_asks_for_exactness() {
    let stage_env = TestEnv::without_repository();
    let stage = OpenStage::open(&stage_env, "turns:\n  - { say: I greeted., times: any }\n");
    // A stand-in that asks a model by hand; the second time it asks less.
    let asker = "  asker:
    driver: command
    program: sh
    args: [-c, 'cat >/dev/null; i=0; while [ $i -lt ${ASK:-2} ]; do rehearsal crew run --role search --model anthropic:m --json < question >/dev/null || exit 1; i=$((i+1)); done; echo I greeted']
    pass_env: [ASK, ANTHROPIC_API_KEY, ANTHROPIC_BASE_URL]";
    let eval = EVAL
        .replace("[coder]", "[asker]")
        .replace("    prompt:", "    repository: { files: { question: 'Who is there?' } }\n    prompt:")
        .replace("      - { type: files-created, value: hello.txt }\n", "");
    let env = project(asker, &eval, stage.url());
    env.run(&["eval", "run", "--record"]).ends_with(0);
    stage.close();
    let env = offline(env).var("ASK", "1");
    let document = env.run(&["eval", "run", "--replay", "--json"]).ends_with(0).document();
    let trial = &trials(&env, &document)[0]["trial"];
    assert_eq!(trial["replay"]["exact"], false, "{trial:#}");
    assert_snapshot!(trial["replay"]["differences"], @r#"["request 2 (main) was never asked"]"#);
    let strict = eval + "      - { type: replay-exact }\n";
    env.file(".rehearsal/evals/greeting.yaml", strict);
    env.run(&["eval", "run", "--replay"]).ends_with(3).says("replay-exact: request 2 ");
}

#[test]
fn the_real_claude_is_recorded_once_and_replayed_for_nothing() {
    let Some(directory) = agents() else { return };
    let stage_env = TestEnv::without_repository();
    let stage = OpenStage::open(&stage_env, TURNS);
    let claude = format!(
        "  coder:\n    driver: claude\n    program: {directory}/claude\n    permission: accept-edits"
    );
    let env = project(&claude, EVAL, stage.url());
    assert!(env.has_tool("id"));
    let document = env.run(&["eval", "run", "--record", "--json"]).document();
    assert_eq!(document["cells"][0]["passed"], 1, "{:#?}", trials(&env, &document));
    stage.close();
    let env = offline(env);
    let document = env.run(&["eval", "run", "--replay", "--repeat", "3", "--json"]).document();
    assert_eq!(document["cells"][0]["passed"], 1, "{:#?}", trials(&env, &document));
    for trial in trials(&env, &document) {
        assert_eq!(trial["trial"]["replay"]["exact"], true, "{trial:#}");
    }
}

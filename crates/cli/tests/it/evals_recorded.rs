//! `rehearsal eval run --record` and `--replay`: the crew and the real CLIs, recorded from a stage that plays their vendor.

use insta::assert_snapshot;
use serde_json::Value;

use crate::env::TestEnv;
use crate::json::{schema, validate};
use crate::real_agents::agents;
use crate::stage::OpenStage;
use crate::staged_agents::more_agents;

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
      - { type: 'trajectory:tool-args-match', value: { name: write_file, args: { path: hello.txt } } }
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
    let all: Vec<_> = files(&env.repo).into_iter().chain(files(&env.state_dir())).collect();
    assert!(all.iter().any(|(path, _)| path.ends_with("trials.jsonl")));
    assert!(all.iter().any(|(path, _)| path.ends_with("coder.jsonl")));
    for (path, content) in all {
        assert!(!content.contains(KEY), "{path}: {content}");
    }
}

#[test]
fn a_recording_with_a_secret_that_is_known_here_is_not_replayed() {
    let stage_env = TestEnv::without_repository();
    let stage = OpenStage::open(&stage_env, TURNS);
    let env = project(CREW, EVAL, stage.url());
    env.run(&["eval", "run", "--record"]).ends_with(0);
    assert_eq!(stage.close().1.code, 0);
    let env = offline(env).var("SOME_TOKEN", "I write the file.");
    env.run(&["eval", "run", "--replay"])
        .ends_with(3)
        .says("holds the value of SOME_TOKEN; `rehearsal cassette redact ")
        .never_says("I write the file.");
}

#[test]
fn what_was_not_recorded_is_skipped_and_told() {
    let env = offline(project(CREW, EVAL, "http://127.0.0.1:9"));
    env.run(&["eval", "run", "--replay"]).ends_with(3).says(
        "skipped hello, coder, trial 1: there is no recording `evals/greeting/hello/coder.jsonl`; record it first: rehearsal eval run greeting --case hello --record",
    );
    let trusting = project(&format!("{CREW}\n    permission: trust"), EVAL, "http://127.0.0.1:9");
    trusting.run(&["eval", "run", "--record"]).ends_with(3).says(
        "skipped hello, coder, trial 1: `permission: trust` in .rehearsal/config.yaml needs your word; run it with --trust",
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
        .split("      - { type: files-created")
        .next()
        .unwrap()
        .to_owned();
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

/// Writes a file and says so: no permission is asked for.
const WRITES: &str = r#"
turns:
  - { say: I write the file., do: [{ write_file: { path: hello.txt, content: "hello world\n" } }] }
  - { say: I greeted. }
"#;

/// A real CLI is measured on a recording of itself; what it calls its tool, and what that is given, is asserted too.
fn is_recorded_once_and_replayed_for_nothing(agent: &str, directory: &str, base: &str, called: &str) {
    let stage_env = TestEnv::without_repository();
    let stage = OpenStage::open(&stage_env, WRITES);
    let permission = if agent == "claude" { "accept_edits" } else { "trust" };
    let profile = format!(
        "  coder:\n    driver: {agent}\n    program: {directory}/{agent}\n    permission: {permission}"
    );
    // The one that lists its models is told which it may ask for.
    let model = if agent == "opencode" { "\n    model: openai/some-model" } else { "" };
    let profile = profile + model;
    let asserted = "value: { name: write_file, args: { path: hello.txt } }";
    let env = project(&profile, &EVAL.replace(asserted, called), stage.url());
    let tools: &[&str] = if agent == "gemini" { &["id", "node"] } else { &["id"] };
    assert!(tools.iter().all(|tool| env.has_tool(tool)));
    let address =
        if base == "OPENAI_BASE_URL" { format!("{}/v1", stage.url()) } else { stage.url().to_owned() };
    let env = env.var(base, &address).var(&base.replace("GOOGLE_", "").replace("BASE_URL", "API_KEY"), KEY);
    let document = env.run(&["eval", "run", "--record", "--trust", "--json"]).document();
    assert_eq!(document["cells"][0]["passed"], 1, "{:#?}", trials(&env, &document));
    stage.close();
    for (path, content) in files(&env.repo.join(".rehearsal")) {
        assert!(!content.contains(KEY), "{path}: {content}");
    }
    let env = env.var(base, "http://127.0.0.1:9");
    let document = env.run(&["eval", "run", "--replay", "--trust", "--repeat", "2", "--json"]).document();
    assert_eq!(document["cells"][0]["passed"], 1, "{:#?}", trials(&env, &document));
    for trial in trials(&env, &document) {
        assert_eq!(trial["trial"]["replay"]["exact"], true, "{trial:#}");
    }
}

#[test]
fn the_real_claude_is_recorded_once_and_replayed_for_nothing() {
    let Some(directory) = agents() else { return };
    let called = r#"value: { name: Write, args: { content: "hello world\n" } }"#;
    is_recorded_once_and_replayed_for_nothing("claude", &directory, "ANTHROPIC_BASE_URL", called);
}

#[test]
fn the_real_codex_is_recorded_once_and_replayed_for_nothing() {
    let Some(directory) = agents() else { return };
    let called = "value: { name: shell, args: {} }";
    is_recorded_once_and_replayed_for_nothing("codex", &directory, "OPENAI_BASE_URL", called);
}

#[test]
fn the_real_gemini_is_recorded_once_and_replayed_for_nothing() {
    let Some(directory) = more_agents() else { return };
    let called = r#"value: { name: write_file, args: { content: "hello world\n" } }"#;
    is_recorded_once_and_replayed_for_nothing("gemini", &directory, "GOOGLE_GEMINI_BASE_URL", called);
}

#[test]
fn the_real_opencode_is_recorded_once_and_replayed_for_nothing() {
    let Some(directory) = more_agents() else { return };
    let called = r#"value: { name: write, args: { content: "hello world\n" } }"#;
    is_recorded_once_and_replayed_for_nothing("opencode", &directory, "OPENAI_BASE_URL", called);
}

#[test]
fn a_session_is_recorded_by_name_and_task_and_played_by_name() {
    let stage_env = TestEnv::without_repository();
    let stage = OpenStage::open(&stage_env, TURNS);
    let env = project(CREW, EVAL, stage.url());
    let record =
        ["eval", "record", "--name", "greeting-flow", "--task", "Write hello.txt", "--agent", "coder"];
    let document = env.run(&[&record[..], &["--json"]].concat()).ends_with(0).document();
    validate(&schema(&env, "eval-session"), &document);
    assert_eq!(document["cassette"], ".rehearsal/cassettes/greeting-flow.jsonl");
    stage.close();
    assert!(!env.repo.join("hello.txt").exists(), "it works in a copy");
    let env = offline(env);
    env.commit("What came after it");
    for more in [&[][..], &["--strict"]] {
        let document =
            env.run(&[&["eval", "replay", "greeting-flow", "--json"], more].concat()).ends_with(0).document();
        validate(&schema(&env, "eval-session"), &document);
        assert_eq!((&document["replay"]["exact"], &document["output"]), (&true.into(), &"I greeted.".into()));
    }
    let task = ".rehearsal/cassettes/greeting-flow.task.json";
    env.file(task, env.read(task).replace("Write hello.txt", "Write it"));
    assert_snapshot!(env.run(&["eval", "replay", "greeting-flow"]), @"
    I greeted.
    [stderr]
    differs: request 1 was played although its texts differ at /messages/0/content/0/text
    differs: request 2 was played although its texts differ at /messages/0/content/0/text
    differs: request 3 was played although its texts differ at /messages/0/content/0/text
    played not as it was recorded; the run ended with done
    ");
    env.run(&["eval", "replay", "greeting-flow", "--strict"]).ends_with(3).says("not as it was recorded");
    env.run(&["eval", "replay", "nobody"])
        .ends_with(2)
        .says("there is no recording `.rehearsal/cassettes/nobody.jsonl` with its task beside it")
        .says("record it with `rehearsal eval record --name nobody --task TEXT`");
}

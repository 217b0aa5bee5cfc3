//! `record`, `replay` and `cassette`: with an agent of a few lines that asks its model once.

use insta::assert_snapshot;
use serde_json::Value;

use crate::env::{Output, TestEnv};
use crate::json::{schema, validate};
use crate::running::Running;
use crate::stage::OpenStage;

const SCRIPT: &str = "turns:\n  - say: I see.\n";

/// Says what it is told and where it is, and prints what it is answered.
const AGENT: &str = r#"
url=${ANTHROPIC_BASE_URL#http://}
body="{\"model\":\"m\",\"max_tokens\":9,\"stream\":true,\"tools\":[{\"name\":\"Write\",\"input_schema\":{\"type\":\"object\"}}],\"messages\":[{\"role\":\"user\",\"content\":\"$1 in $PWD $DEPLOY_TOKEN\"}]}"
exec 3<>"/dev/tcp/${url%:*}/${url#*:}"
printf 'POST /v1/messages HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%s' "${#body}" "$body" >&3
cat <&3
exit "${2:-0}"
"#;

/// A repository with the agent and a script for its vendor, if this machine has what the agent needs.
fn scene() -> Option<TestEnv> {
    let env = TestEnv::new();
    env.file("agent.bash", AGENT).file("turns.yaml", SCRIPT).commit("An agent");
    env.has_tool("bash").then_some(env)
}

fn recorded() -> Option<TestEnv> {
    let env = scene()?;
    env.run(&["record", "greeting", "--script", "turns.yaml", "--", "bash", "agent.bash", "hello"])
        .ends_with(0);
    Some(env)
}

fn replay(env: &TestEnv, flags: &[&str], said: &[&str]) -> Output {
    env.run(&[&["replay", "greeting"], flags, &["--", "bash", "agent.bash"], said].concat())
}

/// Takes the cassette to another repository.
fn taken_to(from: &TestEnv) -> TestEnv {
    let there = scene().unwrap();
    there.file(".rehearsal/cassettes/greeting.jsonl", from.read(".rehearsal/cassettes/greeting.jsonl"));
    there
}

#[test]
fn what_was_recorded_here_plays_there() {
    let Some(env) = recorded() else { return };
    assert!(!env.read(".rehearsal/cassettes/greeting.jsonl").contains(env.repo.as_str()));
    let there = taken_to(&env);
    let replayed = replay(&there, &[], &["hello"]).ends_with(0).says("played 1 of 1 recorded request");
    assert!(replayed.stdout.contains("I see."), "{replayed}");
    let again = replay(&there, &[], &["hello"]);
    assert_eq!(replayed.stdout, again.stdout, "byte for byte");
}

#[test]
fn another_request_is_a_miss_that_shows_what_differs() {
    let Some(env) = recorded() else { return };
    let output = replay(&env, &[], &["goodbye"]).ends_with(3);
    assert!(output.stdout.contains("x-should-retry: false"), "{output}");
    assert_snapshot!(output.stderr, @"
    played 0 of 1 recorded request
    miss: POST /v1/messages was not recorded: it differs from request 1 in lane main
    /messages/0/content
      - hello in ⟦cwd⟧ 
      + goodbye in ⟦cwd⟧ 
    never asked: 1 (main)
    ");
    let relaxed = replay(&env, &["--relaxed", "texts"], &["goodbye"]).ends_with(0);
    assert_snapshot!(relaxed.stderr, @"
    played 1 of 1 recorded request
    request 1 was played although its texts differ:
    /messages/0/content
      - hello in ⟦cwd⟧ 
      + goodbye in ⟦cwd⟧
    ");
}

#[test]
fn what_the_agent_does_not_ask_fails_the_replay() {
    let Some(env) = recorded() else { return };
    let output = env.run(&["replay", "greeting", "--", "sh", "-c", ":"]).ends_with(3);
    assert_snapshot!(output.stderr, @"
    played 0 of 1 recorded request
    never asked: 1 (main)
    ");
}

#[test]
fn an_agent_that_fails_is_told_and_its_cassette_is_kept() {
    let Some(env) = scene() else { return };
    let command = ["record", "failing", "--script", "turns.yaml", "--", "bash", "agent.bash", "hello", "7"];
    env.run(&command).ends_with(6).says("the agent ended with exit status 7");
    env.run(&["replay", "failing", "--", "bash", "agent.bash", "hello", "7"]).ends_with(6);
}

#[test]
fn a_command_that_asks_for_nothing_leaves_the_cassette_as_it_was() {
    let Some(env) = recorded() else { return };
    let before = env.read(".rehearsal/cassettes/greeting.jsonl");
    let record =
        |name, command| env.run(&["record", name, "--script", "turns.yaml", "--", "sh", "-c", command]);
    assert_snapshot!(record("greeting", ":").ends_with(3), @"
    [stderr]
    error: nothing was recorded: the agent made no request, and ended with exit status 0; [REPO]/.rehearsal/cassettes/greeting.jsonl stays as it was
    hint: say which agent it is with `--agent AGENT`, or let it ask the address in ANTHROPIC_BASE_URL, OPENAI_BASE_URL or GOOGLE_GEMINI_BASE_URL
    [exit 3]
    ");
    assert_snapshot!(record("greeting", "exit 7").ends_with(6), @"
    [stderr]
    error: nothing was recorded: the agent made no request, and ended with exit status 7; [REPO]/.rehearsal/cassettes/greeting.jsonl stays as it was
    hint: see what it printed, and record again
    [exit 6]
    ");
    assert_eq!(env.read(".rehearsal/cassettes/greeting.jsonl"), before);
    record("new", ":").ends_with(3);
    assert!(!env.repo.join(".rehearsal/cassettes/new.jsonl").exists());
}

#[test]
fn nothing_of_the_users_home_is_seen_or_changed() {
    let env = TestEnv::new();
    env.file("turns.yaml", SCRIPT);
    let home = env.scratch.join("home");
    let command = "echo $HOME; touch $HOME/mine $TMPDIR/mine; printf %s \"$ANTHROPIC_API_KEY\"";
    let output = env.run(&["record", "x", "--script", "turns.yaml", "--", "sh", "-c", command]).ends_with(3);
    assert!(!output.stdout.contains(home.as_str()), "{output}");
    assert!(output.stdout.ends_with("not-a-key"), "{output}");
    assert!(!home.join("mine").exists());
}

#[test]
fn the_agent_sees_nothing_of_the_recording_in_its_repository() {
    let Some(env) = scene() else { return };
    let looks = |how: &[&str], at: &str| {
        let command = format!("bash agent.bash hello >&2; {at}");
        env.run(&[how, &["--", "sh", "-c", &command]].concat()).ends_with(0)
    };
    let first = looks(&["record", "x", "--script", "turns.yaml"], "git status --porcelain; ls -a");
    assert!(!first.stdout.contains(".rehearsal"), "{first}");
    let replayed = looks(&["replay", "x"], "git status --porcelain");
    assert_eq!(replayed.stdout, "", "{replayed}");
}

#[test]
fn mistakes_are_told_with_what_to_do() {
    let env = TestEnv::new();
    assert_snapshot!(env.run(&["record", "x", "--", "sh", "-c", ":"]).ends_with(2).stderr, @"
    error: it is not known which vendor `sh` asks
    hint: name it with `--upstream URL`, or play it with `--script FILE`
    ");
    assert_snapshot!(env.run(&["record", "../x", "--script", "a", "--", "sh"]).ends_with(2).stderr, @"
    error: `../x` is no name of a cassette
    hint: a name is like `greeting` or `agents/greeting`; a file ends in `.jsonl`
    ");
    assert_snapshot!(env.run(&["replay", "x", "--", "sh"]).ends_with(2), @"
    [stderr]
    error: cannot read [REPO]/.rehearsal/cassettes/x.jsonl
      because: failed to open file `[REPO]/.rehearsal/cassettes/x.jsonl`: No such file or directory (os error 2)
    hint: record it with `rehearsal record NAME -- COMMAND…`
    [exit 2]
    ");
    env.file("turns.yaml", SCRIPT);
    let gone = ["record", "x", "--script", "turns.yaml", "--", "no-such-agent"];
    assert_snapshot!(env.run(&gone).ends_with(2).stderr, @"
    error: program `no-such-agent` was not found
    hint: the command stands after `--`: `… -- claude -p 'Say hello'`
    ");
    let slow = ["record", "x", "--script", "turns.yaml", "--timeout", "1s", "--", "sleep", "600"];
    assert_snapshot!(env.run(&slow).ends_with(124).stderr, @"
    error: the command did not end within 1s
    hint: `--timeout TIME` gives it longer
    ");
    assert!(!env.repo.join(".rehearsal/cassettes/x.jsonl").exists());
}

#[test]
fn a_broken_cassette_is_refused() {
    let Some(env) = recorded() else { return };
    let text = env.read(".rehearsal/cassettes/greeting.jsonl");
    let (without_end, _) = text.trim_end().rsplit_once('\n').unwrap();
    env.file("cut.jsonl", format!("{without_end}\n"));
    assert_snapshot!(env.run(&["cassette", "show", "cut.jsonl"]).ends_with(2), @"
    [stderr]
    error: the recording is incomplete: it has no end record
      --> [REPO]/cut.jsonl
    hint: record it again; a recording that was broken off cannot be played
    [exit 2]
    ");
    assert_snapshot!(env.run(&["cassette", "lint", "cut.jsonl"]).ends_with(3).stdout, @"cut.jsonl: error the recording is incomplete: it has no end record");
    env.file("changed.jsonl", text.replace("hello in", "Hello in"));
    env.run(&["replay", "changed.jsonl", "--", "sh"]).ends_with(2).says("changed.jsonl");
}

#[test]
fn cassettes_are_shown_and_compared() {
    let Some(env) = recorded() else { return };
    env.run(&["record", "other", "--script", "turns.yaml", "--", "bash", "agent.bash", "goodbye"])
        .ends_with(0);
    let shown = env.run(&["cassette", "show", "greeting"]).ends_with(0);
    shown.says("recorded with bash").says("main  POST /v1/messages  m");
    let whole = env.run(&["cassette", "show", "greeting", "--request", "1"]).ends_with(0);
    whole.says("\"content\": \"hello in ⟦cwd⟧ \"").says("event: message_stop");
    env.run(&["cassette", "show", "greeting", "--request", "9"])
        .ends_with(2)
        .says("the cassette has no request 9");
    assert_snapshot!(env.run(&["cassette", "diff", "greeting", "other"]).ends_with(3).stdout, @"
    main 1 asks something else
    /messages/0/content
      - hello in ⟦cwd⟧ 
      + goodbye in ⟦cwd⟧
    ");
    env.run(&["cassette", "diff", "greeting", "greeting"]).ends_with(0).says("the same requests and answers");
}

#[test]
fn a_secret_is_found_and_taken_out() {
    let Some(env) = scene() else { return };
    // What the agent prints is no secret to whoever does not know it.
    let command = "DEPLOY_TOKEN=hunter2-hunter2 bash agent.bash hello";
    env.run(&["record", "leaky", "--script", "turns.yaml", "--", "sh", "-c", command]).ends_with(0);
    let env = env.var("DEPLOY_TOKEN", "hunter2-hunter2");
    assert_snapshot!(env.run(&["cassette", "lint", "leaky"]).ends_with(3).stdout, @"leaky:2: error holds the value of DEPLOY_TOKEN");
    env.run(&["cassette", "redact", "leaky"]).ends_with(0).says("replaced 1 secret");
    env.run(&["cassette", "lint", "leaky"]).ends_with(0).says("nothing found");
    assert!(!env.read(".rehearsal/cassettes/leaky.jsonl").contains("hunter2"));
    env.run(&["replay", "leaky", "--", "sh", "-c", command]).ends_with(0);
    env.run(&["record", "clean", "--script", "turns.yaml", "--", "sh", "-c", command]).ends_with(0);
    assert!(!env.read(".rehearsal/cassettes/clean.jsonl").contains("hunter2"));
}

#[test]
fn a_cassette_with_a_secret_in_it_is_not_played() {
    let Some(env) = scene() else { return };
    let command = "DEPLOY_TOKEN=hunter2-hunter2 bash agent.bash hello";
    env.run(&["record", "leaky", "--script", "turns.yaml", "--", "sh", "-c", command]).ends_with(0);
    let env = env.var("DEPLOY_TOKEN", "hunter2-hunter2");
    let replayed = env.run(&["replay", "leaky", "--", "bash", "agent.bash", "goodbye"]).ends_with(2);
    assert_snapshot!(replayed, @"
    [stderr]
    error: line 2 holds the value of DEPLOY_TOKEN
      --> [REPO]/.rehearsal/cassettes/leaky.jsonl
    hint: take it out with `rehearsal cassette redact leaky`
    [exit 2]
    ");
    let staged = env.run(&["stage", "--replay", "leaky"]).ends_with(2);
    assert_eq!(staged.stderr, replayed.stderr);
    env.run(&["cassette", "redact", "leaky"]).ends_with(0);
    env.run(&["replay", "leaky", "--", "sh", "-c", command]).ends_with(0);
}

#[test]
fn the_doctor_says_what_an_agent_needs() {
    let Some(env) = scene() else { return };
    let doctor = |command: &str| {
        env.run(&["cassette", "doctor", "--script", "turns.yaml", "--", "bash", "-c", command])
    };
    assert_snapshot!(doctor("bash agent.bash hello").ends_with(0).stdout, @"
    1 request, then 1 request
    the two runs asked the same, with these normalisers: paths@1
    ");
    assert_snapshot!(doctor("cd / && bash \"$OLDPWD/agent.bash\" hello").ends_with(0).stdout, @"
    1 request, then 1 request
    the two runs asked the same; nothing needs to be normalised
    ");
    let odd = doctor("bash agent.bash \"$$ $RANDOM$RANDOM\"").ends_with(3);
    odd.says("the two runs differ in spite of all normalisers").says("/messages/0/content");
}

/// A stage that is open, with any of its three plays.
fn open<'a>(env: &'a TestEnv, args: &[&str]) -> (Running<'a>, String) {
    let running = env.start(&[&["stage", "--json"], args].concat());
    running.until_it_says("\"event\":\"opened\"");
    let opened: Value = serde_json::from_str(running.said().lines().next().unwrap()).unwrap();
    let url = opened["url"].as_str().unwrap().to_owned();
    (running, url)
}

fn close(running: Running<'_>, env: &TestEnv) -> (i32, Value) {
    running.signal(rustix::process::Signal::INT);
    let output = running.finish();
    let last: Value = serde_json::from_str(output.stdout.lines().last().unwrap()).unwrap();
    validate(&schema(env, "stage"), &last);
    (output.code, last)
}

fn agent_asks(env: &TestEnv, url: &str, said: &str) -> String {
    let mut command = env.command("bash");
    command.args(["agent.bash", said]).env("ANTHROPIC_BASE_URL", url);
    String::from_utf8(command.output().unwrap().stdout).unwrap()
}

#[test]
fn a_stage_records_and_replays_whoever_comes() {
    let Some(env) = scene() else { return };
    let vendor = OpenStage::open(&env, SCRIPT);
    let (recording, url) = open(&env, &["--record", "greeting", "--upstream", vendor.url()]);
    let first = agent_asks(&env, &url, "hello");
    let (code, told) = close(recording, &env);
    assert_eq!((code, &told["event"], &told["requests"]), (0, &"recorded".into(), &1.into()), "{told:#}");
    vendor.close();
    let (replaying, url) = open(&env, &["--replay", "greeting"]);
    let body = |text: &str| text.split_once("\r\n\r\n").unwrap().1.to_owned();
    assert!(body(&first).contains("message_stop"), "{first}");
    assert!(body(&agent_asks(&env, &url, "hello")).contains("message_stop"));
    let (code, told) = close(replaying, &env);
    assert_eq!((code, &told["faithful"], &told["played"]), (0, &true.into(), &1.into()), "{told:#}");
}

#[test]
fn a_stage_that_nobody_asked_leaves_the_cassette_as_it_was() {
    let Some(env) = recorded() else { return };
    let before = env.read(".rehearsal/cassettes/greeting.jsonl");
    let recording = env.start(&["stage", "--record", "greeting", "--upstream", "http://127.0.0.1:9"]);
    recording.until_it_says("the stage is open");
    recording.signal(rustix::process::Signal::INT);
    let output = recording.finish().ends_with(3);
    assert_snapshot!(output.stderr.replace(env.repo.as_str(), "[REPO]"), @"
    error: nothing was recorded: no request came; [REPO]/.rehearsal/cassettes/greeting.jsonl stays as it was
    hint: tell the agent where the stage is, as it said when it opened
    ");
    assert_eq!(env.read(".rehearsal/cassettes/greeting.jsonl"), before);
}

#[test]
fn every_document_has_the_form_of_its_schema() {
    let Some(env) = recorded() else { return };
    let agent = ["--", "bash", "agent.bash", "hello"];
    let calls: [(&str, &[&str]); 7] = [
        ("record", &["record", "again", "--script", "turns.yaml", "--json"]),
        ("replay", &["replay", "greeting", "--json"]),
        ("cassette-doctor", &["cassette", "doctor", "--script", "turns.yaml", "--json"]),
        ("cassette-show", &["cassette", "show", "greeting", "--request", "1", "--json"]),
        ("cassette-diff", &["cassette", "diff", "greeting", "again", "--json"]),
        ("cassette-lint", &["cassette", "lint", "greeting", "--json"]),
        ("cassette-redact", &["cassette", "redact", "greeting", "--json"]),
    ];
    for (index, (name, args)) in calls.iter().enumerate() {
        let agent: &[&str] = if index < 3 { &agent } else { &[] };
        let document = env.run(&[args, agent].concat()).ends_with(0).document();
        validate(&schema(&env, name), &document);
        assert_eq!(document["schema_version"], 1, "{name}");
    }
}

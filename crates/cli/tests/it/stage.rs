//! `stage`: a vendor that plays a script.

use std::io::{Read, Write};
use std::net::TcpStream;

use insta::assert_snapshot;
use rustix::process::Signal;
use serde_json::Value;

use crate::env::{Output, TestEnv};
use crate::json::{schema, validate};
use crate::running::Running;

/// An open stage.
pub(crate) struct OpenStage<'a> {
    running: Running<'a>,
    pub(crate) opened: Value,
}

impl<'a> OpenStage<'a> {
    /// Opens it in another process, as people do.
    pub(crate) fn open(env: &'a TestEnv, script: &str) -> Self {
        let path = env.scratch.join("stage.yaml");
        std::fs::write(&path, script).unwrap();
        Self::start(env, &["--script", path.as_str()])
    }

    /// The same with other flags.
    pub(crate) fn start(env: &'a TestEnv, flags: &[&str]) -> Self {
        let running = env.start(&[&["stage", "--json"], flags].concat());
        running.until_it_says("\"event\":\"opened\"");
        let opened = serde_json::from_str(running.said().lines().next().unwrap()).unwrap();
        Self { running, opened }
    }

    pub(crate) fn url(&self) -> &str {
        self.opened["url"].as_str().unwrap()
    }

    /// What an agent CLI has to be told.
    pub(crate) fn setup(&self, agent: &str) -> &Value {
        self.opened["agents"].as_array().unwrap().iter().find(|setup| setup["name"] == agent).unwrap()
    }

    pub(crate) fn process(&self) -> u32 {
        self.running.id()
    }

    /// The status and the body of an answer.
    pub(crate) fn ask(&self, path: &str, body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(self.url().trim_start_matches("http://")).unwrap();
        let length = body.len();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n"
        );
        stream.write_all([head.as_bytes(), body.as_bytes()].concat().as_slice()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let status = text.split(' ').nth(1).unwrap().parse().unwrap();
        (status, text.split_once("\r\n\r\n").unwrap().1.to_owned())
    }

    /// Ends it, and reads what it tells at its end.
    pub(crate) fn close(self) -> (Value, Output) {
        self.running.signal(Signal::INT);
        let output = self.running.finish();
        let last = serde_json::from_str(output.stdout.lines().last().unwrap()).unwrap();
        (last, output)
    }
}

pub(crate) const ASKED: &str =
    r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hello"}]}"#;

#[test]
fn a_played_script_ends_well() {
    let env = TestEnv::without_repository();
    let stage = OpenStage::open(&env, "turns:\n  - say: Hello.\n");
    let line = schema(&env, "stage");
    validate(&line, &stage.opened);
    let (status, body) = stage.ask("/v1/messages", ASKED);
    assert_eq!(status, 200);
    assert!(body.contains("Hello."), "{body}");
    let (closed, output) = stage.close();
    validate(&line, &closed);
    assert_eq!(output.code, 0, "{output}");
    assert_eq!(closed["clean"], true);
    assert_eq!(closed["report"]["exchanges"][0]["answered"]["turn"], 1);
    assert_eq!(output.stdout.lines().count(), 2, "{output}");
}

#[test]
fn what_was_not_told_and_what_was_not_asked_are_red() {
    let env = TestEnv::without_repository();
    env.file("stage.yaml", "turns:\n  - { name: never, when: { contains: tests }, say: Tested. }\n");
    let running = env.start(&["stage", "--script", "stage.yaml"]);
    running.until_it_says("opencode");
    let said = running.said();
    let url = said.lines().next().unwrap().rsplit(' ').next().unwrap().to_owned();
    let stage = OpenStage { running, opened: serde_json::json!({ "url": url }) };
    assert_eq!(stage.ask("/v1/messages", ASKED).0, 400);
    assert_eq!(stage.ask("/v1/embeddings", "{}").0, 404);
    stage.running.signal(Signal::TERM);
    let output = stage.running.finish().ends_with(3);
    let report = output.to_string().split_off(output.to_string().find("TURN").unwrap());
    assert_snapshot!(report, @r#"
    TURN  LINE  PLAYED  OF  NAME
    1     2     0       1   never

    2 requests
    miss: /v1/messages no turn for this request: turn `never` (line 2) does not fit: the user's last message does not contain `tests`. Asked: model `m`, lane `main`, 1 messages, 0 tools, the user said "hello"
    not played here: /v1/embeddings
    1 turn never asked for
    [exit 3]
    "#);
}

#[test]
fn what_each_cli_has_to_be_told_is_shown() {
    let env = TestEnv::without_repository();
    env.file("stage.yaml", "turns: []\n");
    let running = env.start(&["stage", "--script", "stage.yaml"]);
    running.until_it_says("SHARE=1");
    running.signal(Signal::INT);
    let output = running.finish().ends_with(0);
    let port = output.stdout.lines().next().unwrap().rsplit(':').next().unwrap().to_owned();
    assert_snapshot!(output.to_string().replace(&port, "[PORT]"), @r#"
    the stage is open on http://127.0.0.1:[PORT]

    claude
      export ANTHROPIC_BASE_URL=http://127.0.0.1:[PORT]
      export ANTHROPIC_API_KEY=not-a-key
      export CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1

    codex
      export REHEARSAL_STAGE_KEY=not-a-key
      codex exec --disable plugins --disable unbounded_connection_retries -c 'analytics.enabled=false' -c 'check_for_update_on_startup=false' -c 'model_provider="rehearsal"' -c 'model="rehearsal"' -c 'model_providers.rehearsal={name="rehearsal",base_url="http://127.0.0.1:[PORT]/v1",env_key="REHEARSAL_STAGE_KEY",wire_api="responses"}'

    crew
      export ANTHROPIC_BASE_URL=http://127.0.0.1:[PORT]
      export ANTHROPIC_API_KEY=not-a-key
      export OPENAI_BASE_URL=http://127.0.0.1:[PORT]/v1
      export OPENAI_API_KEY=not-a-key
      export GOOGLE_GEMINI_BASE_URL=http://127.0.0.1:[PORT]
      export GEMINI_API_KEY=not-a-key

    gemini
      export GOOGLE_GEMINI_BASE_URL=http://127.0.0.1:[PORT]
      export GEMINI_API_KEY=not-a-key
      export GEMINI_CLI_TRUST_WORKSPACE=true
      export GEMINI_CLI_NO_RELAUNCH=1
      in a home directory of its own, ~/.gemini/settings.json: {"security":{"auth":{"selectedType":"gemini-api-key"}},"privacy":{"usageStatisticsEnabled":false},"general":{"enableAutoUpdate":false},"telemetry":{"enabled":false}}

    opencode
      export OPENCODE_CONFIG_CONTENT='{"autoupdate":false,"share":"disabled","model":"rehearsal/rehearsal","small_model":"rehearsal/small","provider":{"rehearsal":{"npm":"@ai-sdk/openai-compatible","name":"rehearsal","options":{"baseURL":"http://127.0.0.1:[PORT]/v1","apiKey":"not-a-key"},"models":{"rehearsal":{"name":"rehearsal","tool_call":true,"limit":{"context":200000,"output":8192}},"small":{"name":"small","limit":{"context":200000,"output":8192}}}}},"enabled_providers":["rehearsal"],"permission":{"*":"allow"}}'
      export OPENCODE_DISABLE_AUTOUPDATE=1
      export OPENCODE_DISABLE_MODELS_FETCH=1
      export OPENCODE_DISABLE_LSP_DOWNLOAD=1
      export OPENCODE_DISABLE_SHARE=1
    0 requests
    "#);
}

#[test]
fn a_script_that_cannot_be_played_is_told_with_its_place() {
    let env = TestEnv::without_repository();
    env.file("stage.yaml", "turns:\n  - say: hi\n    do:\n      - wirte_file: { path: a, content: b }\n");
    assert_snapshot!(env.run(&["stage", "--script", "stage.yaml"]), @"
    [stderr]
    error: unknown variant `wirte_file`, expected one of write_file, edit_file, read_file, run, tool
      --> stage.yaml:4:9
    hint: did you mean `write_file`?
    [exit 2]
    ");
    assert_snapshot!(env.run(&["stage", "--script", "missing.yaml"]), @"
    [stderr]
    error: there is no file `missing.yaml`
    [exit 2]
    ");
}

#[test]
fn a_port_that_is_taken_is_told() {
    let env = TestEnv::without_repository();
    let taken = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    env.file("stage.yaml", "turns: []\n");
    let output = env.run(&["stage", "--script", "stage.yaml", "--port", &port]).ends_with(2);
    assert_snapshot!(output.to_string().replace(&port, "[PORT]"), @"
    [stderr]
    error: cannot listen on 127.0.0.1:[PORT]: Address already in use (os error 98)
    hint: `--port 0` takes any port that is free
    [exit 2]
    ");
}

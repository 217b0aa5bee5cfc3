//! The real Claude Code and Codex, on loopback, without a key that is worth anything. `./test` installs them and
//! names their directory in `REHEARSAL_TEST_AGENTS`; without it these tests say that they were left out.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

use serde_json::{Value, json};

use crate::env::TestEnv;

/// The directory with the real CLIs.
pub(crate) fn agents() -> Option<String> {
    let directory = std::env::var("REHEARSAL_TEST_AGENTS").ok();
    if directory.is_none() {
        let _ = writeln!(
            std::io::stderr(),
            "left out: REHEARSAL_TEST_AGENTS names no directory with claude and codex"
        );
    }
    directory
}

fn env_with(driver: &str, directory: &str, more: &str) -> TestEnv {
    let env = TestEnv::new();
    let config =
        format!("agents:\n  implementer:\n    driver: {driver}\n    program: {directory}/{driver}\n{more}\n");
    env.file(".rehearsal/config.yaml", config);
    env
}

#[test]
fn the_installed_clis_conform_without_spending_a_token() {
    let Some(directory) = agents() else { return };
    for driver in ["claude", "codex"] {
        let env = env_with(driver, &directory, "");
        let document = env.json(&["agent", "check", "implementer"]);
        assert_eq!(document["conforms"], true, "{document:#}");
        let missing: Vec<&Value> = document["capabilities"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|row| row["supported"] == false)
            .collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}

#[test]
fn claude_without_a_key_stops_the_line_and_costs_no_attempt() {
    let Some(directory) = agents() else { return };
    let env = env_with("claude", &directory, "").session("greet").task("Say hello");
    env.run(&["run"]).ends_with(6).says("auth_failed: Not logged in").says("no task lost an attempt");
    assert_eq!(env.outcomes(), ["auth_failed", "auth_failed"]);
    assert_eq!(env.task_now(1)["task"]["attempts"], 0);
}

#[test]
fn claude_that_cannot_reach_its_model_is_waited_for() {
    let Some(directory) = agents() else { return };
    let offline = "    env: { ANTHROPIC_API_KEY: not-a-key, ANTHROPIC_BASE_URL: 'http://127.0.0.1:9', CLAUDE_CODE_MAX_RETRIES: '0' }";
    let env = env_with("claude", &directory, offline).session("greet").task("Say hello");
    env.run(&["run", "--max-wait", "1s"]).ends_with(75).says("unreachable");
    assert_eq!(env.task_now(1)["task"]["attempts"], 0);
}

#[test]
fn claude_really_edits_a_file_and_the_loop_goes_to_its_end() {
    claude_writes_a_file("");
}

#[test]
fn claude_works_in_a_sandbox_as_well() {
    claude_writes_a_file("\n    sandbox: required");
}

fn claude_writes_a_file(more: &str) {
    let Some(directory) = agents() else { return };
    let model = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = model.local_addr().unwrap().port();
    std::thread::spawn(move || play_model(&model, write_a_file));
    let offline = format!(
        "    env: {{ ANTHROPIC_API_KEY: not-a-key, ANTHROPIC_BASE_URL: 'http://127.0.0.1:{port}', CLAUDE_CODE_MAX_RETRIES: '0' }}{more}"
    );
    let env = env_with("claude", &directory, &offline).session("greet").task("Write hello.txt");
    env.run(&["run", "--accept-complete", "--iterations", "3"])
        .ends_with(0)
        .says("the agent says that all is complete");
    assert_eq!(env.read("hello.txt"), "hello world\n");
    let run = env.json(&["runs", "show", &env.runs()[0]]);
    let end = &run["run"]["end"];
    assert_eq!(end["verdict"]["outcome"]["name"], "done", "{end:#}");
    assert_eq!(end["promise"], "complete");
    assert_eq!(end["files_changed"], json!(["hello.txt"]));
    assert!(end["cost_usd"].as_f64().unwrap() > 0.0);
    assert!(end["agent_session"].is_string());
}

/// A model: what it says to each request. It serves until the test ends.
pub(crate) fn play_model(listener: &TcpListener, says: impl Fn(&Value) -> Turn + Clone + Send + 'static) {
    for stream in listener.incoming().flatten() {
        let says = says.clone();
        std::thread::spawn(move || while answer(&stream, &says).is_some() {});
    }
}

/// What a model says.
pub(crate) struct Turn {
    block: Value,
    delta: Value,
    reason: &'static str,
}

/// It says its last word.
pub(crate) fn said(text: &str) -> Turn {
    let delta = json!({"type": "text_delta", "text": text});
    Turn { block: json!({"type": "text", "text": ""}), delta, reason: "end_turn" }
}

/// It wants a tool to be used.
pub(crate) fn uses(tool: &str, input: &Value) -> Turn {
    let delta = json!({"type": "input_json_delta", "partial_json": input.to_string()});
    let block = json!({"type": "tool_use", "id": "toolu_1", "name": tool, "input": {}});
    Turn { block, delta, reason: "tool_use" }
}

/// Writes a file in its first answer and is done in its second.
fn write_a_file(request: &Value) -> Turn {
    let request = request.to_string();
    if request.contains("tool_result") {
        return said("Done.\n<promise>COMPLETE</promise>");
    }
    let directory = working_directory(&request);
    uses("Write", &json!({"file_path": format!("{directory}/hello.txt"), "content": "hello world\n"}))
}

/// Answers one request; none if there are no more.
fn answer(mut stream: &TcpStream, says: &impl Fn(&Value) -> Turn) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    let mut first = String::new();
    reader.read_line(&mut first).ok().filter(|read| *read > 0)?;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    let body = if first.starts_with("POST /v1/messages") { messages(says(&request)) } else { String::new() };
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(body.as_bytes()).ok()
}

/// The answer of the Messages API, as server-sent events.
fn messages(turn: Turn) -> String {
    let Turn { block, delta, reason } = turn;
    let usage = json!({"input_tokens": 100, "output_tokens": 20});
    let start = json!({"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant",
        "model": "claude-opus-5-5", "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage}});
    let events = [
        start,
        json!({"type": "content_block_start", "index": 0, "content_block": block}),
        json!({"type": "content_block_delta", "index": 0, "delta": delta}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null}, "usage": usage}),
        json!({"type": "message_stop"}),
    ];
    let event =
        |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default());
    events.iter().map(event).collect()
}

/// Claude Code tells its model where it works.
fn working_directory(request: &str) -> String {
    let marker = "working directory: ";
    let start = request.find(marker).map_or(0, |at| at + marker.len());
    request[start..].split(['\\', '"']).next().unwrap_or_default().trim().to_owned()
}

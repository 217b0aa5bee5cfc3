//! The real Claude Code as the client, with its model played on loopback.

use std::net::TcpListener;
use std::sync::mpsc;

use serde_json::{Value, json};

use crate::env::PROGRAM;
use crate::real_agents::{agents, play_model, said, uses};

#[test]
fn claude_calls_the_tool_and_its_model_reads_what_failed() {
    let Some(directory) = agents() else { return };
    let env = super::repository(super::RED);
    let model = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = model.local_addr().unwrap().port();
    let (heard, results) = mpsc::channel();
    std::thread::spawn(move || {
        play_model(&model, move |request| match result_of_tool(request) {
            Some(result) => {
                // The test may have ended.
                let _ = heard.send(result);
                said("The test `subtracts` fails.")
            }
            None => uses("mcp__rehearsal__run_tests", &json!({})),
        });
    });
    let config = json!({"mcpServers": {"rehearsal": {"command": PROGRAM, "args": ["mcp"]}}});
    let mut claude = env.command(&format!("{directory}/claude"));
    claude
        .args(["-p", "Run the tests.", "--output-format", "json", "--strict-mcp-config"])
        .args(["--mcp-config", &config.to_string(), "--allowedTools", "mcp__rehearsal__run_tests"])
        .env("ANTHROPIC_API_KEY", "not-a-key")
        .env("ANTHROPIC_BASE_URL", format!("http://127.0.0.1:{port}"))
        .env("CLAUDE_CODE_MAX_RETRIES", "0")
        .stdin(std::process::Stdio::null());
    let output = claude.output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{stdout}\n{}", String::from_utf8_lossy(&output.stderr));
    let answer: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(answer["result"], "The test `subtracts` fails.", "{answer:#}");
    let result = results.try_recv().unwrap();
    assert!(result.contains("subtracts"), "{result}");
    assert!(result.contains("Status: FAILED (1/2 passed)"), "{result}");
}

/// What the tool answered, as the model is told; none before it was called.
fn result_of_tool(request: &Value) -> Option<String> {
    let messages = request["messages"].as_array()?;
    let blocks = messages.iter().filter_map(|message| message["content"].as_array()).flatten();
    blocks.filter(|block| block["type"] == "tool_result").map(|block| block["content"].to_string()).next()
}

//! The real Claude Code as the client, with its model on the stage.

use serde_json::{Value, json};

use crate::env::{PROGRAM, TestEnv};
use crate::real_agents::agents;
use crate::stage::OpenStage;

#[test]
fn claude_calls_the_tool_and_its_model_reads_what_failed() {
    let Some(directory) = agents() else { return };
    let env = super::repository(super::RED);
    let stage_env = TestEnv::without_repository();
    let stage = OpenStage::open(
        &stage_env,
        "
turns:
  - do: [{ tool: { name: mcp__rehearsal__run_tests } }]
  - expect: { result: 'Status: FAILED (1/2 passed)' }
    capture: { failed: '(subtracts)' }
    say: The test `{{failed}}` fails.
",
    );
    let config = json!({"mcpServers": {"rehearsal": {"command": PROGRAM, "args": ["mcp"]}}});
    let mut claude = env.command(&format!("{directory}/claude"));
    claude
        .args(["-p", "Run the tests.", "--output-format", "json", "--strict-mcp-config"])
        .args(["--mcp-config", &config.to_string(), "--allowedTools", "mcp__rehearsal__run_tests"])
        .env("ANTHROPIC_API_KEY", "not-a-key")
        .env("ANTHROPIC_BASE_URL", stage.url())
        .env("CLAUDE_CODE_MAX_RETRIES", "0")
        .stdin(std::process::Stdio::null());
    let output = claude.output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{stdout}\n{}", String::from_utf8_lossy(&output.stderr));
    let answer: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(answer["result"], "The test `subtracts` fails.", "{answer:#}");
    let (closed, _) = stage.close();
    assert_eq!(closed["clean"], true, "{closed:#}");
}

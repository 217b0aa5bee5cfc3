//! The real Claude Code and Codex, on loopback, without a key that is worth anything. `./test` installs them and
//! names their directory in `REHEARSAL_TEST_AGENTS`; without it these tests say that they were left out.

use std::io::Write;

use serde_json::{Value, json};

use crate::env::TestEnv;
use crate::stage::OpenStage;
use crate::staged_agents::{TASK, more_agents};

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

/// The whole check, in our sandbox and under the CLI's own rules.
#[track_caller]
fn conforms(driver: &str, directory: &str) {
    for sandbox in ["auto", "off"] {
        let env = env_with(driver, directory, &format!("    sandbox: {sandbox}"));
        if ["gemini", "opencode"].contains(&driver) {
            assert!(env.has_tool("node") && env.has_tool("bash"));
        }
        // The machine of a test is busy.
        let document = env.run(&["agent", "check", "implementer", "--timeout", "2m", "--json"]).document();
        assert_eq!(document["conforms"], true, "{driver} {sandbox} {document:#}");
        let rows = document["checks"].as_array().unwrap().iter();
        let tried: Vec<&str> = rows.map(|row| row["what"].as_str().unwrap()).collect();
        let all = [
            "found",
            "version",
            "flags",
            "confinement",
            "edits",
            "runs_tests",
            "commits",
            "reports",
            "decides",
            "ends_when_killed",
        ];
        assert_eq!(tried, all, "{driver} {sandbox}");
        let by = if sandbox == "auto" { "sandbox" } else { "own_rules" };
        assert_eq!(document["bounds"]["by"]["kind"], by);
    }
}

#[test]
fn claude_does_all_that_a_run_needs_without_spending_a_token() {
    let Some(directory) = agents() else { return };
    conforms("claude", &directory);
}

#[test]
fn codex_does_all_that_a_run_needs_without_spending_a_token() {
    let Some(directory) = agents() else { return };
    conforms("codex", &directory);
}

#[test]
fn gemini_does_all_that_a_run_needs_without_spending_a_token() {
    let Some(directory) = more_agents() else { return };
    conforms("gemini", &directory);
}

#[test]
fn opencode_does_all_that_a_run_needs_without_spending_a_token() {
    let Some(directory) = more_agents() else { return };
    conforms("opencode", &directory);
}

#[test]
fn the_installed_clis_have_every_flag() {
    let Some(directory) = agents() else { return };
    for driver in ["claude", "codex"] {
        let env = env_with(driver, &directory, "    permission: plan");
        let document = env.json(&["agent", "check", "implementer", "--timeout", "2m"]);
        let rows = document["capabilities"].as_array().unwrap().iter();
        let missing: Vec<&Value> = rows.filter(|row| row["supported"] == false).collect();
        assert!(missing.is_empty(), "{missing:?}");
        let rows = document["checks"].as_array().unwrap().iter();
        assert!(
            rows.clone().any(|row| row["what"] == "decides")
                && rows.clone().all(|row| row["what"] != "edits")
        );
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
    let stage_env = TestEnv::without_repository();
    let script = TASK.replace("say: Done.", "say: \"Done.\\n<promise>COMPLETE</promise>\"");
    let stage = OpenStage::open(&stage_env, &script);
    let offline = format!(
        "    env: {{ ANTHROPIC_API_KEY: not-a-key, ANTHROPIC_BASE_URL: '{}', CLAUDE_CODE_MAX_RETRIES: '0' }}{more}",
        stage.url()
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
    let (closed, _) = stage.close();
    assert_eq!(closed["clean"], true, "{closed:#}");
}

use rstest::rstest;
use serde_json::Value;

use crate::fixtures::{assert_same_shape, real, shape};
use crate::stage::{Ended, Stage};

/// What the real agents were seen to do.
const WORK: &str = r#"
run:
  - say: Writing the file.
  - write: { path: hello.txt, content: "hello world\n" }
  - say: Listing.
  - run: { command: ls }
  - usage: { input: 300, cached: 50, output: 60, cost_usd: 0.0024 }
  - say: "Done.\n<promise>COMPLETE</promise>"
"#;
const SHELL: &str = "run:\n  - run: { command: ls }\n  - say: Done.\n";
const PATCH: &str = "run:\n  - write: { path: hello.txt, content: hi }\n  - say: Done.\n";
const REFUSED: &str =
    "run:\n  - tool: { name: Write, input: { file_path: a, content: b }, end: refused }\n  - say: Done.\n";
const OTHER: &str = "run:\n  - tool: { name: ping, input: { text: hi }, output: pong }\n  - say: Done.\n";
const FAILING: &str = "run:\n  - run: { command: \"echo out; exit 3\" }\n  - say: Done.\n";

fn play(agent: &str, script: &str) -> Ended {
    Stage::new().play_as(Some(agent), &["-m", "fake", "--model", "claude-opus-5-5"], script)
}

fn gemini(script: &str) -> Ended {
    Stage::new().play_as(Some("gemini"), &["-m", "fake"], script)
}

fn last(played: &Ended) -> Value {
    serde_json::from_str(played.stdout.lines().last().unwrap()).unwrap()
}

#[rstest]
#[case::claude("claude", WORK, "claude-success.jsonl")]
#[case::claude_failing_tool("claude", FAILING, "claude-tool-failed.jsonl")]
#[case::codex("codex", SHELL, "codex-success.jsonl")]
#[case::codex_patch("codex", PATCH, "codex-patch.jsonl")]
#[case::codex_other_tool("codex", OTHER, "codex-mcp.jsonl")]
#[case::opencode("opencode", WORK, "opencode-success.jsonl")]
fn a_good_end_has_the_keys_of_the_real_ones(
    #[case] agent: &str,
    #[case] script: &str,
    #[case] fixture: &str,
) {
    let played = play(agent, script).well();
    assert_same_shape(&shape(&played.stdout), &real(fixture));
}

#[test]
fn a_good_end_of_gemini_has_the_keys_of_the_real_one() {
    assert_same_shape(&shape(&gemini(WORK).well().stdout), &real("gemini-success.jsonl"));
}

#[rstest]
#[case::claude_auth("claude", "error: { kind: auth }", "claude-auth.jsonl")]
#[case::codex_auth("codex", "error: { kind: auth }", "codex-auth.jsonl")]
#[case::opencode_auth("opencode", "error: { kind: auth }", "opencode-auth.jsonl")]
fn an_error_has_the_keys_of_the_real_ones(#[case] agent: &str, #[case] action: &str, #[case] fixture: &str) {
    let played = play(agent, &format!("run:\n  - {action}\n"));
    assert_eq!(played.code(), 1);
    assert_same_shape(&shape(&played.stdout), &real(fixture));
}

/// These were recorded without their stream: only the final event is compared.
#[rstest]
#[case::max_turns("error: { kind: max_turns }", "claude-max-turns.jsonl")]
#[case::unreachable("error: { kind: unreachable }", "claude-unreachable.jsonl")]
fn claudes_other_errors_end_like_the_real_ones(#[case] action: &str, #[case] fixture: &str) {
    let played = play("claude", &format!("run:\n  - say: Listing.\n  - {action}\n"));
    assert_eq!(played.code(), 1);
    let mut end = last(&played);
    // Only streams have it.
    end.as_object_mut().unwrap().remove("model_usage_since_last_result");
    // The real one failed before its first answer.
    if fixture == "claude-unreachable.jsonl" {
        end["modelUsage"] = serde_json::json!({});
    }
    assert_same_shape(&shape(&end.to_string()), &real(fixture));
}

#[test]
fn claude_tells_what_was_refused() {
    let played = play("claude", REFUSED).well();
    let mut end = last(&played);
    end.as_object_mut().unwrap().remove("model_usage_since_last_result");
    assert_same_shape(&shape(&end.to_string()), &real("claude-refused.jsonl"));
    assert_eq!(end["permission_denials"][0]["tool_name"], "Write");
}

#[test]
fn gemini_and_opencode_tell_what_was_refused() {
    let refused = "run:\n  - tool: { name: nope, input: { x: 1 }, end: refused }\n  - say: Done.\n";
    assert_same_shape(&shape(&gemini(refused).well().stdout), &real("gemini-refused.jsonl"));
    let refused = "run:\n  - tool: { name: write, input: { filePath: a, content: b }, end: refused }\n";
    let played = play("opencode", refused).well();
    let real = real("opencode-refused.jsonl");
    let ours = shape(&played.stdout);
    assert_same_shape(&ours.into_iter().filter(|(kind, _)| kind.starts_with("tool_use")).collect(), &real);
}

#[test]
fn claude_asks_to_wait_before_it_gives_up_on_a_rate_limit() {
    let played = play("claude", "run:\n  - rate_limit: { retry_after: 30s }\n");
    assert_eq!(played.code(), 1);
    let retry: Value = serde_json::from_str(played.stdout.lines().nth(1).unwrap()).unwrap();
    assert_eq!(retry["retry_delay_ms"], 30_000);
    assert_same_shape(&shape(&retry.to_string()), &real("claude-rate-limit.jsonl"));
    assert_eq!(last(&played)["api_error_status"], 429);
}

#[rstest]
#[case::auth("auth", 145, "UNAUTHENTICATED")]
#[case::bad_request("bad_request", 144, "INVALID_ARGUMENT")]
#[case::overloaded("overloaded", 247, "UNAVAILABLE")]
#[case::quota("quota", 173, "RESOURCE_EXHAUSTED")]
#[case::unreachable("unreachable", 1, "")]
fn gemini_ends_with_the_low_byte_of_the_status(#[case] kind: &str, #[case] code: i32, #[case] status: &str) {
    let played = gemini(&format!("run:\n  - say: Hm.\n  - error: {{ kind: {kind} }}\n"));
    assert_eq!(played.code(), code);
    assert!(played.stderr.contains(status), "{}", played.stderr);
    assert_same_shape(&shape(&played.stdout), &real("gemini-error.jsonl"));
}

#[test]
fn gemini_without_a_stream_tells_errors_on_standard_error() {
    let stage = Stage::new();
    let script = "run:\n  - error: { kind: max_turns }\n";
    let played = stage.play_as(Some("gemini"), &["--output-format", "json"], script);
    assert_eq!((played.code(), played.stdout.as_str()), (53, ""));
    let document: Value = serde_json::from_str(&played.stderr).unwrap();
    let real = fs_err::read_to_string(format!(
        "{}/tests/fixtures/mock/gemini-max-turns.stderr",
        env!("CARGO_MANIFEST_DIR")
    ))
    .unwrap();
    for line in real.lines().filter(|line| line.trim_start().starts_with("\"message\"")) {
        assert!(line.contains(document["error"]["message"].as_str().unwrap()));
    }
    assert_eq!(
        (&document["error"]["code"], &document["error"]["type"]),
        (&53.into(), &"FatalTurnLimitedError".into())
    );
    let fine = stage.play_as(Some("gemini"), &["--output-format", "json"], "run:\n  - say: Done.\n").well();
    assert_eq!(serde_json::from_str::<Value>(&fine.stdout).unwrap()["response"], "Done.");
}

#[rstest]
#[case("codex", "max_turns")]
#[case("codex", "budget")]
#[case("gemini", "budget")]
#[case("opencode", "max_turns")]
fn an_end_that_an_agent_does_not_have_cannot_be_scripted(#[case] agent: &str, #[case] kind: &str) {
    let played = play(agent, &format!("run:\n  - error: {{ kind: {kind} }}\n"));
    assert_eq!(played.code(), 2);
    assert_eq!(played.stderr, format!("mock-agent: {agent} has no such end as `{kind}`\n"));
}

#[test]
fn figures_and_texts_come_through() {
    let end = last(&play("claude", WORK).well());
    assert_eq!(end["result"], "Done.\n<promise>COMPLETE</promise>");
    assert_eq!((&end["total_cost_usd"], &end["num_turns"]), (&0.0024.into(), &3.into()));
    assert_eq!(end["modelUsage"]["claude-opus-5-5"]["cacheReadInputTokens"], 50);
    assert_eq!(last(&play("codex", WORK).well())["usage"]["input_tokens"], 300);
    assert_eq!(last(&gemini(WORK).well())["stats"]["total_tokens"], 360);
    let end = last(&play("opencode", WORK).well());
    assert_eq!((&end["part"]["reason"], &end["part"]["tokens"]["total"]), (&"stop".into(), &360.into()));
}

#[rstest]
#[case("claude", &["-p", "--resume", "s-1"], "session_id")]
#[case("codex", &["exec", "--json", "resume", "s-1", "-"], "thread_id")]
#[case("opencode", &["run", "--session", "s-1"], "sessionID")]
fn a_session_that_is_resumed_keeps_its_id(#[case] agent: &str, #[case] foreign: &[&str], #[case] key: &str) {
    let played = Stage::new().play_as(Some(agent), foreign, "run:\n  - say: hi\n").well();
    let first: Value = serde_json::from_str(played.stdout.lines().next().unwrap()).unwrap();
    assert_eq!(first[key], "s-1");
}

#[rstest]
#[case("claude", "2.1.325 (Claude Code)\n", "--append-system-prompt")]
#[case("codex", "codex-cli 0.166.0\n", "--json")]
#[case("gemini", "0.61.0\n", "--approval-mode")]
#[case("opencode", "1.18.33\n", "--format")]
fn version_and_help_are_answered_without_using_up_a_call(
    #[case] agent: &str,
    #[case] version: &str,
    #[case] flag: &str,
) {
    let stage = Stage::new();
    let script = "runs:\n  - - say: hi\n";
    assert_eq!(stage.play_as(Some(agent), &["--version"], script).well().stdout, version);
    assert!(stage.play_as(Some(agent), &["--help"], script).well().stdout.contains(flag));
    stage.play_as(Some(agent), &[], script).well();
}

//! Limits that stop a runaway, and flags that are never left out.

use insta::assert_snapshot;

use crate::env::TestEnv;

/// Calls the same tool again and again, and would never end.
fn loops(times: usize) -> String {
    let call = "  - tool: { name: bash, input: { command: cargo test } }\n".repeat(times);
    format!("{call}  - hang\n").replace("  - ", "    - ")
}

#[test]
fn an_agent_that_calls_the_same_tool_again_and_again_is_stopped() {
    let second = "    - expect_prompt: { contains: 'it called `bash` 25 times in a row' }\n    - write: { path: a.txt, content: a }\n    - task_done: current\n";
    let script = format!("runs:\n  -\n{}  -\n{second}", loops(30));
    let env = TestEnv::new().session("greet").task("Say hello").agent_script(&script);
    env.run(&["run"])
        .ends_with(0)
        .says("runaway: it called `bash` 25 times in a row with the same input (cargo test) in ");
    assert_eq!(env.outcomes(), ["runaway", "done"]);
    let first = env.json(&["runs", "show", &env.runs()[0]]);
    assert_eq!(
        first["run"]["end"]["verdict"]["outcome"]["reason"],
        "it called `bash` 25 times in a row with the same input (cargo test)"
    );
    assert_eq!(env.task_now(1)["task"]["attempts"], 2, "each run is the agent's own");
}

#[test]
fn how_often_an_agent_may_call_tools_is_a_setting() {
    let script = format!("run:\n{}", loops(30));
    let env = TestEnv::new().session("greet").task("Say hello").agent_script(&script);
    let env = env.agent_setting("repeated_calls: 0").agent_setting("tool_calls: 7");
    env.run(&["run", "--iterations", "1"]).says("runaway: it called tools more than 7 times");
    let env = env.agent_setting("idle_timeout: 300ms").agent_setting("timeout: 1m");
    env.file(
        ".rehearsal/config.yaml",
        env.read(".rehearsal/config.yaml").replace("tool_calls: 7", "tool_calls: 0"),
    );
    env.run(&["run", "--iterations", "1"]).says("timed_out");
}

/// A Claude Code whose `--help` does this, and which leaves a trace when it is asked to work.
fn with_help(help: &str) -> TestEnv {
    let script = format!(
        "case \"$*\" in --version) echo '2.1.325 (Claude Code)';; *--help*) {help};; *) touch ../agent/worked;; esac"
    );
    TestEnv::new().session("greet").task("Say hello").program("claude", &script).agent_setting("sandbox: off")
}

#[test]
fn a_cli_whose_help_does_not_name_the_flags_that_restrict_it_is_not_run() {
    for help in [
        "true",
        "exit 1",
        "head -c 4000 /dev/zero",
        "echo '{\"help\": \"see --permission-mode\"}'",
        "echo no help; exit 7",
    ] {
        let env = with_help(help);
        let output = env.run(&["run"]);
        assert!(!env.scratch.join("agent/worked").exists(), "{help}: {output}");
        assert_eq!(output.code, 6, "{help}: {output}");
        assert!(output.stderr.contains("and without them it is not run"), "{help}: {output}");
    }
    assert_snapshot!(with_help("true").run(&["run"]), @"
    [stderr]
    error: `[SCRATCH]/bin/claude` 2.1.325 does not name `--print`, `--output-format`, `--verbose`, `--permission-mode`, `--dangerously-skip-permissions`, `--allowedTools`, `--add-dir` in its help, and without them it is not run
    hint: see what `[SCRATCH]/bin/claude --help` prints, and update it with `npm install -g @anthropic-ai/claude-code`
    hint: `rehearsal agent check` shows all flags that it needs
    [exit 6]
    ");
}

#[test]
fn one_protective_flag_that_is_missing_is_enough() {
    let named = "--print --output-format --verbose --dangerously-skip-permissions --allowedTools --add-dir";
    let lines: String = named.split(' ').map(|flag| format!("echo '  {flag} <x>  Help'; ")).collect();
    let env = with_help(lines.trim_end_matches("; "));
    assert_snapshot!(env.run(&["run"]), @"
    [stderr]
    error: `[SCRATCH]/bin/claude` 2.1.325 does not name `--permission-mode` in its help, and without it it is not run
    hint: see what `[SCRATCH]/bin/claude --help` prints, and update it with `npm install -g @anthropic-ai/claude-code`
    hint: `rehearsal agent check` shows all flags that it needs
    [exit 6]
    ");
    assert!(!env.scratch.join("agent/worked").exists());
}

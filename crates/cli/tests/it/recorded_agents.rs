//! The real agent CLIs, recorded through the proxy from a scripted vendor, and replayed somewhere else.

use serde_json::Value;

use crate::env::TestEnv;
use crate::real_agents::agents;
use crate::staged_agents::TASK;

/// How often a cassette is played: what is exact by chance is not exact five times.
const REPLAYS: usize = 5;

fn command(agent: &str, directory: &str) -> Vec<String> {
    let program = format!("{directory}/{agent}");
    let flags: &[&str] = match agent {
        "claude" => &[
            "-p",
            "--output-format",
            "json",
            "--permission-mode",
            "acceptEdits",
            "--allowedTools",
            "Bash(cat:*)",
        ],
        _ => &["exec", "--json", "--dangerously-bypass-approvals-and-sandbox", "-"],
    };
    std::iter::once(program).chain(flags.iter().map(|flag| (*flag).to_owned())).collect()
}

fn run(env: &TestEnv, args: &[&str], command: &[String], prompt: &str) -> (i32, Value) {
    let mut all: Vec<&str> = args.to_vec();
    all.extend(["--json", "--timeout", "2m", "--"]);
    all.extend(command.iter().map(String::as_str));
    let output = env.run_with_input(&all, prompt);
    (output.code, output.document())
}

fn is_recorded_once_and_played_anywhere(agent: &str) {
    let Some(directory) = agents() else { return };
    let command = command(agent, &directory);
    let env = TestEnv::new();
    env.file("turns.yaml", TASK).commit("A script");
    let (code, recorded) =
        run(&env, &["record", "greeting", "--script", "turns.yaml"], &command, "Write hello.txt");
    assert_eq!((code, &recorded["requests"]), (0, &3.into()), "{recorded:#}");
    assert_eq!(env.read("hello.txt"), "hello world\n");
    let cassette = env.read(".rehearsal/cassettes/greeting.jsonl");
    assert!(!cassette.contains(env.repo.as_str()), "the cassette names this machine's directories");
    for _ in 0..REPLAYS {
        let there = TestEnv::new();
        there.file("turns.yaml", TASK).commit("A script");
        let file = there.scratch.join("greeting.jsonl");
        std::fs::write(&file, &cassette).unwrap();
        let (code, replayed) = run(&there, &["replay", file.as_str()], &command, "Write hello.txt");
        assert_eq!(
            (code, &replayed["faithful"], &replayed["played"]),
            (0, &true.into(), &3.into()),
            "{replayed:#}"
        );
        assert_eq!(there.read("hello.txt"), "hello world\n");
    }
    let file = env.repo.join(".rehearsal/cassettes/greeting.jsonl");
    let (code, missed) = run(&TestEnv::new(), &["replay", file.as_str()], &command, "Write goodbye.txt");
    assert_eq!((code, &missed["faithful"]), (3, &false.into()), "{missed:#}");
    assert_eq!(missed["misses"][0]["nearest"], 1, "{missed:#}");
}

#[test]
fn claude_is_recorded_once_and_played_anywhere() {
    is_recorded_once_and_played_anywhere("claude");
}

#[test]
fn codex_is_recorded_once_and_played_anywhere() {
    is_recorded_once_and_played_anywhere("codex");
}

//! The real agent CLIs, recorded through the proxy from a scripted vendor, and replayed somewhere else.

use std::thread;

use serde_json::Value;

use crate::env::TestEnv;
use crate::real_agents::agents;
use crate::staged_agents::{TASK, more_agents};

/// How often a cassette is played: what is exact by chance is not exact twenty times.
const REPLAYS: usize = 20;

/// So many are played at the same time, each in a directory and with a home of its own.
const SIDE_BY_SIDE: usize = 2;

/// A real CLI and what is known of it.
struct Recorded {
    agent: &'static str,
    directory: String,
    /// What it asks for in the task: some ask for a title or for the choice of a model besides.
    requests: usize,
    /// How it ends when it asks for something that was not recorded, and after how many requests.
    missed: (i32, usize),
}

impl Recorded {
    fn command(&self) -> Vec<String> {
        let program = format!("{}/{}", self.directory, self.agent);
        let flags: &[&str] = match self.agent {
            "claude" => &[
                "-p",
                "--output-format",
                "json",
                "--permission-mode",
                "acceptEdits",
                "--allowedTools",
                "Bash(cat:*)",
            ],
            "codex" => &["exec", "--json", "--dangerously-bypass-approvals-and-sandbox", "-"],
            "gemini" => &["--output-format", "json", "--approval-mode", "yolo"],
            _ => &["run", "--format", "json", "--pure"],
        };
        std::iter::once(program).chain(flags.iter().map(|flag| (*flag).to_owned())).collect()
    }

    /// A repository with a home of its own, and the script of the task in it.
    fn somewhere(&self) -> TestEnv {
        let env = TestEnv::new();
        // Some commands run in a login shell, whose profile asks who one is: without `id` it complains in the output.
        assert!(env.has_tool("id"));
        if self.agent == "gemini" {
            // A program of Node that runs commands in bash; neither is on the PATH of tests.
            assert!(env.has_tool("node"), "gemini is installed, and Node is not");
            assert!(env.has_tool("bash"), "gemini is installed, and bash is not");
        }
        env.file("turns.yaml", TASK).commit("A script");
        env
    }

    fn run(&self, env: &TestEnv, args: &[&str], prompt: &str) -> (i32, Value) {
        let command = self.command();
        let mut all: Vec<&str> = args.to_vec();
        all.extend(["--json", "--timeout", "2m", "--"]);
        all.extend(command.iter().map(String::as_str));
        let output = env.run_with_input(&all, prompt);
        (output.code, output.document())
    }

    fn is_recorded_once_and_played_anywhere(&self) {
        let env = self.somewhere();
        let (code, recorded) =
            self.run(&env, &["record", "greeting", "--script", "turns.yaml"], "Write hello.txt");
        assert_eq!((code, &recorded["requests"]), (0, &self.requests.into()), "{recorded:#}");
        assert_eq!(env.read("hello.txt"), "hello world\n");
        let cassette = env.read(".rehearsal/cassettes/greeting.jsonl");
        assert!(!cassette.contains(env.repo.as_str()), "the cassette names this machine's directories");
        thread::scope(|scope| {
            for _ in 0..SIDE_BY_SIDE {
                scope.spawn(|| (0..REPLAYS / SIDE_BY_SIDE).for_each(|_| self.is_played(&cassette)));
            }
        });
        self.stops_when_it_asks_for_something_else(&env);
    }

    fn is_played(&self, cassette: &str) {
        let there = self.somewhere();
        let file = there.scratch.join("greeting.jsonl");
        std::fs::write(&file, cassette).unwrap();
        let (code, replayed) = self.run(&there, &["replay", file.as_str()], "Write hello.txt");
        assert_eq!(
            (code, &replayed["faithful"], &replayed["played"]),
            (0, &true.into(), &self.requests.into()),
            "{replayed:#}"
        );
        assert_eq!(there.read("hello.txt"), "hello world\n");
    }

    fn stops_when_it_asks_for_something_else(&self, recorded: &TestEnv) {
        let there = self.somewhere();
        let file = recorded.repo.join(".rehearsal/cassettes/greeting.jsonl");
        let (code, missed) = self.run(&there, &["replay", file.as_str()], "Write goodbye.txt");
        assert_eq!((code, &missed["faithful"]), (3, &false.into()), "{missed:#}");
        let (exit, requests) = self.missed;
        assert_eq!(
            (&missed["agent_exit"], &missed["missed"]),
            (&exit.into(), &requests.into()),
            "{missed:#}"
        );
        assert!(missed["misses"][0]["nearest"].is_u64(), "{missed:#}");
    }
}

#[test]
fn claude_is_recorded_once_and_played_anywhere() {
    let Some(directory) = agents() else { return };
    let claude = Recorded { agent: "claude", directory, requests: 3, missed: (1, 6) };
    claude.is_recorded_once_and_played_anywhere();
}

#[test]
fn codex_is_recorded_once_and_played_anywhere() {
    let Some(directory) = agents() else { return };
    let codex = Recorded { agent: "codex", directory, requests: 3, missed: (1, 1) };
    codex.is_recorded_once_and_played_anywhere();
}

#[test]
fn gemini_is_recorded_once_and_played_anywhere() {
    let Some(directory) = more_agents() else { return };
    let gemini = Recorded { agent: "gemini", directory, requests: 4, missed: (144, 2) };
    gemini.is_recorded_once_and_played_anywhere();
}

#[test]
fn opencode_is_recorded_once_and_played_anywhere() {
    let Some(directory) = more_agents() else { return };
    let opencode = Recorded { agent: "opencode", directory, requests: 4, missed: (1, 2) };
    opencode.is_recorded_once_and_played_anywhere();
}

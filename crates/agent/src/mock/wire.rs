//! How real agents print what they do: one format each, faithful to what the real ones were seen to print.

use std::time::Duration;

use camino::Utf8PathBuf;
use rehearsal_core::{Timestamp, Tokens};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::moment::RunClock;

/// How a stand-in imitates a CLI.
#[derive(Debug)]
pub struct MockCli {
    /// What it answers to `--version`.
    pub version: &'static str,
    /// The line after `Usage:` in its help.
    pub usage: &'static str,
    /// Its flags, as its help lists them.
    pub options: &'static [&'static str],
    /// Its output.
    pub wire: fn(Scene) -> Box<dyn Wire>,
}

/// One agent's way to say things. Nothing is printed here: the caller writes what is put into `Lines`.
pub trait Wire {
    /// The agent's name.
    fn agent(&self) -> &'static str;

    /// Whether the agent has such an end.
    fn knows(&self, kind: FaultKind) -> bool;

    /// What comes before anything else.
    fn begin(&mut self, lines: &mut Lines);

    /// Text for people.
    fn text(&mut self, text: &str, lines: &mut Lines);

    /// A tool call and its return.
    fn tool(&mut self, call: &ToolCall, lines: &mut Lines);

    /// The proper end.
    fn end(&mut self, tally: &Tally, lines: &mut Lines);

    /// The end with an error; returns the exit status.
    fn fail(&mut self, fault: &Fault, tally: &Tally, lines: &mut Lines) -> i32;
}

/// What is to be printed.
#[derive(Debug, Default)]
pub struct Lines {
    /// On standard output.
    pub stdout: String,
    /// On standard error.
    pub stderr: String,
}

impl Lines {
    /// One JSON event on a line of standard output.
    pub fn event(&mut self, event: &Value) {
        self.stdout.push_str(&event.to_string());
        self.stdout.push('\n');
    }
}

/// What holds for a whole run.
#[derive(Debug)]
pub struct Scene {
    /// What the agent was asked to do.
    pub prompt: String,
    /// Where it works.
    pub cwd: Utf8PathBuf,
    pub(crate) time: RunClock,
    /// The arguments for the CLI that is imitated.
    pub foreign: Vec<String>,
}

impl Scene {
    /// The value of the first of these options that was given.
    pub fn option(&self, names: &[&str]) -> Option<String> {
        let mut args = self.foreign.iter();
        while let Some(arg) = args.next() {
            if let Some((name, value)) = arg.split_once('=')
                && names.contains(&name)
            {
                return Some(value.to_owned());
            }
            if names.contains(&arg.as_str()) {
                return args.next().cloned();
            }
        }
        None
    }
}

/// What a run used, and said last.
#[derive(Debug, Default)]
pub struct Tally {
    /// Tokens.
    pub tokens: Tokens,
    /// Dollars.
    pub cost_usd: f64,
    /// The last text.
    pub final_text: String,
    /// How many tools were called.
    pub tool_calls: u32,
}

/// A tool call, whatever the agent calls its tools.
#[derive(Debug)]
pub struct ToolCall {
    /// What is called.
    pub tool: Tool,
    /// What it returns.
    pub output: String,
    /// How it ends.
    pub end: ToolEnd,
    /// The exit status, where it was a command.
    pub status: i32,
}

/// What a tool call is for.
#[derive(Debug)]
#[expect(missing_docs, reason = "the fields are those of the tools, and named as there")]
pub enum Tool {
    /// Writes a whole file.
    Write { path: Utf8PathBuf, content: String, is_new: bool },
    /// Replaces a part of a file.
    Edit { path: Utf8PathBuf, find: String, replace: String },
    /// Deletes a file.
    Delete { path: Utf8PathBuf },
    /// Runs a command.
    Shell { command: String },
    /// Anything else.
    Other { name: String, input: Map<String, Value> },
}

/// How a tool call ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ToolEnd {
    /// It works.
    #[default]
    Fine,
    /// It fails.
    Failed,
    /// The agent's own permission rules say no.
    Refused,
}

impl ToolCall {
    /// Gemini and opencode take a command that failed for a tool that worked.
    pub(crate) fn is_failed_command(&self) -> bool {
        self.end == ToolEnd::Failed && matches!(self.tool, Tool::Shell { .. })
    }

    pub(crate) fn fine(tool: Tool, output: impl Into<String>) -> Self {
        Self { tool, output: output.into(), end: ToolEnd::Fine, status: 0 }
    }
}

/// The names of an agent's tools and of their parameters. Deleting is a command with all of them.
pub(crate) struct ToolNames {
    pub(crate) write: &'static str,
    pub(crate) edit: &'static str,
    pub(crate) shell: &'static str,
    pub(crate) path: &'static str,
    pub(crate) old: &'static str,
    pub(crate) new: &'static str,
}

impl ToolNames {
    pub(crate) fn call(&self, tool: &Tool) -> (String, Value) {
        match tool {
            Tool::Write { path, content, .. } => {
                (self.write.into(), json!({self.path: path, "content": content}))
            }
            Tool::Edit { path, find, replace } => {
                (self.edit.into(), json!({self.path: path, self.old: find, self.new: replace}))
            }
            Tool::Delete { path } => self.command(&format!("rm {path}")),
            Tool::Shell { command } => self.command(command),
            Tool::Other { name, input } => (name.clone(), Value::Object(input.clone())),
        }
    }

    fn command(&self, command: &str) -> (String, Value) {
        (self.shell.into(), json!({"command": command, "description": "Run a command"}))
    }
}

/// An error that ends a run.
#[derive(Debug)]
pub struct Fault {
    /// What went wrong.
    pub kind: FaultKind,
    /// What the script says about it.
    pub message: Option<String>,
    /// When it may go on.
    pub wait: Option<Duration>,
}

/// What goes wrong. Not every agent has every one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum FaultKind {
    Auth,
    Overloaded,
    Unreachable,
    Quota,
    BadRequest,
    MaxTurns,
    Budget,
    RateLimit,
}

impl FaultKind {
    /// The name as scripts write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auth => "auth",
            Self::Overloaded => "overloaded",
            Self::Unreachable => "unreachable",
            Self::Quota => "quota",
            Self::BadRequest => "bad_request",
            Self::MaxTurns => "max_turns",
            Self::Budget => "budget",
            Self::RateLimit => "rate_limit",
        }
    }

    /// An error of the agent itself, not of the model's service.
    pub(crate) fn is_own_limit(self) -> bool {
        matches!(self, Self::MaxTurns | Self::Budget)
    }
}

impl Fault {
    /// What the service says, unless the script says it.
    pub fn message(&self, default: &str) -> String {
        self.message.clone().unwrap_or_else(|| default.to_owned())
    }

    pub(crate) fn wait_seconds(&self) -> Option<u64> {
        self.wait.map(|wait| wait.as_secs())
    }

    pub(crate) fn until(&self, now: Timestamp) -> Option<Timestamp> {
        self.wait.map(|wait| now.plus(wait))
    }
}

//! How real agents print what they do: one format each, faithful to what the real ones were seen to print.

use std::time::Duration;

use camino::Utf8PathBuf;
use rehearsal_core::{Timestamp, Tokens};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::moment::RunClock;

mod claude;
mod codex;
mod crew;
mod gemini;
mod opencode;
mod plain;

/// A real agent whose output can be spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireFormat {
    /// Claude Code's `stream-json`.
    Claude,
    /// Codex's `--json`.
    Codex,
    /// Gemini CLI's `stream-json`.
    Gemini,
    /// opencode's `--format json`.
    Opencode,
    /// Our own.
    Crew,
}

impl WireFormat {
    /// The format of an agent, by the agent's name.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "claude" => Self::Claude,
            "codex" => Self::Codex,
            "gemini" => Self::Gemini,
            "opencode" => Self::Opencode,
            "crew" => Self::Crew,
            _ => return None,
        })
    }
}

/// One agent's way to say things. Nothing is printed here: the caller writes what is put into `Lines`.
pub(super) trait Wire {
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

pub(super) fn speaking(format: Option<WireFormat>, scene: Scene) -> Box<dyn Wire> {
    match format {
        None => Box::new(plain::Plain),
        Some(WireFormat::Claude) => Box::new(claude::Claude::new(scene)),
        Some(WireFormat::Codex) => Box::new(codex::Codex::new(&scene)),
        Some(WireFormat::Gemini) => Box::new(gemini::Gemini::new(scene)),
        Some(WireFormat::Opencode) => Box::new(opencode::Opencode::new(scene)),
        Some(WireFormat::Crew) => Box::new(crew::Crew::new(&scene)),
    }
}

/// What is to be printed.
#[derive(Default)]
pub(super) struct Lines {
    pub(super) stdout: String,
    pub(super) stderr: String,
}

impl Lines {
    /// One JSON event on a line of standard output.
    fn event(&mut self, event: &Value) {
        self.stdout.push_str(&event.to_string());
        self.stdout.push('\n');
    }
}

/// What holds for a whole run.
pub(super) struct Scene {
    pub(super) prompt: String,
    pub(super) cwd: Utf8PathBuf,
    pub(super) time: RunClock,
    /// The value of a foreign option, if the agent was given it.
    pub(super) foreign: Vec<String>,
}

impl Scene {
    /// The value of the first of these options that was given.
    fn option(&self, names: &[&str]) -> Option<String> {
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
#[derive(Default)]
pub(super) struct Tally {
    pub(super) tokens: Tokens,
    pub(super) cost_usd: f64,
    pub(super) final_text: String,
    pub(super) tool_calls: u32,
}

/// A tool call, whatever the agent calls its tools.
pub(super) struct ToolCall {
    pub(super) tool: Tool,
    pub(super) output: String,
    pub(super) end: ToolEnd,
    /// The exit status, where it was a command.
    pub(super) status: i32,
}

pub(super) enum Tool {
    Write { path: Utf8PathBuf, content: String, is_new: bool },
    Edit { path: Utf8PathBuf, find: String, replace: String },
    Delete { path: Utf8PathBuf },
    Shell { command: String },
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
    fn is_failed_command(&self) -> bool {
        self.end == ToolEnd::Failed && matches!(self.tool, Tool::Shell { .. })
    }

    pub(super) fn fine(tool: Tool, output: impl Into<String>) -> Self {
        Self { tool, output: output.into(), end: ToolEnd::Fine, status: 0 }
    }
}

/// The names of an agent's tools and of their parameters. Deleting is a command with all of them.
struct ToolNames {
    write: &'static str,
    edit: &'static str,
    shell: &'static str,
    path: &'static str,
    old: &'static str,
    new: &'static str,
}

impl ToolNames {
    fn call(&self, tool: &Tool) -> (String, Value) {
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
pub(super) struct Fault {
    pub(super) kind: FaultKind,
    pub(super) message: Option<String>,
    /// When it may go on.
    pub(super) wait: Option<Duration>,
}

/// What goes wrong. Not every agent has every one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
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
    pub(super) fn name(self) -> &'static str {
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
    fn is_own_limit(self) -> bool {
        matches!(self, Self::MaxTurns | Self::Budget)
    }
}

impl Fault {
    /// What the service says, unless the script says it.
    fn message(&self, default: &str) -> String {
        self.message.clone().unwrap_or_else(|| default.to_owned())
    }

    fn wait_seconds(&self) -> Option<u64> {
        self.wait.map(|wait| wait.as_secs())
    }

    fn until(&self, now: Timestamp) -> Option<Timestamp> {
        self.wait.map(|wait| now.plus(wait))
    }
}

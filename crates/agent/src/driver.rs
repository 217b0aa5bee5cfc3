//! How a kind of agent is run: its command line, and how its output is read.

use std::collections::BTreeMap;

use rehearsal_core::{Activity, Exit, Timestamp, WireReport};

use crate::RunRequest;

mod bounds;
pub mod check;
mod claude;
mod codex;
mod command;
mod crew;
mod explain;
mod fault;
mod flags;
mod gemini;
mod json;
mod kind;
mod lines;
mod offer;
mod opencode;
mod program;
mod stream;
mod tool;
mod wait;

pub use claude::ClaudeDriver;
pub use codex::CodexDriver;
pub use command::CommandDriver;
pub use crew::{CrewDriver, CrewLine, CrewOrder};
pub use explain::{EXPLANATION_VERSION, ExplainFacts, Explanation, explain, parse_exit};
pub use flags::Capabilities;
pub use gemini::GeminiDriver;
pub use kind::{DriverKind, driver_for, driver_with};
pub use opencode::OpencodeDriver;
pub use program::Program;
pub use tool::{call_arguments, call_detail};

/// A kind of agent.
pub trait Driver: Send + Sync {
    /// Its name: `claude`, `codex`, `gemini`, `opencode`, `crew`, `command`.
    fn name(&self) -> &'static str;

    /// The command line for a request.
    fn command(&self, request: &RunRequest) -> CommandLine;

    /// A reader for one run's output. `now` anchors waits that are told as durations.
    fn parser(&self, now: Timestamp) -> Box<dyn WireParser>;
}

/// What to execute.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandLine {
    /// The program: a name on the PATH, or a path.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables that this kind of agent needs (quiet, no updates, no telemetry).
    pub env: BTreeMap<String, String>,
    /// What goes to its standard input.
    pub stdin: String,
    /// What was asked for and cannot be had from this version, in words.
    pub warnings: Vec<String>,
}

/// Reads an agent's output as it comes.
///
/// Push-based: bytes in, activities out, in any chunking. Memory is bounded whatever comes.
pub trait WireParser: Send {
    /// Takes the next bytes of standard output.
    fn push(&mut self, bytes: &[u8], out: &mut Vec<Activity>);

    /// Whether the final event was seen: the work is over, even if the process is not.
    fn has_ended(&self) -> bool;

    /// The whole, once the process is gone. `stderr` is the last part of it.
    fn finish(self: Box<Self>, exit: Option<Exit>, stderr: &[u8]) -> WireReport;
}

//! How a kind of agent is run: its command line, and how its output is read.

use std::collections::BTreeMap;

use rehearsal_core::{Activity, Exit, Notice, WireReport};

use crate::RunRequest;
use crate::clis::AgentCli;

pub(crate) mod bounds;
pub mod check;
pub(crate) mod complaint;
mod explain;
pub(crate) mod fault;
mod flags;
mod here;
pub(crate) mod json;
pub(crate) mod lines;
mod offer;
mod program;
pub(crate) mod stream;
pub(crate) mod tool;
pub(crate) mod wait;

pub use explain::{EXPLANATION_VERSION, ExplainFacts, Explanation, explain, parse_exit};
pub use flags::Capabilities;
pub use here::Here;
pub use offer::Offer;
pub use program::Program;
pub use stream::{Close, Format, JsonLines, Reading};
pub use tool::{call_arguments, call_detail};

/// Runs one program as an agent CLI.
#[derive(Debug, Clone)]
pub struct Driver {
    cli: &'static AgentCli,
    program: Program,
}

impl Driver {
    /// A driver of this program.
    pub fn new(cli: &'static AgentCli, program: impl Into<Program>) -> Self {
        Self { cli, program: program.into() }
    }

    /// What it runs.
    pub fn cli(&self) -> &'static AgentCli {
        self.cli
    }

    /// The command line for a request.
    pub fn command(&self, request: &RunRequest) -> CommandLine {
        (self.cli.command)(self.program.offer(self.cli.flags), request)
    }

    /// A reader for one run's output.
    pub fn parser(&self, here: Here) -> Box<dyn WireParser> {
        (self.cli.parser)(here)
    }
}

/// What to execute.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CommandLine {
    /// The program: a name on the PATH, or a path.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables that this kind of agent needs (quiet, no updates, no telemetry).
    pub env: BTreeMap<String, String>,
    /// What goes to its standard input.
    pub stdin: String,
    /// What was asked for and cannot be had from this version.
    pub warnings: Vec<Notice>,
}

/// Reads an agent's output as it comes.
///
/// Push-based: bytes in, activities out, in any chunking. Memory is bounded whatever comes.
pub trait WireParser: Send {
    /// Takes the next bytes of standard output.
    fn push(&mut self, bytes: &[u8], out: &mut Vec<Activity>);

    /// Takes the next bytes of standard error, where some tell that they try again.
    fn push_stderr(&mut self, _bytes: &[u8], _out: &mut Vec<Activity>) {}

    /// Whether the final event was seen: the work is over, even if the process is not.
    fn has_ended(&self) -> bool;

    /// The whole, once the process is gone. `stderr` is the last part of it.
    fn finish(self: Box<Self>, exit: Option<Exit>, stderr: &[u8]) -> WireReport;
}

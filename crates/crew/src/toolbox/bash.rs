//! `bash`: any command, in the sandbox.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::tool::{BuiltIn, ToolError};
use crate::Permission;
use crate::limits::{COMMAND_TAKES, MAX_COMMAND_TAKES, RESULT_HEAD, RESULT_TAIL};
use crate::shell::{Order, RanEnd, Shell, Streams};

pub(super) struct Bash {
    pub(super) shell: Arc<Shell>,
}

#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The command, for bash.
    command: String,
    /// How long it may take: 120 if left out, at most 900.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 900)))]
    timeout_seconds: Option<u64>,
}

#[async_trait]
impl BuiltIn for Bash {
    type Arguments = Arguments;

    const NAME: &'static str = "bash";
    const SCHEMA: &'static str = include_str!("../../../../schemas/tools/bash.json");
    const ABOUT: &'static str = "Run a command with bash in the worktree, and read what it prints. It runs in a sandbox: only the \
    worktree can be written, `/tmp` is empty at each call, and what is still running when the command ends is killed.";
    const NEEDS: Option<Permission> = Some(Permission::Execute);
    const ONLY_READS: bool = false;

    async fn run(&self, asked: Arguments, cancel: &CancellationToken) -> Result<String, ToolError> {
        let timeout = asked.timeout_seconds.map_or(COMMAND_TAKES, Duration::from_secs).min(MAX_COMMAND_TAKES);
        let order = Order {
            program: "bash".to_owned(),
            args: vec!["-c".to_owned(), asked.command],
            env: Vec::new(),
            timeout,
            streams: Streams::Together,
            kept: (RESULT_HEAD - ROOM, RESULT_TAIL - ROOM),
        };
        let ran =
            self.shell.run(order, cancel).await.map_err(|error| ToolError::failed(error.to_string()))?;
        let mut notes = String::new();
        if ran.left_running > 0 {
            notes
                .push_str(&format!("[{} processes were still running, and were killed]\n", ran.left_running));
        }
        if ran.out_of_memory {
            notes.push_str("[something was killed, since the memory was used up]\n");
        }
        let mut printed = ran.stdout.finish("write to a file, and look at parts of it");
        if !printed.is_empty() && !printed.ends_with('\n') {
            printed.push('\n');
        }
        let ended = match ran.end {
            RanEnd::Exited(0) if printed.is_empty() => return Ok(format!("(nothing was printed)\n{notes}")),
            RanEnd::Exited(0) => return Ok(printed + &notes),
            RanEnd::Exited(code) => format!("exit code {code}"),
            RanEnd::Signaled(signal) => format!("ended by signal {signal}"),
            RanEnd::Lost => "killed".to_owned(),
            RanEnd::TimedOut => format!("killed, since it took longer than {} s", timeout.as_secs()),
            RanEnd::Cancelled => return Err(ToolError::Cancelled),
        };
        Err(ToolError::failed(format!("{ended}\n{printed}{notes}")))
    }
}

/// For what is said about the output.
const ROOM: usize = 512;

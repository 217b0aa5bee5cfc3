//! A command of the user's, in the worktree.

use std::process::Stdio;

use rehearsal_agent::environment::tool_environment;
use rehearsal_core::{Delivery, OutcomeName, RedVerdict, StepFailure};
use tokio::process::Command;

use super::{Scene, red};

/// Of what a command prints, this much of its end is told.
const TOLD: usize = 4_000;

impl Scene<'_> {
    pub(super) async fn command(&self, command: &str) -> Result<Delivery, StepFailure> {
        let worker = &self.desk.worker;
        let child = Command::new("/bin/sh")
            .args(["-c", command])
            .current_dir(self.worktree)
            .env_clear()
            .envs(tool_environment(&worker.variables))
            .env("TASK_ID", self.task.id.as_str())
            .env("TASK_WORKTREE", self.worktree.as_str())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn();
        let cannot = |error: std::io::Error| StepFailure::Systemic {
            outcome: OutcomeName::PermissionDenied,
            reason: format!("`{command}` could not be run: {error}"),
        };
        let child = child.map_err(cannot)?;
        let output = tokio::select! {
            output = child.wait_with_output() => output.map_err(cannot)?,
            () = self.cancel.cancelled() => {
                return Err(StepFailure::Transient { reason: "it was stopped".into() });
            }
        };
        if output.status.success() {
            return Ok(self.delivery());
        }
        let mut said = output.stdout;
        said.extend(output.stderr);
        let tail = &said[said.len().saturating_sub(TOLD)..];
        let said = String::from_utf8_lossy(tail);
        Err(red(
            RedVerdict::CommandFailed,
            format!("`{command}` ended with {}\n{}", output.status, said.trim_end()),
        ))
    }
}

//! A command of the user's, in the worktree. It is not confined, and ends with all that it started: when it is over, when its
//! claim is, and when we are killed.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rehearsal_agent::environment::tool_environment;
use rehearsal_core::{Delivery, OutcomeName, RedVerdict, StepFailure};
use rehearsal_sandbox::{
    Command, Confined, Demand, Ended, Policy, ProjectMode, Sandbox, SandboxError, Signal, Status,
};
use rustix::pipe::{PipeFlags, pipe_with};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;

use super::{StepContext, red};

/// Of what a command prints, this much of its end is told.
const TOLD: usize = 4_000;
/// How long a command may take to end that is told to.
const GRACE: Duration = Duration::from_secs(5);
/// How long to wait for the last words of a command that is over, where somebody else holds its pipe.
const LAST_WORDS: Duration = Duration::from_secs(1);

impl StepContext<'_> {
    pub(super) async fn command(&self, command: &str) -> Result<Delivery, StepFailure> {
        let cannot = |error: &dyn std::error::Error| StepFailure::Systemic {
            outcome: OutcomeName::PermissionDenied,
            reason: format!("`{command}` could not be run: {error}"),
        };
        let (mut printed, to) = pipe().map_err(|error| cannot(&error))?;
        let mut running = self.start(command, to).map_err(|error| cannot(&error))?;
        let mut last_words = Vec::new();
        let ended = tokio::select! {
            ended = running.wait() => Some(ended),
            // The end of what is printed is not the end of the command.
            () = async { listen(&mut printed, &mut last_words).await; std::future::pending().await } => None,
            () = self.cancel.cancelled() => None,
        };
        let Some(ended) = ended else {
            running.end(&[(Signal::TERM, GRACE)]).await;
            return Err(StepFailure::Transient { reason: "it was stopped".into() });
        };
        if ended.is_success() {
            return Ok(self.delivery());
        }
        let _ = tokio::time::timeout(LAST_WORDS, listen(&mut printed, &mut last_words)).await;
        let said = String::from_utf8_lossy(&last_words);
        let how = in_words(&ended);
        Err(red(RedVerdict::CommandFailed, format!("`{command}` ended with {how}\n{}", said.trim_end())))
    }

    fn start(&self, command: &str, printed: OwnedFd) -> Result<Confined, StartError> {
        let policy = Policy {
            mode: ProjectMode::Writable,
            demand: Demand::Off,
            ..Policy::new(self.worktree.to_owned())
        };
        let mut shell = Command::new("/bin/sh", self.worktree.to_owned()).args(["-c", command]);
        for (name, value) in tool_environment(&self.state.worker.variables) {
            shell = shell.env(name, value);
        }
        let shell = shell
            .env("TASK_ID", self.task.id.as_str())
            .env("TASK_WORKTREE", self.worktree.as_str())
            .stdout(printed.try_clone()?)
            .stderr(printed);
        Ok(Sandbox::prepare(&policy)?.spawn(shell)?)
    }
}

/// Why a command did not start.
#[derive(Debug, thiserror::Error)]
enum StartError {
    #[error(transparent)]
    Pipe(#[from] io::Error),
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
}

fn pipe() -> io::Result<(Receiver, OwnedFd)> {
    let (from, to) = pipe_with(PipeFlags::CLOEXEC)?;
    Ok((Receiver::from_owned_fd(from)?, to))
}

/// Reads to the end, and keeps the last of it.
async fn listen(printed: &mut Receiver, kept: &mut Vec<u8>) {
    let mut piece = vec![0; 64 << 10];
    // A pipe that cannot be read has no more to tell.
    while let Ok(read @ 1..) = printed.read(&mut piece).await {
        kept.extend_from_slice(&piece[..read]);
        let older = kept.len().saturating_sub(TOLD);
        kept.drain(..older);
    }
}

fn in_words(ended: &Ended) -> String {
    match ended.status {
        Status::Exited { code } => format!("exit status: {code}"),
        Status::Signaled { signal } => format!("signal: {signal}"),
        Status::Lost => "nobody knows what".to_owned(),
    }
}

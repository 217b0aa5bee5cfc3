//! The command that makes a checkout ready for work: installs dependencies, makes a database.

use camino::Utf8Path;
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::Command;

use super::WorktreeError;
use crate::child::{self, ChildError, Input, tail_of};
use crate::git::GitError;
use crate::policy::SETUP_LIMIT;

/// What is shown of a command that failed.
const SHOWN: usize = 2 << 10;
/// How often to look for processes that others start while they are killed.
const LOOKS: usize = 100;

/// Ends the command that a worker which was killed had begun in a place, and all that it started: nobody else may be there while
/// it is made anew. They are known by what they were told of the place.
pub(super) fn end_what_is_left(worktree: &Utf8Path) {
    let told = format!("TASK_WORKTREE={worktree}");
    for _ in 0..LOOKS {
        let left = processes_told(&told);
        if left.is_empty() {
            return;
        }
        for pid in left {
            // It may have ended by itself.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// Every process with this in its environment. Those of other users are not ours to see.
fn processes_told(variable: &str) -> Vec<Pid> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_told = |pid: &i32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| entry == variable.as_bytes())
    };
    pids.filter(is_told).filter_map(Pid::from_raw).collect()
}

pub(super) async fn run_setup(
    command_line: &str,
    worktree: &Utf8Path,
    environment: &[(String, String)],
) -> Result<(), WorktreeError> {
    let mut command = Command::new("sh");
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"GIT_")) {
        command.env_remove(name);
    }
    command.args(["-c", command_line]).current_dir(worktree);
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    let failed = |said: String| WorktreeError::Setup { command: command_line.to_owned(), said };
    match child::run(command, Input::Nothing, SETUP_LIMIT).await {
        Ok(ended) if ended.status.success() => Ok(()),
        Ok(ended) => {
            let said = if ended.stderr.is_empty() {
                String::from_utf8_lossy(&ended.stdout).into_owned()
            } else {
                ended.stderr
            };
            Err(failed(format!("{}: {}", ended.status, tail_of(said.trim(), SHOWN))))
        }
        Err(ChildError::TimedOut) => Err(failed(format!("it took longer than {} s", SETUP_LIMIT.as_secs()))),
        Err(ChildError::TooMuch) => Err(failed("it said too much".into())),
        Err(ChildError::Io(source)) => {
            Err(GitError::Io { what: format!("run `{command_line}`"), source }.into())
        }
    }
}

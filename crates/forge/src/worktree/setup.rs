//! The command that makes a checkout ready for work: installs dependencies, makes a database.

use camino::Utf8Path;
use tokio::process::Command;

use super::WorktreeError;
use crate::child::{self, ChildError, Input, tail_of};
use crate::git::GitError;
use crate::policy::SETUP_LIMIT;

/// What is shown of a command that failed.
const SHOWN: usize = 2 << 10;

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

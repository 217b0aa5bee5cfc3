//! The command that makes a checkout ready for work: installs dependencies, makes a database.

use super::WorktreeError;
use crate::policy::SETUP_LIMIT;
use camino::Utf8Path;
use rehearsal_git::{GitError, without_git_variables};
use rehearsal_process::{Command, Keep, RunError, kill_processes_marked};

/// What is shown of a command that failed.
const SHOWN: usize = 2 << 10;
/// Ends the command that a killed worker had begun in a worktree, and all that it started: nobody else may be there
/// while the worktree is made again. They are found by the worktree in their environment.
pub(super) fn end_what_is_left(worktree: &Utf8Path) {
    kill_processes_marked(&format!("TASK_WORKTREE={worktree}"));
}

pub(super) async fn run_setup(
    command_line: &str,
    worktree: &Utf8Path,
    environment: &[(String, String)],
) -> Result<(), WorktreeError> {
    let command = without_git_variables(Command::new("sh", worktree))
        .args(["-c", command_line])
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .keep(Keep::Tail(SHOWN))
        .limit(SETUP_LIMIT);
    let failed = |said: String| WorktreeError::Setup { command: command_line.to_owned(), said };
    match command.run().await {
        Ok(ended) if ended.status.success() => Ok(()),
        Ok(ended) => {
            let said = if ended.stderr.trim().is_empty() {
                String::from_utf8_lossy(&ended.stdout).into_owned()
            } else {
                ended.stderr
            };
            Err(failed(format!("{}: {}", ended.status, said.trim())))
        }
        Err(RunError::TimedOut) => Err(failed(format!("it took longer than {} s", SETUP_LIMIT.as_secs()))),
        Err(RunError::TooMuch) => Err(failed("it said too much".into())),
        Err(RunError::Io(source)) => {
            Err(GitError::Io { what: format!("run `{command_line}`"), source }.into())
        }
    }
}

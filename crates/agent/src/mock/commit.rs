//! Commits of the stand-in: its own identity, no hooks, no signing, no settings of this machine's user.

use std::process::Command;

use camino::Utf8Path;

use super::error::MockError;

const NAME: &str = "Mock Agent";
const EMAIL: &str = "mock-agent@example.invalid";

/// Stages `what` (`-A`: everything) and commits it.
pub(super) fn commit(worktree: &Utf8Path, what: &str, message: &str) -> Result<(), MockError> {
    git(worktree, &["add", what])?;
    git(worktree, &["commit", "--quiet", "--message", message])
}

fn git(worktree: &Utf8Path, args: &[&str]) -> Result<(), MockError> {
    let mut command = Command::new("git");
    command
        .current_dir(worktree)
        .args(["-c", "core.hooksPath=/dev/null", "-c", "commit.gpgSign=false"])
        // Its own housekeeping goes on in the background, and would be ended as a process that was left behind.
        .args(["-c", "gc.auto=0", "-c", "maintenance.auto=false"])
        .args(args)
        .envs([("GIT_AUTHOR_NAME", NAME), ("GIT_COMMITTER_NAME", NAME)])
        .envs([("GIT_AUTHOR_EMAIL", EMAIL), ("GIT_COMMITTER_EMAIL", EMAIL)]);
    for inherited in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
        command.env_remove(inherited);
    }
    let what = || format!("git {}", args.join(" "));
    let output =
        command.output().map_err(|source| MockError::Io { what: format!("run `{}`", what()), source })?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    Err(MockError::Status {
        command: what(),
        status: output.status.to_string(),
        expected: 0,
        output: String::from_utf8_lossy(&said).trim().to_owned(),
    })
}

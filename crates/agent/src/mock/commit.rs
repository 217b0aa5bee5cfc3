//! Commits of the stand-in: its own identity, no hooks, no signing, no settings of this machine's user.

use std::io::Write;
use std::process::{Command, Stdio};

use camino::Utf8Path;
use rehearsal_core::Timestamp;

use super::error::MockError;

const NAME: &str = "Mock Agent";
const EMAIL: &str = "mock-agent@example.invalid";

/// Stages `what` (`-A`: everything) and commits it.
pub(super) fn commit(
    worktree: &Utf8Path,
    what: &str,
    message: &str,
    date: Option<Timestamp>,
) -> Result<(), MockError> {
    finish(git(worktree, &["add", what]), "")?;
    let mut command = git(worktree, &["commit", "--quiet", "--message", message]);
    if let Some(date) = date {
        let date = format!("@{} +0000", date.0 / 1000);
        command.env("GIT_AUTHOR_DATE", &date).env("GIT_COMMITTER_DATE", &date);
    }
    finish(command, "")
}

/// Applies a patch to the files, as `git diff --binary` writes it.
pub(super) fn apply(worktree: &Utf8Path, patch: &str) -> Result<(), MockError> {
    finish(git(worktree, &["apply", "--whitespace=nowarn", "-"]), patch)
}

fn git(worktree: &Utf8Path, args: &[&str]) -> Command {
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
    command
}

/// Runs it to its end.
fn finish(mut command: Command, input: &str) -> Result<(), MockError> {
    let args: Vec<String> =
        command.get_args().skip(8).map(|arg| arg.to_string_lossy().into_owned()).collect();
    let what = || format!("git {}", args.join(" "));
    let cannot = |source| MockError::Io { what: format!("run `{}`", what()), source };
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.map_err(cannot)?;
    if let Some(mut stdin) = child.stdin.take() {
        // A git that does not read it says why at its end.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output().map_err(cannot)?;
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

//! Commits of the stand-in: its own identity, no hooks, no signing, no settings of this machine's user.

use camino::Utf8Path;
use rehearsal_core::Timestamp;
use rehearsal_git::{Git, GitError, Identity};

use super::error::MockError;

const MOCK_AGENT: Identity = Identity { name: "Mock Agent", email: "mock-agent@example.invalid" };

/// Stages `what` (`-A`: everything) and commits it.
pub(super) fn commit(
    worktree: &Utf8Path,
    what: &str,
    message: &str,
    date: Option<Timestamp>,
) -> Result<(), MockError> {
    let git = Git::at(worktree).isolated(MOCK_AGENT);
    let git = date.into_iter().fold(git, Git::dated);
    finish(async {
        git.run(&["add", what]).await?;
        git.run(&["commit", "--quiet", "--message", message]).await
    })
}

/// Applies a patch to the files, as `git diff --binary` writes it.
pub(super) fn apply(worktree: &Utf8Path, patch: &str) -> Result<(), MockError> {
    let git = Git::at(worktree).isolated(MOCK_AGENT);
    finish(async { git.feed(&["apply", "--whitespace=nowarn", "-"], patch.as_bytes()).await })
}

fn finish(work: impl Future<Output = Result<Vec<u8>, GitError>>) -> Result<(), MockError> {
    let cannot = |source| MockError::Io { what: "run git".into(), source };
    Ok(rehearsal_process::block_on(work).map_err(cannot)?.map(drop)?)
}

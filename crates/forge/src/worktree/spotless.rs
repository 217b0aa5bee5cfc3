//! Whether a worktree is its commit, and nothing besides.

use crate::git::{Git, GitError};

/// Whether no file differs, is new, or is ignored. Entries that git was told not to look at are not looked at.
pub(super) async fn is_spotless(git: &Git) -> Result<bool, GitError> {
    let args = [
        "status",
        "--porcelain",
        "-z",
        "--untracked-files=all",
        // Of a directory that is ignored as a whole the name is enough.
        "--ignored=matching",
        "--no-renames",
        "--ignore-submodules=none",
    ];
    Ok(git.run(&args).await?.is_empty())
}

/// Whether git was told not to look at some entries (`update-index --assume-unchanged`, `--skip-worktree`), or some are in
/// conflict. Then it can hide what is there.
pub(super) async fn hides_something(git: &Git) -> Result<bool, GitError> {
    let entries = git.run(&["ls-files", "-v", "-z"]).await?;
    Ok(entries.split(|byte| *byte == 0).any(|entry| !entry.is_empty() && !entry.starts_with(b"H ")))
}

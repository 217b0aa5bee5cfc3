//! Whether a worktree is its commit, and nothing besides.

use rehearsal_git::{Git, GitError, split_nul};

/// How a record of a file begins that git ignores.
pub(super) const IGNORED: &str = "!! ";

/// A record for each file that differs, is new, or is ignored. Entries that git was told not to look at are not looked at.
pub(super) async fn differences(git: &Git) -> Result<Vec<String>, GitError> {
    let args = [
        "status",
        "--porcelain=v1",
        "-z",
        "--untracked-files=all",
        // Of a directory that is ignored as a whole the name is enough.
        "--ignored=matching",
        "--no-renames",
        "--ignore-submodules=none",
    ];
    Ok(split_nul(&git.run(&args).await?).collect())
}

/// Whether nothing differs.
pub(super) async fn is_spotless(git: &Git) -> Result<bool, GitError> {
    Ok(differences(git).await?.is_empty())
}

/// Whether git was told not to look at some entries (`update-index --assume-unchanged`, `--skip-worktree`), or some are in
/// conflict. Then it can hide what is there.
pub(super) async fn hides_something(git: &Git) -> Result<bool, GitError> {
    let entries = git.run(&["ls-files", "-v", "-z"]).await?;
    Ok(entries.split(|byte| *byte == 0).any(|entry| !entry.is_empty() && !entry.starts_with(b"H ")))
}

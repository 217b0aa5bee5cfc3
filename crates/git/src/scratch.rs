//! Repositories that only we use, independent of how git is set up on this machine.

use camino::Utf8Path;

use crate::{Git, GitError};

/// Makes a directory a git repository.
pub async fn init_repository(root: &Utf8Path) -> Result<(), GitError> {
    git(root, &["init", "--quiet", "--initial-branch=main"]).await
}

/// Copies what is committed in a repository to a new directory.
pub async fn clone_repository(from: &Utf8Path, to: &Utf8Path) -> Result<(), GitError> {
    git(from, &["clone", "--quiet", "--no-hardlinks", ".", to.as_str()]).await
}

/// Commits everything in it, even if that is nothing.
pub async fn commit_all(root: &Utf8Path, message: &str) -> Result<(), GitError> {
    git(root, &["add", "--all"]).await?;
    git(root, &["commit", "--quiet", "--allow-empty", "--message", message]).await
}

async fn git(root: &Utf8Path, args: &[&str]) -> Result<(), GitError> {
    Git::at(root).scratch().run(args).await.map(drop)
}

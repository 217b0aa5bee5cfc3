//! A user's repository, and the lock around what git cannot do side by side.

use camino::{Utf8Path, Utf8PathBuf};

use crate::lock::FileLock;
use crate::policy::REPOSITORY_LOCK_LIMIT;
use rehearsal_git::{Git, GitError, drop_stale_lock};

/// A repository with a working tree.
#[derive(Debug, Clone)]
pub(crate) struct Repository {
    /// The top of its working tree.
    pub(crate) root: Utf8PathBuf,
    /// What all of its worktrees share.
    pub(crate) common_dir: Utf8PathBuf,
}

impl Repository {
    pub(crate) fn around(dir: &Utf8Path) -> Result<Self, GitError> {
        let rehearsal_git::Repository { root, common_dir, .. } = rehearsal_git::Repository::around(dir)?;
        Ok(Self { root, common_dir })
    }

    pub(crate) fn git(&self) -> Git {
        Git::at(&self.root)
    }

    /// Removes the one lock in the shared part that a killed git of a worktree leaves: even a reset takes it, to delete
    /// what a merge left. Others wait a second for it each time, and a user cannot delete a branch.
    pub(crate) async fn heal(&self) {
        let lock = self.common_dir.join("packed-refs.lock");
        if lock.exists() {
            drop_stale_lock(&lock, &self.common_dir).await;
        }
    }

    /// The lock around adding and removing worktrees: two git processes at that read each other's half-made
    /// entries. Never held during a checkout.
    pub(crate) async fn lock(&self) -> Result<FileLock, GitError> {
        let path = self.common_dir.join("rehearsal.lock");
        let taken = FileLock::take(&path, REPOSITORY_LOCK_LIMIT).await;
        taken
            .map_err(GitError::io(format!("lock `{path}`")))?
            .ok_or(GitError::LockHeld { command: "worktree".into(), lock: path })
    }
}

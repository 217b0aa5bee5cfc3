//! References of our own, under `refs/rehearsal`, in a repository that others use too.

use camino::Utf8PathBuf;

use crate::git::{Git, GitError, Oid};
use crate::repository::drop_stale_lock;

/// A name that nobody else has, for as long as something must be held.
pub(crate) fn private(purpose: &str) -> String {
    format!("refs/rehearsal/{purpose}/{}", uuid::Uuid::now_v7())
}

/// Points a reference of our own at an object.
pub(crate) async fn set(git: &Git, name: &str, object: &Oid) -> Result<(), GitError> {
    past_stale_locks(git, &["update-ref", name, object.as_str()]).await
}

/// Deletes a reference of our own.
pub(crate) async fn delete(git: &Git, name: &str) -> Result<(), GitError> {
    past_stale_locks(git, &["update-ref", "-d", name]).await
}

/// Deleting a reference takes the lock of all packed ones, which a killed git may have left.
async fn past_stale_locks(git: &Git, args: &[&str]) -> Result<(), GitError> {
    match git.run(args).await {
        Err(GitError::LockHeld { lock, command }) => {
            let common = git.line(&["rev-parse", "--path-format=absolute", "--git-common-dir"]).await?;
            if !drop_stale_lock(&lock, &Utf8PathBuf::from(common)).await {
                return Err(GitError::LockHeld { lock, command });
            }
            git.run(args).await.map(drop)
        }
        other => other.map(drop),
    }
}

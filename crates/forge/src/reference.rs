//! References of our own, under `refs/rehearsal`, in a repository that others use too.

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_core::Timestamp;

use crate::policy::LEFT_BEHIND_AFTER;
use crate::worktree::GcMode;
use rehearsal_git::{Git, GitError, Oid, drop_stale_lock};

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

/// What holds a commit for a fetch or for the tests of a merge; nothing else of ours goes away by itself.
const PASSING: [&str; 2] = ["refs/rehearsal/fetch", "refs/rehearsal/staging"];

/// The references of ours that a process which died has left in a repository: removed, or only named.
pub async fn sweep_references(
    repository: &Utf8Path,
    now: Timestamp,
    mode: GcMode,
) -> Result<Vec<String>, GitError> {
    let git = Git::at(repository);
    let said = git.line(&["for-each-ref", "--format=%(refname)", PASSING[0], PASSING[1]]).await?;
    let left: Vec<String> =
        said.lines().filter(|name| is_left_behind(name, now)).map(str::to_owned).collect();
    if mode == GcMode::Delete {
        for name in &left {
            delete(&git, name).await?;
        }
    }
    Ok(left)
}

/// The name tells when it was made.
fn is_left_behind(name: &str, now: Timestamp) -> bool {
    let made = name.rsplit('/').next().and_then(|id| uuid::Uuid::parse_str(id).ok()?.get_timestamp());
    let Some((seconds, _)) = made.map(|made| made.to_unix()) else { return false };
    let made = Timestamp(i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1000));
    made < now && now.since(made) > LEFT_BEHIND_AFTER
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_nobody_can_still_need_is_left_behind() {
        let name = private("fetch");
        let now = Timestamp(i64::try_from(uuid_seconds(&name)).unwrap() * 1000);
        assert!(!is_left_behind(&name, now));
        assert!(!is_left_behind(&name, now.plus(LEFT_BEHIND_AFTER)));
        assert!(is_left_behind(&name, now.plus(LEFT_BEHIND_AFTER * 2)));
        assert!(!is_left_behind("refs/rehearsal/fetch/by-hand", now.plus(LEFT_BEHIND_AFTER * 2)));
    }

    fn uuid_seconds(name: &str) -> u64 {
        let id = uuid::Uuid::parse_str(name.rsplit('/').next().unwrap()).unwrap();
        id.get_timestamp().unwrap().to_unix().0
    }
}

//! A user's repository: where it is, the lock around what git cannot do side by side, and the locks of git's own
//! that a killed process left.

use std::os::unix::fs::MetadataExt;

use camino::{Utf8Path, Utf8PathBuf};
use tokio::time::Instant;

use crate::git::{Git, GitError};
use crate::lock::FileLock;
use crate::policy::{GIT_LOCK_PATIENCE, REPOSITORY_LOCK_LIMIT, STALE_LOCK_AGE};

/// A repository with a working tree.
#[derive(Debug, Clone)]
pub(crate) struct Repository {
    /// The top of its working tree.
    pub(crate) root: Utf8PathBuf,
    /// What all of its worktrees share.
    pub(crate) common_dir: Utf8PathBuf,
}

impl Repository {
    pub(crate) async fn around(dir: &Utf8Path) -> Result<Self, GitError> {
        let args = ["rev-parse", "--path-format=absolute", "--show-toplevel", "--git-common-dir"];
        let said = Git::at(dir).line(&args).await?;
        match said.split_once('\n') {
            Some((root, common_dir)) => Ok(Self { root: root.into(), common_dir: common_dir.into() }),
            None => Err(GitError::Unexpected { command: "rev-parse".into(), said }),
        }
    }

    pub(crate) fn git(&self) -> Git {
        Git::at(&self.root)
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

/// Removes a lock file of git's once it is certain that nobody holds it: it stays the same while no git is at work
/// in the repository or a worktree of it. False if someone does hold it.
pub(crate) async fn drop_stale_lock(lock: &Utf8Path, common_dir: &Utf8Path) -> bool {
    let deadline = Instant::now() + GIT_LOCK_PATIENCE;
    let mut seen = print_of(lock);
    while let Some(before) = seen {
        tokio::time::sleep(STALE_LOCK_AGE).await;
        seen = print_of(lock);
        let places = places_of(common_dir);
        let places: Vec<&Utf8Path> = places.iter().map(|place| &**place).collect();
        if seen == Some(before) && !is_git_at_work(&places) {
            return fs_err::remove_file(lock).is_ok();
        }
        if Instant::now() >= deadline {
            return false;
        }
    }
    true
}

/// Where a git may work that uses a repository: in it, around it, and in each worktree.
fn places_of(common_dir: &Utf8Path) -> Vec<Utf8PathBuf> {
    let entries = common_dir.join("worktrees").read_dir_utf8().into_iter().flatten().flatten();
    let gitdirs = entries.filter_map(|entry| std::fs::read_to_string(entry.path().join("gitdir")).ok());
    let worktrees = gitdirs.filter_map(|gitdir| Some(Utf8Path::new(gitdir.trim_end()).parent()?.to_owned()));
    let around =
        common_dir.parent().filter(|_| common_dir.file_name() == Some(".git")).map(Utf8Path::to_owned);
    worktrees.chain(around).chain([common_dir.to_owned()]).collect()
}

/// Which file it is, and when it was written.
fn print_of(path: &Utf8Path) -> Option<(u64, i64, i64)> {
    let found = std::fs::symlink_metadata(path).ok()?;
    Some((found.ino(), found.mtime(), found.mtime_nsec()))
}

/// Whether a process named git has its working directory in one of the places. Processes of other users are not
/// ours to see.
pub(crate) fn is_git_at_work(places: &[&Utf8Path]) -> bool {
    let Ok(entries) = std::fs::read_dir("/proc") else { return true };
    entries.flatten().any(|entry| {
        let process = entry.path();
        let Ok(stat) = std::fs::read(process.join("stat")) else { return false };
        let stat = String::from_utf8_lossy(&stat);
        let named = stat.split_once(" (").is_some_and(|(_, rest)| rest.starts_with("git"));
        let dead = stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['Z', 'X']));
        named
            && !dead
            && std::fs::read_link(process.join("cwd"))
                .is_ok_and(|cwd| places.iter().any(|place| cwd.starts_with(place)))
    })
}

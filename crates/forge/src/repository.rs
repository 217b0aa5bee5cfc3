//! A user's repository: where it is, the lock around what git cannot do side by side, and the locks of git's own
//! that a killed process left.

use std::os::unix::fs::MetadataExt;

use camino::{Utf8Path, Utf8PathBuf};
use tokio::time::Instant;

use crate::git::{Git, GitError};
use crate::lock::FileLock;
use crate::policy::{GIT_LOCK_PATIENCE, LOCK_PAUSE, REPOSITORY_LOCK_LIMIT, STALE_LOCK_AGE};

/// Longer than anyone's.
const LONGEST_CONFIG: u64 = 64 << 10;

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
        if let Some(repository) = Self::plain(dir) {
            return Ok(repository);
        }
        let args = ["rev-parse", "--path-format=absolute", "--show-toplevel", "--git-common-dir"];
        let said = Git::at(dir).line(&args).await?;
        match said.split_once('\n') {
            Some((root, common_dir)) => Ok(Self { root: root.into(), common_dir: common_dir.into() }),
            None => Err(GitError::Unexpected { command: "rev-parse".into(), said }),
        }
    }

    /// The one whose checkout begins in a directory, where git's things are just below it and nothing says otherwise.
    fn plain(dir: &Utf8Path) -> Option<Self> {
        let git_dir = dir.join(".git");
        let config = git_dir.join("config");
        let is_one = git_dir.symlink_metadata().ok()?.is_dir()
            && git_dir.join("HEAD").is_file()
            && config.metadata().ok()?.len() < LONGEST_CONFIG;
        let config = std::fs::read_to_string(config).ok().filter(|_| is_one)?.to_ascii_lowercase();
        let is_plain = config.contains("bare = false")
            && !["worktree", "include", "bare = true"].iter().any(|word| config.contains(word));
        let root = dir.canonicalize_utf8().ok().filter(|_| is_plain)?;
        Some(Self { common_dir: root.join(".git"), root })
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

/// Removes a lock file of git's once it is certain that nobody holds it: it has stayed the same, and no git lives that
/// was at work in the repository or a worktree of it when the lock was first seen. False if someone does hold it.
pub(crate) async fn drop_stale_lock(lock: &Utf8Path, common_dir: &Utf8Path) -> bool {
    let begun = Instant::now();
    let mut seen = print_of(lock);
    let mut suspects = gits_at_work(&places_of(common_dir));
    let mut since = begun;
    while seen.is_some() {
        tokio::time::sleep(LOCK_PAUSE).await;
        let now = print_of(lock);
        if now != seen {
            (seen, suspects, since) = (now, gits_at_work(&places_of(common_dir)), Instant::now());
        } else if since.elapsed() >= STALE_LOCK_AGE && !suspects.iter().any(GitProcess::is_alive) {
            return fs_err::remove_file(lock).is_ok();
        }
        if begun.elapsed() >= GIT_LOCK_PATIENCE {
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

/// A process that is not mistaken for another: its number may be used again, but not with the same start.
#[derive(Debug, Clone, PartialEq, Eq)]
struct GitProcess {
    pid: u32,
    start: String,
}

impl GitProcess {
    /// The living git of this number. `pid (name) state … starttime …`: the fields are counted behind the name.
    fn of(pid: u32) -> Option<Self> {
        let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
        let stat = String::from_utf8_lossy(&stat);
        let (_, name) = stat.split_once(" (")?;
        let (_, fields) = stat.rsplit_once(") ")?;
        let alive = !fields.starts_with(['Z', 'X']);
        let start = fields.split(' ').nth(19)?.to_owned();
        (name.starts_with("git") && alive).then_some(Self { pid, start })
    }

    fn is_alive(&self) -> bool {
        Self::of(self.pid).as_ref() == Some(self)
    }
}

/// Every git that has its working directory in one of the places. Those of other users are not ours to see.
fn gits_at_work(places: &[Utf8PathBuf]) -> Vec<GitProcess> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let is_here = |pid: u32| {
        std::fs::read_link(format!("/proc/{pid}/cwd"))
            .is_ok_and(|cwd| places.iter().any(|place| cwd.starts_with(place)))
    };
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter_map(|pid| GitProcess::of(pid).filter(|git| is_here(git.pid))).collect()
}

/// Whether a git is at work in one of the places.
pub(crate) fn is_git_at_work(places: &[Utf8PathBuf]) -> bool {
    !gits_at_work(places).is_empty()
}

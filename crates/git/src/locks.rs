//! Lock files that a killed git leaves behind, which keep every later git from writing.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime};

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_process::{ProcessId, processes_at_work};
use tokio::time::Instant;

use crate::Repository;

/// How long a lock file must stay as it is to be taken for left behind. Git itself gives up after a second, and
/// programs that are not named git write these files in milliseconds.
const STALE_AGE: Duration = Duration::from_millis(1000);
/// How long a lock file is waited for while a git is at work in the repository.
const PATIENCE: Duration = Duration::from_secs(30);
/// The same after a run whose processes are all gone: a command that writes is over in well under a second.
const PATIENCE_AFTER_RUN: Duration = Duration::from_secs(2);
/// How often we look again.
const PAUSE: Duration = Duration::from_millis(3);
/// How many directories of branches are searched for locks. A repository with more has them packed.
const MAX_DIRS: usize = 1_000;

/// Removes a lock file once it is certain that nobody holds it: it has stayed the same, and no git lives that was at
/// work in the repository or a worktree of it when the lock was first seen. False if someone does hold it.
pub async fn drop_stale_lock(lock: &Utf8Path, common_dir: &Utf8Path) -> bool {
    let begun = Instant::now();
    let at_work = || gits_at_work(&places_of(common_dir));
    let (mut seen, mut suspects, mut since) = (print_of(lock), at_work(), begun);
    while seen.is_some() {
        tokio::time::sleep(PAUSE).await;
        let now = print_of(lock);
        if now != seen {
            (seen, suspects, since) = (now, at_work(), Instant::now());
        } else if since.elapsed() >= STALE_AGE && !suspects.iter().any(|git| git.is_alive()) {
            return fs_err::remove_file(lock).is_ok();
        }
        if begun.elapsed() >= PATIENCE {
            return false;
        }
    }
    true
}

/// The gits whose working directory is in one of the places.
pub fn gits_at_work(places: &[Utf8PathBuf]) -> Vec<ProcessId> {
    processes_at_work("git", places)
}

/// What became of the locks that a run left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Released {
    /// There were none.
    Nothing,
    /// These were removed; paths from the top of the working tree.
    Removed(Vec<Utf8PathBuf>),
    /// There are some, and another git is at work in the repository. This is where to look for them.
    InUse(Utf8PathBuf),
}

/// Removes the lock files that a run's git left when it was killed. For when every process of the run is gone. A lock
/// is the run's if it is not older than the run, whose beginning the file `mark` shows, and if no git is at work in
/// this repository.
pub async fn release_locks(dir: &Utf8Path, mark: &Utf8Path) -> Released {
    let since = fs_err::metadata(mark).and_then(|mark| mark.modified());
    let (Ok(Some(repository)), Ok(since)) = (Repository::find(dir), since) else { return Released::Nothing };
    if locks_since(&repository, since).is_empty() {
        return Released::Nothing;
    }
    let places = places_of(&repository.common_dir);
    let begun = Instant::now();
    while !gits_at_work(&places).is_empty() {
        if begun.elapsed() >= PATIENCE_AFTER_RUN {
            return Released::InUse(repository.git_dir);
        }
        tokio::time::sleep(PAUSE).await;
    }
    let locks = locks_since(&repository, since);
    let removed: Vec<Utf8PathBuf> = locks
        .iter()
        .filter(|lock| fs_err::remove_file(lock).is_ok())
        .map(|lock| lock.strip_prefix(&repository.root).unwrap_or(lock).to_owned())
        .collect();
    if removed.is_empty() { Released::Nothing } else { Released::Removed(removed) }
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

fn locks_since(repository: &Repository, since: SystemTime) -> BTreeSet<Utf8PathBuf> {
    let mut locks = BTreeSet::new();
    let mut open = vec![repository.common_dir.join("refs/heads")];
    let mut seen = 0;
    while let Some(dir) = open.pop().filter(|_| seen < MAX_DIRS) {
        seen += 1;
        open.extend(locks_in(&dir, since, &mut locks));
    }
    for dir in [&repository.git_dir, &repository.common_dir] {
        locks_in(dir, since, &mut locks);
    }
    locks
}

/// Adds the locks in a directory; the directories in it.
fn locks_in(dir: &Utf8Path, since: SystemTime, locks: &mut BTreeSet<Utf8PathBuf>) -> Vec<Utf8PathBuf> {
    let mut directories = Vec::new();
    for entry in dir.read_dir_utf8().into_iter().flatten().flatten() {
        match entry.metadata() {
            Ok(found) if found.is_dir() => directories.push(entry.into_path()),
            Ok(found)
                if found.is_file()
                    && entry.path().extension() == Some("lock")
                    && found.modified().is_ok_and(|at| at >= since) =>
            {
                locks.insert(entry.into_path());
            }
            _ => {}
        }
    }
    directories
}
#[cfg(test)]
mod tests {
    use super::*;

    /// A repository, and the file that shows when a run began.
    struct Scene {
        _dir: tempfile::TempDir,
        root: Utf8PathBuf,
    }

    const OLD: Duration = Duration::from_secs(3600);

    impl Scene {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let root = Utf8PathBuf::from_path_buf(dir.path().canonicalize().unwrap()).unwrap();
            fs_err::create_dir_all(root.join(".git/refs/heads/topic")).unwrap();
            fs_err::write(root.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
            let scene = Self { _dir: dir, root };
            scene.write("mark");
            scene
        }

        fn write(&self, path: &str) {
            fs_err::write(self.root.join(path), "").unwrap();
        }

        async fn release(&self) -> Released {
            release_locks(&self.root, &self.root.join("mark")).await
        }
    }

    #[tokio::test]
    async fn what_a_killed_git_left_is_removed_and_told() {
        let scene = Scene::new();
        assert_eq!(scene.release().await, Released::Nothing);
        scene.write(".git/index.lock");
        scene.write(".git/refs/heads/topic/a.lock");
        let removed = [".git/index.lock", ".git/refs/heads/topic/a.lock"].map(Utf8PathBuf::from).to_vec();
        assert_eq!(scene.release().await, Released::Removed(removed));
        assert!(!scene.root.join(".git/index.lock").exists());
        assert!(scene.root.join(".git/HEAD").exists());
        assert_eq!(scene.release().await, Released::Nothing);
    }

    #[tokio::test]
    async fn a_lock_that_is_older_than_the_run_is_not_touched() {
        let scene = Scene::new();
        scene.write(".git/index.lock");
        let lock = fs_err::OpenOptions::new().append(true).open(scene.root.join(".git/index.lock")).unwrap();
        let made = lock.metadata().unwrap().modified().unwrap();
        lock.file().set_modified(made - OLD).unwrap();
        assert_eq!(scene.release().await, Released::Nothing);
        assert!(scene.root.join(".git/index.lock").exists());
    }

    #[tokio::test]
    async fn a_run_that_never_began_left_nothing() {
        let scene = Scene::new();
        scene.write(".git/index.lock");
        assert_eq!(release_locks(&scene.root, &scene.root.join("none")).await, Released::Nothing);
        assert!(scene.root.join(".git/index.lock").exists());
    }
}

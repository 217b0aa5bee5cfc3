//! What git leaves behind when it is killed: lock files, which keep every later git from writing.

use std::collections::BTreeSet;
use std::time::{Instant, SystemTime};

use camino::{Utf8Path, Utf8PathBuf};

use super::head::Repository;
use crate::policy::{GIT_LOCK_PATIENCE, GIT_LOCK_PAUSE, MAX_LOCK_DIRS};
use crate::process::working_dirs_of;

/// Removes the lock files that a run's git left when it was killed, and says which. For when every process of
/// the run is gone. A lock is the run's if it is not older than the run, whose beginning the file `mark` shows;
/// and it is nobody else's if no git is at work in this repository.
pub async fn release_locks(dir: &Utf8Path, mark: &Utf8Path) -> Option<String> {
    let repository = Repository::around(dir).ok()??;
    let since = fs_err::metadata(mark).ok()?.modified().ok()?;
    if locks_since(&repository, since).is_empty() {
        return None;
    }
    if let Some(told) = wait_for_living_git(&repository).await {
        return Some(told);
    }
    let shown = |path: &Utf8PathBuf| format!("`{}`", path.strip_prefix(&repository.root).unwrap_or(path));
    let removed: Vec<String> = locks_since(&repository, since)
        .iter()
        .filter(|lock| fs_err::remove_file(lock).is_ok())
        .map(shown)
        .collect();
    (!removed.is_empty()).then(|| format!("removed locks of a git that was killed: {}", removed.join(", ")))
}

/// Someone else may be at work here; a git command is over soon.
async fn wait_for_living_git(repository: &Repository) -> Option<String> {
    let deadline = Instant::now() + GIT_LOCK_PATIENCE;
    while is_git_at_work(repository) {
        if Instant::now() >= deadline {
            return Some(format!(
                "the repository is locked, and a git is at work in it: if its commits fail, look for lock files in `{}`",
                repository.git_dir
            ));
        }
        tokio::time::sleep(GIT_LOCK_PAUSE).await;
    }
    None
}

fn is_git_at_work(repository: &Repository) -> bool {
    let whole = |found: &Repository| found.common_dir.canonicalize_utf8().ok();
    let here = whole(repository);
    working_dirs_of("git")
        .iter()
        .filter_map(|dir| Repository::around(dir).ok().flatten())
        .any(|found| whole(&found) == here)
}

fn locks_since(repository: &Repository, since: SystemTime) -> BTreeSet<Utf8PathBuf> {
    let mut locks = BTreeSet::new();
    let mut open = vec![repository.common_dir.join("refs/heads")];
    let mut seen = 0;
    while let Some(dir) = open.pop().filter(|_| seen < MAX_LOCK_DIRS) {
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
    use std::time::Duration;

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

        async fn release(&self) -> Option<String> {
            release_locks(&self.root, &self.root.join("mark")).await
        }
    }

    #[tokio::test]
    async fn what_a_killed_git_left_is_removed_and_told() {
        let scene = Scene::new();
        assert_eq!(scene.release().await, None);
        scene.write(".git/index.lock");
        scene.write(".git/refs/heads/topic/a.lock");
        assert_eq!(
            scene.release().await.unwrap(),
            "removed locks of a git that was killed: `.git/index.lock`, `.git/refs/heads/topic/a.lock`"
        );
        assert!(!scene.root.join(".git/index.lock").exists());
        assert!(scene.root.join(".git/HEAD").exists());
        assert_eq!(scene.release().await, None);
    }

    #[tokio::test]
    async fn a_lock_that_is_older_than_the_run_is_not_touched() {
        let scene = Scene::new();
        scene.write(".git/index.lock");
        let lock = fs_err::OpenOptions::new().append(true).open(scene.root.join(".git/index.lock")).unwrap();
        let made = lock.metadata().unwrap().modified().unwrap();
        lock.file().set_modified(made - OLD).unwrap();
        assert_eq!(scene.release().await, None);
        assert!(scene.root.join(".git/index.lock").exists());
    }

    #[tokio::test]
    async fn a_run_that_never_began_left_nothing() {
        let scene = Scene::new();
        scene.write(".git/index.lock");
        assert_eq!(release_locks(&scene.root, &scene.root.join("none")).await, None);
        assert!(scene.root.join(".git/index.lock").exists());
    }
}

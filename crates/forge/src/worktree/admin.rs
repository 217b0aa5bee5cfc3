//! The entry that git keeps of a worktree in `.git/worktrees`, read and mended by hand: git's own commands fail on
//! exactly the entries that need mending.

use std::io;
use std::os::unix::fs::PermissionsExt;

use camino::{Utf8Path, Utf8PathBuf};

use super::slot::is_slot_name;
use rehearsal_git::{Oid, gits_at_work};

use crate::repository::Repository;

/// What every entry has, and all that one of a clean worktree has. The rest belongs to the work that was done in
/// it: a rebase that was begun, its own references, its log, its configuration.
const ESSENTIAL: &[&str] = &["HEAD", "commondir", "gitdir", "index", "locked"];

/// A worktree's entry that is whole: it and the worktree point at each other.
#[derive(Debug, Clone)]
pub(crate) struct Admin {
    pub(crate) dir: Utf8PathBuf,
}

impl Admin {
    /// The entry of a worktree, if it is whole.
    pub(crate) fn of(worktree: &Utf8Path) -> Option<Self> {
        let link = std::fs::read_to_string(worktree.join(".git")).ok()?;
        let dir = Utf8PathBuf::from(link.strip_prefix("gitdir: ")?.trim_end());
        let admin = Self { dir };
        let whole = admin.points_at(worktree) && admin.read("commondir").is_some() && admin.has_head();
        whole.then_some(admin)
    }

    /// The entries that stand for a worktree, whole or not, and the half-made ones that stand for none.
    pub(crate) fn remains_of(worktree: &Utf8Path, repository: &Repository) -> Vec<Self> {
        let all = repository.common_dir.join("worktrees").read_dir_utf8().into_iter().flatten().flatten();
        all.filter(|entry| is_slot_name(entry.file_name()))
            .map(|entry| Self { dir: entry.into_path() })
            .filter(|entry| entry.points_at(worktree) || entry.points_nowhere())
            .collect()
    }

    /// The commit that was checked out, if it was none of a branch.
    pub(crate) fn detached_head(&self) -> Option<Oid> {
        Oid::new(self.read("HEAD")?.trim_end()).ok()
    }

    /// The branch that is checked out.
    pub(crate) fn branch(&self) -> Option<String> {
        Some(self.read("HEAD")?.strip_prefix("ref: refs/heads/")?.trim_end().to_owned())
    }

    fn has_head(&self) -> bool {
        self.detached_head().is_some() || self.branch().is_some()
    }

    fn points_at(&self, worktree: &Utf8Path) -> bool {
        self.read("gitdir").is_some_and(|gitdir| gitdir.trim_end() == worktree.join(".git"))
    }

    fn points_nowhere(&self) -> bool {
        self.read("gitdir").is_none_or(|gitdir| gitdir.trim_end().is_empty())
    }

    fn read(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.dir.join(name)).ok()
    }

    /// What `git worktree lock` writes; in one step, so that there is no moment without a lock.
    pub(crate) fn lock(&self, reason: &str) -> io::Result<()> {
        let new = self.dir.join("locked.new");
        fs_err::write(&new, reason)?;
        fs_err::rename(new, self.dir.join("locked"))
    }

    /// Removes the lock files that a killed git left, unless one is at work in the worktree.
    pub(crate) fn drop_stale_locks(&self, worktree: &Utf8Path) {
        if !gits_at_work(&[worktree.to_owned(), self.dir.clone()]).is_empty() {
            return;
        }
        for entry in self.dir.read_dir_utf8().into_iter().flatten().flatten() {
            if entry.path().extension() == Some("lock") {
                // What stays will be told by the git that stumbles over it.
                let _ = fs_err::remove_file(entry.path());
            }
        }
    }

    /// Whether a commit was ever checked out here.
    pub(crate) fn has_logged(&self, commit: &str) -> bool {
        let log = std::fs::read_to_string(self.dir.join("logs/HEAD")).unwrap_or_default();
        // Of every line, the second word is the commit that HEAD moved to.
        log.lines().any(|line| line.split(' ').nth(1) == Some(commit))
    }

    /// Forgets all that was done in the worktree but its commit and its index.
    pub(crate) fn forget_work(&self) -> io::Result<()> {
        for entry in self.dir.read_dir_utf8()?.flatten() {
            if ESSENTIAL.contains(&entry.file_name()) {
                continue;
            }
            if entry.file_type()?.is_dir() {
                remove_tree(entry.path())?;
            } else {
                fs_err::remove_file(entry.path())?;
            }
        }
        Ok(())
    }
}

/// Removes a directory and all in it, also what a tool made read-only (Go does it to its modules). Not there is
/// fine. Links are removed, never followed.
pub(crate) fn remove_tree(path: &Utf8Path) -> io::Result<()> {
    match fs_err::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            make_writable(path);
            fs_err::remove_dir_all(path)
        }
        other => other,
    }
}

fn make_writable(dir: &Utf8Path) {
    let mut open = vec![dir.to_owned()];
    while let Some(dir) = open.pop() {
        // Whatever cannot be changed is told by the removal that follows.
        let _ = fs_err::set_permissions(&dir, std::fs::Permissions::from_mode(0o700));
        let entries = dir.read_dir_utf8().into_iter().flatten().flatten();
        open.extend(entries.filter(|e| e.file_type().is_ok_and(|t| t.is_dir())).map(|e| e.path().to_owned()));
    }
}

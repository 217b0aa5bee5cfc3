//! `.worktreeinclude`: files that git ignores and a checkout needs all the same, such as `.env`.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};

use super::WorktreeError;
use crate::policy::{MAX_INCLUDED_BYTES, MAX_INCLUDED_FILES};
use rehearsal_git::{Git, GitError, split_nul};

/// The file with the patterns, in the form of `.gitignore`.
const PATTERNS: &str = ".worktreeinclude";

/// Copies what the patterns name from the main checkout into a worktree. Only what git ignores *there*, so that no
/// secret is ever committed by mistake; never over a file, and never through a link that leads out.
pub(super) async fn copy_included(
    root: &Utf8Path,
    worktree: &Utf8Path,
) -> Result<Vec<String>, WorktreeError> {
    if !root.join(PATTERNS).is_file() {
        return Ok(Vec::new());
    }
    let from = format!("--exclude-from={PATTERNS}");
    let named = Git::at(root).run(&["ls-files", "-z", "--others", "--ignored", &from]).await?;
    // git refuses to speak of a path beyond a link.
    let inside = |name: &String| is_inside(worktree, &worktree.join(name));
    let named: Vec<String> = split_nul(&named).filter(inside).collect();
    let wanted = ignored(worktree, &named).await?;
    let (mut copied, mut left) = (Vec::new(), MAX_INCLUDED_BYTES);
    for name in wanted {
        let file = root.join(&name);
        let target = worktree.join(&name);
        let size = file.symlink_metadata().map_or(0, |found| found.len());
        if copied.len() == MAX_INCLUDED_FILES || size > left {
            return Err(WorktreeError::IncludesTooMuch { file: name });
        }
        let cannot = GitError::io(format!("copy `{file}` to `{target}`"));
        if copy(root, &file, &target).map_err(cannot)? {
            left -= size;
            copied.push(name);
        }
    }
    Ok(copied)
}

/// Those of the names that git ignores in a worktree.
async fn ignored(worktree: &Utf8Path, names: &[String]) -> Result<Vec<String>, GitError> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    // It exits with 1 when none is ignored.
    match Git::at(worktree).feed(&["check-ignore", "-z", "--stdin"], names.join("\0").as_bytes()).await {
        Ok(said) => Ok(split_nul(&said).collect()),
        Err(GitError::Failed { stderr, .. }) if stderr == "exit status: 1" => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// False if it was left out: a link out, a device, something in the way.
fn copy(root: &Utf8Path, file: &Utf8Path, target: &Utf8Path) -> io::Result<bool> {
    let kind = file.symlink_metadata()?.file_type();
    let usable = if kind.is_symlink() { stays_inside(root, file) } else { kind.is_file() };
    if !usable || target.symlink_metadata().is_ok() || !make_parent(target)? {
        return Ok(false);
    }
    if kind.is_symlink() {
        std::os::unix::fs::symlink(file.read_link_utf8()?, target)?;
    } else {
        fs_err::copy(file, target)?;
    }
    Ok(true)
}

/// Whether a link is relative and leads to something in the same tree.
fn stays_inside(root: &Utf8Path, link: &Utf8Path) -> bool {
    let relative = link.read_link_utf8().is_ok_and(|to| to.is_relative());
    let inside = |found: Utf8PathBuf| root.canonicalize_utf8().is_ok_and(|root| found.starts_with(root));
    relative && link.canonicalize_utf8().is_ok_and(inside)
}

/// Whether a file would really be in the worktree: a directory on the way may be a link.
fn is_inside(worktree: &Utf8Path, target: &Utf8Path) -> bool {
    let there = target.ancestors().skip(1).find(|dir| dir.symlink_metadata().is_ok());
    let there = there.and_then(|dir| dir.canonicalize_utf8().ok());
    there.is_some_and(|dir| worktree.canonicalize_utf8().is_ok_and(|worktree| dir.starts_with(worktree)))
}

/// False if a file is where a directory should be.
fn make_parent(target: &Utf8Path) -> io::Result<bool> {
    let Some(parent) = target.parent() else { return Ok(false) };
    match fs_err::create_dir_all(parent) {
        Ok(()) => Ok(true),
        Err(error) if matches!(error.kind(), io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory) => {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

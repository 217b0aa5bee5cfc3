//! What a name stands for, read from its file: most questions need no process.
//!
//! Only what is certain is answered: `HEAD`, and a branch that is a file of its own, which counts before any that is packed. Whoever gets no
//! answer asks git.

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};

use crate::Oid;

/// The commit of `HEAD`, or of a branch by its full name.
pub(super) fn commit(dir: &Utf8Path, name: &str) -> Option<Oid> {
    let git_dir = git_dir(dir)?;
    if name != "HEAD" {
        return branch(&git_dir, name);
    }
    let head = read(&git_dir.join(name))?;
    match head.strip_prefix("ref: ") {
        Some(name) => branch(&git_dir, name),
        None => Oid::new(&head).ok(),
    }
}

/// Where git has the things of a checkout, or of a bare repository, that begins in this very directory.
pub(super) fn git_dir(dir: &Utf8Path) -> Option<Utf8PathBuf> {
    let inside = dir.join(".git");
    if inside.is_dir() {
        return Some(inside);
    }
    if let Some(link) = read(&inside) {
        return Some(dir.join(link.strip_prefix("gitdir: ")?));
    }
    let is_bare = dir.join("HEAD").is_file() && dir.join("objects").is_dir() && dir.join("refs").is_dir();
    is_bare.then(|| dir.to_owned())
}

/// The tip of a branch whose name leads nowhere else.
fn branch(git_dir: &Utf8Path, name: &str) -> Option<Oid> {
    let is_plain = name.starts_with("refs/heads/")
        && Utf8Path::new(name).components().all(|part| matches!(part, Utf8Component::Normal(_)));
    if !is_plain {
        return None;
    }
    // The branches of a linked worktree are those of its repository.
    let common = match read(&git_dir.join("commondir")) {
        Some(common) => git_dir.join(common),
        None => git_dir.to_owned(),
    };
    Oid::new(&read(&common.join(name))?).ok()
}

/// Longer than any of these files.
const LONGEST: u64 = 16 << 10;

/// What an agent put there instead may never end.
fn read(file: &Utf8Path) -> Option<String> {
    let found = file.metadata().ok()?;
    if !found.is_file() || found.len() > LONGEST {
        return None;
    }
    let mut text = std::fs::read_to_string(file).ok()?;
    text.truncate(text.trim_end().len());
    Some(text)
}

//! What a name stands for, read from git's own files: most questions need no process.
//!
//! Only what is certain is answered: `HEAD`, and what has its name below `refs`, be it a file of its own, which counts first, or
//! packed. Whoever gets no answer asks git.

use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use rustix::fs::OFlags;

use crate::Oid;

/// What the files tell of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Told {
    /// It stands for this.
    Is(Oid),
    /// There is no such name.
    Absent,
    /// git has to be asked.
    Nothing,
}

impl Told {
    pub(crate) fn oid(self) -> Option<Oid> {
        match self {
            Self::Is(oid) => Some(oid),
            Self::Absent | Self::Nothing => None,
        }
    }
}

/// What `HEAD`, or a name below `refs`, stands for.
pub(super) fn reference(dir: &Utf8Path, name: &str) -> Told {
    let Some(git_dir) = git_dir(dir) else { return Told::Nothing };
    if name != "HEAD" {
        return shared(&git_dir, name);
    }
    let Some(head) = read(&git_dir.join(name)) else { return Told::Nothing };
    match head.strip_prefix("ref: ") {
        Some(name) => shared(&git_dir, name),
        None => Oid::new(&head).map_or(Told::Nothing, Told::Is),
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

/// What all worktrees of a repository share: its objects, its branches.
pub(super) fn common_dir(git_dir: &Utf8Path) -> Utf8PathBuf {
    match read(&git_dir.join("commondir")) {
        Some(common) => git_dir.join(common),
        None => git_dir.to_owned(),
    }
}

/// What a name that all worktrees share stands for, if it leads nowhere else.
fn shared(git_dir: &Utf8Path, name: &str) -> Told {
    let is_shared = ["refs/heads/", "refs/remotes/", "refs/rehearsal/", "refs/stash"]
        .iter()
        .any(|start| name.starts_with(start));
    let is_plain = Utf8Path::new(name).components().all(|part| matches!(part, Utf8Component::Normal(_)));
    if !is_shared || !is_plain {
        return Told::Nothing;
    }
    let common = common_dir(git_dir);
    match common.join(name).symlink_metadata() {
        Ok(_) => read(&common.join(name))
            .and_then(|text| Oid::new(&text).ok())
            .map_or_else(|| packed_below(&common, name), Told::Is),
        Err(error) if error.kind() == io::ErrorKind::NotFound => packed(&common, name),
        Err(_) => Told::Nothing,
    }
}

/// A directory that is left of other names is no reference.
fn packed_below(common: &Utf8Path, name: &str) -> Told {
    if common.join(name).is_dir() { packed(common, name) } else { Told::Nothing }
}

/// What a name without a file stands for. git too looks here last, and packs a name before it removes its file.
fn packed(common: &Utf8Path, name: &str) -> Told {
    // Where the repository keeps its references in another form the files tell nothing.
    let Some(config) = read(&common.join("config")) else { return Told::Nothing };
    if config.to_ascii_lowercase().contains("refstorage") {
        return Told::Nothing;
    }
    let file = common.join("packed-refs");
    if file.symlink_metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
        return Told::Absent;
    }
    let Some(text) = read_up_to(&file, LONGEST_PACKED) else { return Told::Nothing };
    let line = text.lines().find_map(|line| line.split_once(' ').filter(|(_, found)| *found == name));
    match line {
        Some((oid, _)) => Oid::new(oid).map_or(Told::Nothing, Told::Is),
        None => Told::Absent,
    }
}

/// Longer than any of these files.
const LONGEST: u64 = 16 << 10;
/// Ten thousand names or so: with more, git with its search is no slower.
const LONGEST_PACKED: u64 = 1 << 20;

pub(super) fn read(file: &Utf8Path) -> Option<String> {
    read_up_to(file, LONGEST)
}

fn read_up_to(file: &Utf8Path, longest: u64) -> Option<String> {
    let mut text = String::from_utf8(bytes_of(file, longest)?).ok()?;
    text.truncate(text.trim_end().len());
    Some(text)
}

/// What is in a file that is no longer than this. What an agent put there instead may never end, or never begin: a pipe is
/// not waited for.
pub(super) fn bytes_of(file: &Utf8Path, longest: u64) -> Option<Vec<u8>> {
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).ok()?;
    let file = std::fs::OpenOptions::new().read(true).custom_flags(flags).open(file).ok()?;
    let found = file.metadata().ok()?;
    if !found.is_file() || found.len() > longest {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(longest + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= longest).then_some(bytes)
}

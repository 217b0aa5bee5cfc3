//! Commits and trees, read from git's own files. Only what was not packed yet, which is where the work of a
//! moment ago is; whoever finds nothing here asks git.

use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_core::git_object::{CommitObject, content, hex};
use rustix::fs::OFlags;

use crate::policy::MAX_GIT_OBJECT;

/// The objects of a repository that have a file each.
pub(super) struct LooseObjects {
    dir: Utf8PathBuf,
}

/// One name in a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TreeEntry {
    pub(super) name: Vec<u8>,
    pub(super) kind: EntryKind,
    /// The mode as git writes it: a file that became executable has changed.
    pub(super) mode: Vec<u8>,
    pub(super) id: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryKind {
    Tree,
    File,
    Submodule,
}

impl LooseObjects {
    pub(super) fn new(dir: Utf8PathBuf) -> Self {
        Self { dir }
    }

    pub(super) fn commit(&self, id: &str) -> Option<CommitObject> {
        CommitObject::read(&self.content(id, "commit")?)
    }

    /// The entries of a tree, and how large it is.
    pub(super) fn tree(&self, id: &str) -> Option<(Vec<TreeEntry>, usize)> {
        let content = self.content(id, "tree")?;
        Some((parse_tree(&content, id.len() / 2)?, content.len()))
    }

    fn content(&self, id: &str, kind: &str) -> Option<Vec<u8>> {
        let (fan, rest) = id.split_at_checked(2)?;
        content(&read(&self.dir.join(fan).join(rest))?, id, kind, MAX_GIT_OBJECT)
    }
}

/// What an agent put there instead may never end, or never begin: a pipe is not waited for.
fn read(path: &Utf8Path) -> Option<Vec<u8>> {
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).ok()?;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(MAX_GIT_OBJECT as u64).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Entries of `MODE NAME\0ID`, the id in bytes.
fn parse_tree(mut content: &[u8], id_length: usize) -> Option<Vec<TreeEntry>> {
    let mut entries = Vec::new();
    while !content.is_empty() {
        let blank = memchr::memchr(b' ', content)?;
        let end = memchr::memchr(0, content).filter(|end| *end > blank)?;
        let (mode, name) = (&content[..blank], &content[blank + 1..end]);
        let (id, rest) = content[end + 1..].split_at_checked(id_length)?;
        let kind = match mode {
            b"40000" => EntryKind::Tree,
            b"160000" => EntryKind::Submodule,
            _ => EntryKind::File,
        };
        entries.push(TreeEntry { name: name.to_owned(), kind, mode: mode.to_owned(), id: hex(id) });
        content = rest;
    }
    Some(entries)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_pipe_in_the_place_of_an_object_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let dir = Utf8PathBuf::from_path_buf(dir.path().to_owned()).unwrap();
        let id = "a".repeat(40);
        fs_err::create_dir(dir.join("aa")).unwrap();
        let pipe = dir.join("aa").join(&id[2..]);
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert_eq!(LooseObjects::new(dir).commit(&id), None);
    }

    proptest! {
        #[test]
        fn junk_is_no_object_and_no_harm(junk in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse_tree(&junk, 20);
            let dir = tempfile::tempdir().unwrap();
            let dir = Utf8PathBuf::from_path_buf(dir.path().to_owned()).unwrap();
            fs_err::create_dir(dir.join("ab")).unwrap();
            fs_err::write(dir.join("ab/cd"), &junk).unwrap();
            let objects = LooseObjects::new(dir);
            prop_assert!(objects.commit("abcd").is_none());
            prop_assert!(objects.tree("abcd").is_none());
        }
    }
}

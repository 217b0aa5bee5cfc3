//! Commits and blobs, read from git's own files. Only those that were not packed yet, which is where the work of a moment
//! ago is; whoever gets no answer asks git.

use std::collections::BTreeSet;

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_core::git_object;

use super::loose::{bytes_of, common_dir, git_dir};
use crate::Oid;

/// What counts of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommitObject {
    pub(crate) tree: Oid,
    pub(crate) parents: Vec<Oid>,
    /// When it was made, in seconds.
    pub(crate) seconds: i64,
}

impl CommitObject {
    fn of(read: &git_object::CommitObject) -> Option<Self> {
        let parents: Result<_, _> = read.parents.iter().map(|id| Oid::new(id)).collect();
        Some(Self { tree: Oid::new(&read.tree).ok()?, parents: parents.ok()?, seconds: read.seconds? })
    }
}

/// The objects of a repository that have a file each.
#[derive(Debug)]
pub(super) struct LooseObjects {
    common: Utf8PathBuf,
}

/// A message of this size was not written by hand.
const LARGEST: usize = 64 << 10;
/// So many commits are looked at: reading more takes as long as asking git.
const FARTHEST: usize = 64;

impl LooseObjects {
    /// Those of the repository that begins in a directory.
    pub(super) fn at(dir: &Utf8Path) -> Option<Self> {
        Some(Self { common: common_dir(&git_dir(dir)?) })
    }

    pub(super) fn commit(&self, oid: &Oid) -> Option<CommitObject> {
        CommitObject::of(&git_object::CommitObject::read(&self.content(oid, "commit")?)?)
    }

    pub(super) fn blob(&self, oid: &Oid) -> Option<Vec<u8>> {
        self.content(oid, "blob")
    }

    fn content(&self, oid: &Oid, kind: &str) -> Option<Vec<u8>> {
        let (fan, rest) = oid.as_str().split_at_checked(2)?;
        let path = self.common.join("objects").join(fan).join(rest);
        git_object::content(&bytes_of(&path, LARGEST as u64)?, oid.as_str(), kind, LARGEST)
    }

    /// Whether a commit is in the history of another; none if these files do not tell.
    pub(super) fn is_ancestor(&self, ancestor: &Oid, of: &Oid) -> Option<bool> {
        // There git takes other parents than those that commits name.
        if self.common.join("shallow").exists() || self.common.join("info/grafts").exists() {
            return None;
        }
        let (mut open, mut seen, mut is_whole) = (vec![of.clone()], BTreeSet::new(), true);
        while let Some(commit) = open.pop() {
            if commit == *ancestor {
                return Some(true);
            }
            if !seen.insert(commit.clone()) {
                continue;
            }
            if seen.len() > FARTHEST {
                return None;
            }
            match self.commit(&commit) {
                Some(commit) => open.extend(commit.parents),
                None => is_whole = false,
            }
        }
        is_whole.then_some(false)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn oid(digit: char) -> Oid {
        Oid::new(&digit.to_string().repeat(40)).unwrap()
    }

    proptest! {
        #[test]
        fn junk_is_no_commit_and_no_harm(junk in proptest::collection::vec(any::<u8>(), 0..200)) {
            let dir = tempfile::tempdir().unwrap();
            let common = Utf8PathBuf::from_path_buf(dir.path().to_owned()).unwrap();
            let (fan, rest) = ("aa", "a".repeat(38));
            fs_err::create_dir_all(common.join("objects").join(fan)).unwrap();
            fs_err::write(common.join("objects").join(fan).join(rest), &junk).unwrap();
            let objects = LooseObjects { common };
            prop_assert_eq!(objects.commit(&oid('a')), None);
            prop_assert_eq!(objects.blob(&oid('a')), None);
            prop_assert_eq!(objects.is_ancestor(&oid('b'), &oid('a')), None);
        }
    }
}

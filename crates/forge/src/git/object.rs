//! Commits and blobs, read from git's own files. Only those that were not packed yet, which is where the work of a moment
//! ago is; whoever gets no answer asks git.

use std::collections::BTreeSet;

use camino::{Utf8Path, Utf8PathBuf};
use sha1::{Digest, Sha1};

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
        parse(&self.content(oid, "commit")?)
    }

    pub(super) fn blob(&self, oid: &Oid) -> Option<Vec<u8>> {
        self.content(oid, "blob")
    }

    /// The content of an object of this kind. The file is `KIND SIZE\0CONTENT`, compressed.
    fn content(&self, oid: &Oid, kind: &str) -> Option<Vec<u8>> {
        let (fan, rest) = oid.as_str().split_at_checked(2)?;
        let path = self.common.join("objects").join(fan).join(rest);
        let packed = bytes_of(&path, LARGEST as u64)?;
        let mut object = miniz_oxide::inflate::decompress_to_vec_zlib_with_limit(&packed, LARGEST).ok()?;
        // The name of an object is its sum: what someone wrote under another's name is not it.
        if hex(&Sha1::digest(&object)) != oid.as_str() {
            return None;
        }
        let header = object.iter().position(|byte| *byte == 0)?;
        let content = object.split_off(header + 1);
        (object == format!("{kind} {}\0", content.len()).as_bytes()).then_some(content)
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

/// Headers, an empty line, the message.
fn parse(content: &[u8]) -> Option<CommitObject> {
    let (mut tree, mut parents, mut seconds) = (None, Vec::new(), None);
    for line in content.split(|byte| *byte == b'\n').take_while(|line| !line.is_empty()) {
        let Some((name, value)) = std::str::from_utf8(line).ok().and_then(|line| line.split_once(' ')) else {
            continue;
        };
        match name {
            "tree" => tree = Some(Oid::new(value).ok()?),
            "parent" => parents.push(Oid::new(value).ok()?),
            // `NAME <MAIL> SECONDS ZONE`
            "committer" => seconds = value.rsplit(' ').nth(1)?.parse().ok(),
            _ => {}
        }
    }
    Some(CommitObject { tree: tree?, parents, seconds: seconds? })
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn oid(digit: char) -> Oid {
        Oid::new(&digit.to_string().repeat(40)).unwrap()
    }

    #[test]
    fn a_signature_is_not_taken_for_a_header() {
        let (a, b) = (oid('a'), oid('b'));
        let content = format!(
            "tree {a}\nparent {b}\nauthor A <a> 1 +0000\ncommitter B b <b> 7 +0100\ngpgsig ---\n parent {a}\n \n ---\n\nparent {a}\n"
        );
        let expected = CommitObject { tree: a, parents: vec![b], seconds: 7 };
        assert_eq!(parse(content.as_bytes()), Some(expected));
    }

    #[test]
    fn what_is_not_whole_is_no_commit() {
        let a = oid('a');
        assert_eq!(parse(format!("tree {a}\n\nno committer\n").as_bytes()), None);
        assert_eq!(parse(b"committer B <b> 7 +0100\n\nno tree\n"), None);
        assert_eq!(parse(format!("tree {a}\ncommitter now\n").as_bytes()), None);
    }

    proptest! {
        #[test]
        fn junk_is_no_commit_and_no_harm(junk in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(parse(&junk), None);
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

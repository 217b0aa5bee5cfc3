//! HEAD, and the files that differ from it, each with enough to notice that it was changed once more.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;

use camino::Utf8Path;
use rehearsal_git::{Git, GitError, Oid, parse_oid, split_nul};
use serde::{Deserialize, Serialize};

use crate::policy::{MAX_HASHED_BYTES, MAX_HASHED_FILES};

/// What a dirty file was like.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Fingerprint {
    size: u64,
    /// Nanoseconds; zero for a file that is gone.
    modified: i128,
    mode: u32,
    content: Option<u64>,
    /// What git said of a directory: a submodule, a nested repository.
    record: Option<String>,
}

impl Fingerprint {
    /// Content decides where it is known; else size and time.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        match (self.content, other.content) {
            (Some(a), Some(b)) => (a, self.size, self.mode) == (b, other.size, other.mode),
            _ => self == other,
        }
    }

    fn of(root: &Utf8Path, path: &str, record: &str, may_hash: bool) -> Self {
        let file = root.join(path);
        let Ok(metadata) = std::fs::symlink_metadata(&file) else {
            return Self { size: 0, modified: 0, mode: 0, content: None, record: None };
        };
        let modified = i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec());
        let mut print =
            Self { size: metadata.len(), modified, mode: metadata.mode(), content: None, record: None };
        if metadata.is_dir() {
            // The time of a directory says nothing about what is in it.
            return Self { size: 0, modified: 0, record: Some(record.to_owned()), ..print };
        }
        if metadata.is_symlink() {
            print.content = std::fs::read_link(&file).ok().map(|target| hash(&target));
        } else if may_hash && metadata.is_file() && metadata.len() <= MAX_HASHED_BYTES {
            print.content = std::fs::read(&file).ok().map(|content| hash(&content));
        }
        print
    }
}

fn hash(content: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    content.hash(&mut hasher);
    hasher.finish()
}

/// HEAD, and every file that differs from it.
pub(super) struct Status {
    pub(super) head: Option<Oid>,
    /// Tracked or not, by its path from the root.
    pub(super) dirty: BTreeMap<String, Fingerprint>,
}

impl Status {
    /// Asks git at the top of a working tree.
    pub(super) async fn read(git: &Git) -> Result<Self, GitError> {
        let args = [
            "status",
            "--porcelain=v2",
            "--branch",
            "-z",
            "--untracked-files=all",
            "--no-renames",
            "--ignore-submodules=none",
        ];
        let mut status = Self { head: None, dirty: BTreeMap::new() };
        for record in split_nul(&git.run(&args).await?) {
            if let Some(path) = path_of(&record) {
                let may_hash = status.dirty.len() < MAX_HASHED_FILES;
                let print = Fingerprint::of(git.dir(), path, &record, may_hash);
                status.dirty.insert(path.to_owned(), print);
            } else if let Some(head) =
                record.strip_prefix("# branch.oid ").filter(|head| *head != "(initial)")
            {
                status.head = Some(parse_oid(head, &args)?);
            }
        }
        Ok(status)
    }
}

/// The path in a record of `git status --porcelain=v2`: behind 1 field (`?`), 8 (`1`) or 10 (`u`).
fn path_of(record: &str) -> Option<&str> {
    let fields = match record.as_bytes().first()? {
        b'?' => 1,
        b'1' => 8,
        b'u' => 10,
        _ => return None,
    };
    record.splitn(fields + 1, ' ').nth(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_with_blanks_are_whole() {
        assert_eq!(path_of("? a b c"), Some("a b c"));
        assert_eq!(path_of("1 .M N... 100644 100644 100644 aa bb dir/a b"), Some("dir/a b"));
        assert_eq!(path_of("u UU N... 1 2 3 4 a b c with blank"), Some("with blank"));
        assert_eq!(path_of("# branch.oid abc"), None);
        assert_eq!(path_of("1 .M"), None);
    }
}

//! Whether the main checkout was written to while an agent had a worktree of its own.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};

use rehearsal_git::{Git, GitError, split_nul};

/// What we ourselves keep in a user's repository.
const OUR_STATE: &str = ".rehearsal/state/";

/// A checkout at one moment: one call of git, and a look at each file that differs from its commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckoutPrint {
    root: Utf8PathBuf,
    head: String,
    pub(crate) dirty: BTreeMap<String, FilePrint>,
}

/// A file that differs from its commit, at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilePrint {
    /// How git sees it.
    status: String,
    /// Inode, size, seconds and nanoseconds; a file that is gone has none.
    stat: Option<(u64, u64, i64, i64)>,
}

/// What happened to a checkout that nobody should have touched.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Trespass {
    /// Whether another commit or branch is checked out.
    pub head_moved: bool,
    /// Files that were written.
    pub files: Vec<String>,
}

impl CheckoutPrint {
    /// Looks at a checkout.
    pub async fn take(root: &Utf8Path) -> Result<Self, GitError> {
        let args = ["status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all", "--no-renames"];
        let said = Git::at(root).run(&args).await?;
        let (mut head, mut dirty) = (String::new(), BTreeMap::new());
        for record in split_nul(&said) {
            if record.starts_with("# branch.oid ") || record.starts_with("# branch.head ") {
                head.push_str(&record);
            } else if let Some(path) = path_of(&record).filter(|path| !path.starts_with(OUR_STATE)) {
                dirty.insert(path.to_owned(), FilePrint::of(root, path, &record));
            }
        }
        Ok(Self { root: root.to_owned(), head, dirty })
    }

    /// What happened since; none if nothing did.
    pub async fn trespass_since(&self) -> Result<Option<Trespass>, GitError> {
        let now = Self::take(&self.root).await?;
        let trespass = Trespass { head_moved: self.head != now.head, files: self.differences(&now) };
        Ok((trespass != Trespass::default()).then_some(trespass))
    }

    /// The files whose difference from their commit came, went or changed.
    pub(crate) fn differences(&self, now: &Self) -> Vec<String> {
        let mut files: Vec<String> = now
            .dirty
            .iter()
            .filter(|(path, print)| self.dirty.get(*path) != Some(print))
            .map(|(path, _)| path.clone())
            .collect();
        files.extend(self.dirty.keys().filter(|path| !now.dirty.contains_key(*path)).cloned());
        files.sort();
        files
    }

    /// Of these files, those that still differ from their commit as they did.
    pub async fn unchanged(
        root: &Utf8Path,
        files: &BTreeMap<String, FilePrint>,
    ) -> Result<Vec<String>, GitError> {
        let now = Self::take(root).await?;
        let same = |(path, print): &(&String, &FilePrint)| {
            now.dirty.get(*path).is_some_and(|now| now.is_same_file(print))
        };
        Ok(files.iter().filter(same).map(|(path, _)| path.clone()).collect())
    }

    /// The files that differ from their commit and did not at this moment, or not so.
    pub async fn written_since(&self) -> Result<BTreeMap<String, FilePrint>, GitError> {
        let now = Self::take(&self.root).await?;
        Ok(now.dirty.into_iter().filter(|(path, print)| self.dirty.get(path) != Some(print)).collect())
    }
}

impl FilePrint {
    pub(crate) fn is_untracked(&self) -> bool {
        self.status.starts_with('?')
    }

    pub(crate) fn size(&self) -> u64 {
        self.stat.map_or(0, |(_, size, _, _)| size)
    }

    /// Whether nobody has written to it; what is staged of it is another matter.
    pub(crate) fn is_same_file(&self, other: &Self) -> bool {
        self.stat == other.stat
    }

    fn of(root: &Utf8Path, path: &str, record: &str) -> Self {
        let stat = std::fs::symlink_metadata(root.join(path)).ok();
        let stat = stat.map(|found| (found.ino(), found.len(), found.mtime(), found.mtime_nsec()));
        Self { status: record.chars().take(4).collect(), stat }
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

//! What exactly was tested: one name for the files as they are, committed or not.

use std::io::Read;

use camino::Utf8Path;
use rehearsal_core::BoxFuture;
use rehearsal_git::{GitError, Oid, Repository};
use sha2::{Digest, Sha256};

use crate::changes::git;
use crate::regular_file;

/// The files of a repository at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkingTree {
    /// The commit that is checked out; none before the first.
    pub commit: Option<Oid>,
    /// A hash of all files that git knows or would add.
    pub hash: String,
    /// Whether they are just those of the commit.
    pub clean: bool,
}

/// A list of changed files that is longer than this is cut, and so is not clean.
const LARGEST: usize = 16 << 20;
const STATUS: [&str; 5] = ["status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames"];

impl WorkingTree {
    /// Asks git, and reads what is not committed. Nothing is written, not even git's index.
    pub fn read(directory: &Utf8Path) -> BoxFuture<'_, Result<Self, GitError>> {
        Box::pin(async move {
            let (git, root) = (git(directory), Repository::around(directory)?.root);
            let committed = async {
                let Some(commit) = git.find_commit("HEAD").await? else { return Ok((None, String::new())) };
                let tree = git.oid(&["rev-parse", &format!("{commit}^{{tree}}")]).await?;
                Ok::<_, GitError>((Some(commit), tree.to_string()))
            };
            let ((commit, tree), status) = tokio::try_join!(committed, git.head(&STATUS, LARGEST))?;
            let changed: Vec<&str> =
                status.text.split('\0').filter(|entry| entry.len() > 3 && is_theirs(entry)).collect();
            if changed.is_empty() && !status.is_cut {
                return Ok(Self { commit, hash: tree, clean: true });
            }
            let mut hash = Sha256::new();
            hash.update(tree.as_bytes());
            for entry in changed {
                hash.update(entry.as_bytes());
                hash.update(content(&root.join(&entry[3..])));
            }
            let hash = hash.finalize().iter().take(20).map(|byte| format!("{byte:02x}")).collect();
            Ok(Self { commit, hash, clean: false })
        })
    }
}

/// What we keep in the repository ourselves changes with every run.
fn is_theirs(entry: &str) -> bool {
    !entry.get(3..).is_some_and(|path| path.starts_with(".rehearsal/state/"))
}

/// The hash of a file's content; of what is no file, or cannot be read, nothing.
fn content(path: &Utf8Path) -> Vec<u8> {
    let is_file = path.symlink_metadata().is_ok_and(|metadata| metadata.is_file());
    let Some(mut file) = is_file.then(|| regular_file::open(path).ok()).flatten() else { return Vec::new() };
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 64 << 10];
    while let Ok(count @ 1..) = file.read(&mut buffer) {
        hash.update(&buffer[..count]);
    }
    hash.finalize().to_vec()
}

//! What exactly was tested: one name for the files as they are, committed or not.

use std::io::Read;

use camino::Utf8Path;
use sha2::{Digest, Sha256};

use crate::changes::{ChangesError, answer};
use crate::regular_file;

/// The files of a repository at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkingTree {
    /// The commit that is checked out; none before the first.
    pub commit: Option<String>,
    /// A hash of all files that git knows or would add.
    pub hash: String,
    /// Whether they are just those of the commit.
    pub clean: bool,
}

const COMMIT: [&str; 4] = ["rev-parse", "--show-toplevel", "HEAD", "HEAD^{tree}"];
const STATUS: [&str; 5] = ["status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames"];

impl WorkingTree {
    /// Asks git, and reads what is not committed. Nothing is written, not even git's index.
    pub fn read(directory: &Utf8Path) -> Result<Self, ChangesError> {
        let (told, status) = std::thread::scope(|scope| {
            let told = scope.spawn(|| answer(directory, &COMMIT));
            let status = answer(directory, &STATUS);
            (told.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), status)
        });
        let told = told?;
        let mut lines = told.text.lines();
        let Some(top) = lines.next().filter(|top| top.starts_with('/')) else {
            return Err(ChangesError::NotARepository(directory.to_owned()));
        };
        // Before the first commit, git only repeats the question.
        let (commit, tree) = if told.good { (lines.next(), lines.next()) } else { (None, None) };
        let (commit, tree) = (commit.map(str::to_owned), tree.unwrap_or_default().to_owned());
        let status = status?;
        let changed: Vec<&str> =
            status.text.split('\0').filter(|entry| entry.len() > 3 && is_theirs(entry)).collect();
        if changed.is_empty() && !status.cut {
            return Ok(Self { commit, hash: tree, clean: true });
        }
        let mut hash = Sha256::new();
        hash.update(tree.as_bytes());
        for entry in changed {
            hash.update(entry.as_bytes());
            hash.update(content(&Utf8Path::new(top).join(&entry[3..])));
        }
        let hash = hash.finalize().iter().take(20).map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { commit, hash, clean: false })
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

//! HEAD, read from git's own files: three small reads instead of a process.

use std::io::ErrorKind;

use camino::{Utf8Path, Utf8PathBuf};

use super::GitError;
use super::command::{git, text};

/// Symbolic references that point to symbolic references: git follows five.
const MAX_HOPS: u32 = 5;

/// A repository, or one worktree of it.
#[derive(Debug)]
pub(super) struct Repository {
    /// The top directory of the working tree.
    pub(super) root: Utf8PathBuf,
    pub(super) git_dir: Utf8PathBuf,
    /// Where the references of all worktrees are.
    pub(super) common_dir: Utf8PathBuf,
}

/// What a file of references said.
enum Reference {
    Commit(String),
    Symbolic(String),
    /// No such branch yet.
    Unborn,
    /// Something that only git itself understands.
    Odd,
}

impl Repository {
    /// The repository that a directory is in.
    pub(super) fn around(dir: &Utf8Path) -> Result<Option<Self>, GitError> {
        let dir = dir.canonicalize_utf8().map_err(|error| unreadable(dir, &error))?;
        for root in dir.ancestors() {
            let dot_git = root.join(".git");
            let Ok(kind) = fs_err::metadata(&dot_git) else {
                continue;
            };
            let git_dir = if kind.is_dir() { dot_git } else { linked_dir(root, &dot_git)? };
            if !git_dir.join("HEAD").exists() {
                continue;
            }
            let common_dir = match fs_err::read_to_string(git_dir.join("commondir")) {
                Ok(path) => git_dir.join(path.trim_end_matches('\n')),
                Err(_) => git_dir.clone(),
            };
            return Ok(Some(Self { root: root.to_owned(), git_dir, common_dir }));
        }
        Ok(None)
    }

    /// The commit that HEAD stands for.
    pub(super) async fn head(&self) -> Result<Option<String>, GitError> {
        let mut name = "HEAD".to_owned();
        for _ in 0..MAX_HOPS {
            match self.read(&name)? {
                Reference::Commit(id) => return Ok(Some(id)),
                Reference::Symbolic(target) => name = target,
                Reference::Unborn => return Ok(None),
                Reference::Odd => break,
            }
        }
        match git(&self.root, &["rev-parse", "--quiet", "--verify", "HEAD"]).await {
            Ok(id) => Ok(Some(text(&id).trim().to_owned())),
            // Without a word: there is no commit yet.
            Err(GitError::Failed { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn read(&self, name: &str) -> Result<Reference, GitError> {
        // HEAD and a few others belong to the worktree, branches to all of them.
        let shared = name.starts_with("refs/heads/") || name.starts_with("refs/remotes/");
        let dir = if shared { &self.common_dir } else { &self.git_dir };
        let path = dir.join(name);
        match fs_err::read_to_string(&path) {
            Ok(content) => Ok(parse(&content)),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::IsADirectory) && shared => {
                self.packed(name)
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Reference::Odd),
            Err(error) => Err(unreadable(&path, &error)),
        }
    }

    fn packed(&self, name: &str) -> Result<Reference, GitError> {
        let path = self.common_dir.join("packed-refs");
        let packed = match fs_err::read_to_string(&path) {
            Ok(packed) => packed,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Reference::Unborn),
            Err(error) => return Err(unreadable(&path, &error)),
        };
        let found =
            packed.lines().find_map(|line| line.split_once(' ').filter(|(_, packed)| *packed == name));
        Ok(found.map_or(Reference::Unborn, |(id, _)| parse(id)))
    }
}

fn parse(content: &str) -> Reference {
    let content = content.trim_end();
    if let Some(target) = content.strip_prefix("ref: ") {
        // What reftable repositories write, so that no one takes the file for the truth.
        return if target.contains(".invalid") {
            Reference::Odd
        } else {
            Reference::Symbolic(target.trim().to_owned())
        };
    }
    let is_id = matches!(content.len(), 40 | 64) && content.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_id { Reference::Commit(content.to_owned()) } else { Reference::Odd }
}

/// A `.git` file: `gitdir: path`, in worktrees and submodules.
fn linked_dir(root: &Utf8Path, dot_git: &Utf8Path) -> Result<Utf8PathBuf, GitError> {
    let content = fs_err::read_to_string(dot_git).map_err(|error| unreadable(dot_git, &error))?;
    let path = content.strip_prefix("gitdir: ").map(str::trim_end);
    let path = path.ok_or_else(|| GitError::Unreadable {
        path: dot_git.to_owned(),
        reason: "it does not begin with `gitdir: `".to_owned(),
    })?;
    Ok(root.join(path))
}

fn unreadable(path: &Utf8Path, error: &std::io::Error) -> GitError {
    GitError::Unreadable { path: path.to_owned(), reason: error.to_string() }
}

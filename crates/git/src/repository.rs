//! Which repository a directory is in. Found as git finds it, without a process: callers need it before they can wait.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};

use crate::{Git, GitError};

/// A `.git` file holds one path.
const LONGEST_LINK: u64 = 16 << 10;

/// A repository with a working tree, or one worktree of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    /// The top of the working tree.
    pub root: Utf8PathBuf,
    /// What belongs to this worktree alone: HEAD, the index.
    pub git_dir: Utf8PathBuf,
    /// What all worktrees share: objects, branches, configuration.
    pub common_dir: Utf8PathBuf,
}

impl Repository {
    /// The repository around a directory.
    pub fn around(dir: &Utf8Path) -> Result<Self, GitError> {
        Self::find(dir)?.ok_or_else(|| GitError::NotARepository { dir: dir.to_owned() })
    }

    /// The repository around a directory, if there is one.
    pub fn find(dir: &Utf8Path) -> Result<Option<Self>, GitError> {
        let dir = dir.canonicalize_utf8().map_err(unreadable(dir))?;
        for root in dir.ancestors() {
            let dot_git = root.join(".git");
            let Ok(kind) = fs_err::metadata(&dot_git) else { continue };
            let git_dir = if kind.is_dir() { dot_git } else { linked_dir(root, &dot_git)? };
            if !git_dir.join("HEAD").exists() {
                continue;
            }
            let common_dir = match fs_err::read_to_string(git_dir.join("commondir")) {
                Ok(path) => git_dir.join(path.trim_end_matches('\n')),
                Err(_) => git_dir.clone(),
            };
            let common_dir = common_dir.canonicalize_utf8().map_err(unreadable(&common_dir))?;
            let git_dir = git_dir.canonicalize_utf8().map_err(unreadable(&git_dir))?;
            return Ok(Some(Self { root: root.to_owned(), git_dir, common_dir }));
        }
        Ok(None)
    }

    /// git at the top of the working tree.
    pub fn git(&self) -> Git {
        Git::at(&self.root)
    }

    /// The branch that work is based on: the remote's default, else `main` or `master`, else the one that is checked
    /// out.
    pub async fn base_branch(&self) -> Result<String, GitError> {
        let git = self.git();
        if let Some(base) = git.default_base().await? {
            return Ok(base.trim_start_matches("origin/").to_owned());
        }
        git.symbolic("HEAD").await?.ok_or_else(|| GitError::NoBaseBranch { dir: self.root.clone() })
    }
}

/// A `.git` file: `gitdir: path`, in worktrees and submodules. What an agent put there instead may never end.
fn linked_dir(root: &Utf8Path, dot_git: &Utf8Path) -> Result<Utf8PathBuf, GitError> {
    let odd = || unreadable(dot_git)(io::Error::other("it does not begin with `gitdir: `"));
    let kind = fs_err::metadata(dot_git).map_err(unreadable(dot_git))?;
    if !kind.is_file() || kind.len() > LONGEST_LINK {
        return Err(odd());
    }
    let content = fs_err::read_to_string(dot_git).map_err(unreadable(dot_git))?;
    let path = content.strip_prefix("gitdir: ").map(str::trim_end).ok_or_else(odd)?;
    Ok(root.join(path))
}

fn unreadable(path: &Utf8Path) -> impl FnOnce(io::Error) -> GitError {
    GitError::io(format!("read `{path}`"))
}

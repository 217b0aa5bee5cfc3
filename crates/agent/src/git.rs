//! What a run did to its repository, read from git and from nothing else.
//!
//! Cheap, for it happens after every run: HEAD and the commits that came are read from git's files where that is
//! plain, and the rest takes one `git status`.

mod chain;
mod command;
mod forward;
mod head;
mod locks;
mod objects;
mod places;
mod status;

use std::collections::{BTreeMap, BTreeSet};

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_core::{Commit, GitFacts};
use serde::{Deserialize, Serialize};

use crate::policy::MAX_COMMITS;
use command::{git, text};
use head::Repository;
pub use locks::release_locks;
pub(crate) use places::git_places;
use status::Fingerprint;

/// What we ourselves keep in a user's repository, which is never a change.
const OUR_STATE: &str = ".rehearsal/state/";

/// Why git could not tell.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GitError {
    /// There is no git.
    #[error("git was not found")]
    Missing,
    /// The directory is in no repository.
    #[error("`{dir}` is not in a git repository")]
    NotARepository {
        /// Which directory.
        dir: Utf8PathBuf,
    },
    /// No branch is there that others could be based on.
    #[error("no base branch was found in `{dir}`")]
    NoBaseBranch {
        /// Which directory.
        dir: Utf8PathBuf,
    },
    /// git said no.
    #[error("`git {command}` failed: {stderr}")]
    Failed {
        /// What it was to do.
        command: String,
        /// What it said.
        stderr: String,
    },
    /// git did not come back.
    #[error("`git {command}` took longer than {seconds} s")]
    TimedOut {
        /// What it was to do.
        command: String,
        /// How long we waited.
        seconds: u64,
    },
    /// A file of git's could not be read.
    #[error("cannot read `{path}`: {reason}")]
    Unreadable {
        /// Which file.
        path: Utf8PathBuf,
        /// Why.
        reason: String,
    },
}

/// A repository at one moment: its HEAD, and every file that differs from it. The snapshot after one run serves
/// as the one before the next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::unsafe_derive_deserialize, reason = "the `unsafe` is inside of tokio's `try_join!`")]
pub struct Snapshot {
    /// The commit that HEAD stands for; none in a repository without a commit.
    pub head: Option<String>,
    dirty: BTreeMap<String, Fingerprint>,
}

impl Snapshot {
    /// The repository around a directory, now; none if there is no repository.
    pub async fn take(dir: &Utf8Path) -> Result<Option<Self>, GitError> {
        match Repository::around(dir)? {
            Some(repository) => Self::of(&repository).await.map(Some),
            None => Ok(None),
        }
    }

    async fn of(repository: &Repository) -> Result<Self, GitError> {
        let head = repository.head().await?;
        Self::with_head(repository, head).await
    }

    async fn with_head(repository: &Repository, head: Option<String>) -> Result<Self, GitError> {
        let mut dirty = status::dirty_files(&repository.root).await?;
        dirty.retain(|path, _| !is_ours(path));
        Ok(Self { head, dirty })
    }

    /// Whether HEAD is where it was.
    pub(crate) async fn is_at_head(&self, dir: &Utf8Path) -> Result<bool, GitError> {
        match Repository::around(dir)? {
            Some(repository) => Ok(repository.head().await? == self.head),
            None => Ok(false),
        }
    }

    /// Whether nothing differs from HEAD.
    pub fn is_clean(&self) -> bool {
        self.dirty.is_empty()
    }

    /// What happened since this snapshot was taken, and the snapshot of now.
    pub async fn facts_since(&self, dir: &Utf8Path) -> Result<(GitFacts, Self), GitError> {
        let Some(repository) = Repository::around(dir)? else {
            return Err(GitError::NotARepository { dir: dir.to_owned() });
        };
        let head = repository.head().await?;
        let (now, (commits, committed)) = tokio::try_join!(
            Self::with_head(&repository, head.clone()),
            self.committed_until(&repository, head.as_deref()),
        )?;
        let mut files: BTreeSet<String> = self.redirtied(&now).cloned().collect();
        files.extend(committed);
        let facts = GitFacts {
            head_before: self.head.clone(),
            head_after: now.head.clone(),
            commits,
            files_changed: files.into_iter().collect(),
            uncommitted: !now.is_clean(),
        };
        Ok((facts, now))
    }

    /// The commits that came, and the files that they changed. Git is not asked if HEAD is where it was.
    async fn committed_until(
        &self,
        repository: &Repository,
        head: Option<&str>,
    ) -> Result<(Vec<Commit>, Vec<String>), GitError> {
        let before = self.head.as_deref();
        match head {
            Some(after) if before != Some(after) => committed(repository, before, after).await,
            _ => Ok((Vec::new(), Vec::new())),
        }
    }

    /// Files whose difference from HEAD came, went or changed.
    fn redirtied<'a>(&'a self, now: &'a Self) -> impl Iterator<Item = &'a String> {
        let changed = now
            .dirty
            .iter()
            .filter(|(path, print)| self.dirty.get(*path).is_none_or(|before| !before.is_same(print)));
        let gone = self.dirty.iter().filter(|(path, _)| !now.dirty.contains_key(*path));
        changed.chain(gone).map(|(path, _)| path)
    }
}

fn is_ours(path: &str) -> bool {
    path.starts_with(OUR_STATE)
}

/// Commits and the files they changed. No call of git if HEAD moved forward by a few commits that are not packed,
/// one if it only moved forward.
async fn committed(
    repository: &Repository,
    before: Option<&str>,
    after: &str,
) -> Result<(Vec<Commit>, Vec<String>), GitError> {
    let root = &repository.root;
    if let Some(before) = before {
        let read = match chain::read(repository, before, after) {
            Some(read) => Some(read),
            None => forward::read(&git(root, &forward::log_args(before, after)).await?, before, after),
        };
        if let Some((commits, files)) = read {
            return Ok((commits, files.into_iter().filter(|name| !is_ours(name)).collect()));
        }
    }
    tokio::try_join!(new_commits(root, before, after), committed_files(root, before, after))
}

async fn new_commits(root: &Utf8Path, before: Option<&str>, after: &str) -> Result<Vec<Commit>, GitError> {
    let range = before.map_or_else(|| after.to_owned(), |before| format!("{before}..{after}"));
    let limit = format!("--max-count={MAX_COMMITS}");
    let log = git(root, &["log", "--reverse", "-z", "--format=%H%x20%s", &limit, &range, "--"]).await?;
    let commit = |line: &[u8]| {
        let line = text(line);
        let (id, subject) = line.split_once(' ')?;
        Some(Commit { id: id.to_owned(), subject: subject.to_owned() })
    };
    Ok(log.split(|byte| *byte == 0).filter_map(commit).collect())
}

async fn committed_files(
    root: &Utf8Path,
    before: Option<&str>,
    after: &str,
) -> Result<Vec<String>, GitError> {
    let names = match before {
        Some(before) => {
            let options = ["diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", before, after, "--"];
            git(root, &options).await?
        }
        None => git(root, &["ls-tree", "-r", "--name-only", "-z", "--full-tree", after]).await?,
    };
    let names = names.split(|byte| *byte == 0).filter(|name| !name.is_empty()).map(text);
    Ok(names.filter(|name| !is_ours(name)).collect())
}

/// git's version, as it says it: `2.47.3`.
pub async fn git_version() -> Result<String, GitError> {
    let said = text(&git(Utf8Path::new("/"), &["--version"]).await?);
    let version = said.trim().trim_start_matches("git version ");
    Ok(version.split(' ').next().unwrap_or_default().to_owned())
}

/// The top directory of the repository around a directory.
pub fn repo_root(dir: &Utf8Path) -> Result<Utf8PathBuf, GitError> {
    match Repository::around(dir)? {
        Some(repository) => Ok(repository.root),
        None => Err(GitError::NotARepository { dir: dir.to_owned() }),
    }
}

/// Whether nothing in the repository differs from its HEAD, our own files aside.
pub async fn is_clean(dir: &Utf8Path) -> Result<bool, GitError> {
    match Snapshot::take(dir).await? {
        Some(snapshot) => Ok(snapshot.is_clean()),
        None => Err(GitError::NotARepository { dir: dir.to_owned() }),
    }
}

/// The branch that work is based on: the remote's own default, else `main` or `master`, else the one that is
/// checked out.
pub async fn base_branch(dir: &Utf8Path) -> Result<String, GitError> {
    let root = repo_root(dir)?;
    let ask = async |args: &[&str]| {
        git(&root, args).await.map(|said| text(&said).trim().to_owned()).ok().filter(|said| !said.is_empty())
    };
    if let Some(remote) = ask(&["symbolic-ref", "--quiet", "--short", "refs/remotes/origin/HEAD"]).await {
        return Ok(remote.trim_start_matches("origin/").to_owned());
    }
    for name in ["main", "master"] {
        let reference = format!("refs/heads/{name}");
        if ask(&["rev-parse", "--quiet", "--verify", &reference]).await.is_some() {
            return Ok(name.to_owned());
        }
    }
    let current = ask(&["symbolic-ref", "--quiet", "--short", "HEAD"]).await;
    current.ok_or_else(|| GitError::NoBaseBranch { dir: dir.to_owned() })
}

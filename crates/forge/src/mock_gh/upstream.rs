//! The repository behind `origin`, where that is a directory: what GitHub would have.

use camino::Utf8Path;
use rehearsal_core::Timestamp;

use crate::local::Local;
use crate::merge::{CandidateError, check_fit, merge_commit, tree_of};
use rehearsal_git::{Git, GitError, Oid};

/// A repository on this machine that is somebody's `origin`.
#[derive(Debug)]
pub(super) struct Upstream {
    local: Local,
    git: Git,
}

/// What a merge came to.
#[derive(Debug)]
pub(super) enum Landed {
    Merged(Oid),
    Conflict,
    /// The base moved in between.
    Lost,
}

/// How commits are put on the base.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Merge,
    Squash,
}

impl Upstream {
    /// The one of the repository around a directory, asked for unless it is known.
    pub(super) async fn of(dir: &Utf8Path, known: Option<&Utf8Path>) -> Option<Self> {
        let path = match known {
            Some(path) => path.to_owned(),
            None => {
                let url = Git::at(dir).line(&["remote", "get-url", "origin"]).await.ok()?;
                dir.join(url.strip_prefix("file://").unwrap_or(&url))
            }
        };
        if !path.is_dir() {
            return None;
        }
        let local = Local::open(&path).await.ok()?;
        Some(Self { git: Git::at(path), local })
    }

    pub(super) async fn tip(&self, branch: &str) -> Result<Option<Oid>, GitError> {
        self.local.tip(branch).await
    }

    /// The commit by which a branch came to have another's tip.
    pub(super) async fn landed(&self, head: &Oid, base: &str) -> Result<Option<Oid>, GitError> {
        match self.tip(base).await? {
            Some(base) => self.local.landed(head, &base).await,
            None => Ok(None),
        }
    }

    pub(super) async fn conflicts(&self, head: &Oid, base: &str) -> Result<bool, GitError> {
        let Some(base) = self.tip(base).await? else { return Ok(false) };
        match check_fit(&self.git, &base, head).await {
            Ok(()) => Ok(false),
            Err(CandidateError::Conflict { .. }) => Ok(true),
            Err(CandidateError::Git(error)) => Err(error),
        }
    }

    pub(super) async fn merge(
        &self,
        head: &Oid,
        branch: &str,
        message: &str,
        method: Method,
    ) -> Result<Landed, GitError> {
        let Some(base) = self.tip(branch).await? else { return Ok(Landed::Lost) };
        let git = self.dated_like(head).await?;
        let mut commit = match merge_commit(&git, &base, head, message).await {
            Ok(commit) => commit,
            Err(CandidateError::Conflict { .. }) => return Ok(Landed::Conflict),
            Err(CandidateError::Git(error)) => return Err(error),
        };
        if method == Method::Squash {
            let tree = tree_of(&self.git, &commit).await?;
            let args = ["commit-tree", tree.as_str(), "-p", base.as_str(), "-m", message];
            commit = git.committing().await?.oid(&args).await?;
        }
        let name = format!("refs/heads/{branch}");
        let moved = self.git.run(&["update-ref", &name, commit.as_str(), base.as_str()]).await;
        Ok(if moved.is_ok() { Landed::Merged(commit) } else { Landed::Lost })
    }

    /// A stand-in has no clock: what it commits is as old as what it is asked to merge.
    async fn dated_like(&self, commit: &Oid) -> Result<Git, GitError> {
        let said = self.git.line(&["show", "--no-patch", "--format=%ct", commit.as_str()]).await?;
        let seconds: i64 = said.parse().unwrap_or(0);
        Ok(self.git.clone().dated(Timestamp(seconds.saturating_mul(1000))))
    }

    pub(super) async fn delete(&self, branch: &str) -> Result<(), GitError> {
        self.git.run(&["update-ref", "-d", &format!("refs/heads/{branch}")]).await.map(drop)
    }
}

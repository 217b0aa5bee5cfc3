//! A task's commits in its worktree, on their way to a branch of the remote.

use camino::Utf8Path;
use rehearsal_core::Timestamp;

use crate::class::ErrorClass;
use crate::remote::{RemoteError, remote_head};
use rehearsal_git::{Git, GitError, Oid, Repository, split_nul};

/// The work in a worktree.
#[derive(Debug, Clone)]
pub struct Work {
    git: Git,
}

/// What a rebase came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rebased {
    /// The work stood there already.
    Already(Oid),
    /// The work was moved; its newest commit now.
    Moved(Oid),
}

/// Why the work was not moved. In each case it is as it was.
#[derive(Debug, thiserror::Error)]
pub enum RebaseError {
    /// The work does not fit its new base.
    #[error("conflicts with the base in {}", files.join(", "))]
    Conflict {
        /// Where.
        files: Vec<String>,
    },
    /// There are changes that were not committed.
    #[error("there are uncommitted changes")]
    Uncommitted,
    /// git could not do it.
    #[error(transparent)]
    Git(#[from] GitError),
}

/// Why changes were not committed.
#[derive(Debug, thiserror::Error)]
pub enum LeftoversError {
    /// A merge was begun and not finished: committed as they are, the marks of its conflicts would be work.
    #[error("a merge is not finished in {}", files.join(", "))]
    Unmerged {
        /// Where.
        files: Vec<String>,
    },
    /// git could not do it.
    #[error(transparent)]
    Git(#[from] GitError),
}

/// What a push came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pushed {
    /// The branch was there already.
    Already,
    /// The branch was moved.
    Now,
}

/// Why a branch was not moved.
#[derive(Debug, thiserror::Error)]
pub enum PushError {
    /// Someone else moved the branch: it is not what we last knew.
    #[error("the branch `{branch}` was moved by someone else: expected {}, found {}", shown(expected.as_ref()), shown(found.as_ref()))]
    Moved {
        /// Which branch.
        branch: String,
        /// What we last knew.
        expected: Option<Oid>,
        /// What is there.
        found: Option<Oid>,
    },
    /// The remote's rules refuse it.
    #[error("the remote refused `{branch}`: {reason}")]
    Refused {
        /// Which branch.
        branch: String,
        /// In its words.
        reason: String,
    },
    /// The remote did not answer.
    #[error(transparent)]
    Remote(#[from] RemoteError),
}

impl PushError {
    /// Whose it is.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Moved { .. } | Self::Refused { .. } => ErrorClass::Task,
            Self::Remote(error) => error.class(),
        }
    }
}

fn shown(oid: Option<&Oid>) -> String {
    oid.map_or_else(|| "no branch".to_owned(), |oid| format!("{oid:.10}"))
}

impl Work {
    /// The work in this worktree.
    pub fn at(worktree: &Utf8Path) -> Self {
        Self { git: Git::at(worktree) }
    }

    /// The same, with commits dated so.
    pub fn dated(self, date: Timestamp) -> Self {
        Self { git: self.git.dated(date) }
    }

    /// git in the worktree.
    pub fn git(&self) -> &Git {
        &self.git
    }

    /// The newest commit.
    pub async fn head(&self) -> Result<Oid, GitError> {
        self.git.commit("HEAD").await
    }

    /// Commits everything that an agent left uncommitted; the new commit, or none if there was nothing.
    pub async fn commit_leftovers(&self, message: &str) -> Result<Option<Oid>, LeftoversError> {
        // One look suffices where nothing is to be done, which is the usual case.
        if self.is_clean().await? {
            return Ok(None);
        }
        let files = self.unmerged().await?;
        if !files.is_empty() {
            return Err(LeftoversError::Unmerged { files });
        }
        self.git.run(&["add", "--all"]).await?;
        if self.git.ask(&["diff", "--cached", "--quiet"]).await?.yes {
            return Ok(None);
        }
        let git = self.git.committing().await?;
        git.run(&["commit", "--quiet", "--no-verify", "--cleanup=whitespace", "-m", message]).await?;
        Ok(Some(self.head().await?))
    }

    /// Commits those of these files that differ from HEAD, and nothing else, whatever is staged.
    pub async fn commit_files(&self, files: &[String], message: &str) -> Result<(), LeftoversError> {
        let unmerged = self.unmerged().await?;
        if !unmerged.is_empty() {
            return Err(LeftoversError::Unmerged { files: unmerged });
        }
        let names: String = self
            .dirty_files()
            .await?
            .into_iter()
            .filter(|file| files.contains(file))
            .map(|file| file + "\0")
            .collect();
        if names.is_empty() {
            return Ok(());
        }
        let these = ["--pathspec-from-file=-", "--pathspec-file-nul"];
        let add = [&["--literal-pathspecs", "add", "--all"], &these[..]].concat();
        self.git.feed(&add, names.as_bytes()).await?;
        let git = self.git.committing().await?;
        let commit = ["--literal-pathspecs", "commit", "--quiet", "--no-verify", "--cleanup=whitespace"];
        git.feed(&[&commit[..], &["-m", message], &these].concat(), names.as_bytes()).await?;
        Ok(())
    }

    /// The files that differ from HEAD.
    pub async fn dirty_files(&self) -> Result<Vec<String>, GitError> {
        let args = ["status", "--porcelain", "-z", "--no-renames", "--untracked-files=all"];
        let entries = self.git.run(&args).await?;
        Ok(split_nul(&entries).filter_map(|entry| entry.get(3..).map(str::to_owned)).collect())
    }

    /// Moves the work onto a commit. If it does not fit, everything is as it was, and the error says where.
    pub async fn rebase(&self, onto: &Oid) -> Result<Rebased, RebaseError> {
        self.abort_rebase().await?;
        let before = self.head().await?;
        if self.git.is_ancestor(onto, &before).await? {
            return Ok(Rebased::Already(before));
        }
        let changed = self.git.run(&["status", "--porcelain", "-z", "--untracked-files=no"]).await?;
        if !changed.is_empty() {
            return Err(RebaseError::Uncommitted);
        }
        let git = self.git.committing().await?;
        let args = [
            "rebase",
            "--quiet",
            "--no-verify",
            "--no-autostash",
            "--no-fork-point",
            "--empty=drop",
            onto.as_str(),
        ];
        let Err(error) = git.run(&args).await else {
            return Ok(Rebased::Moved(self.head().await?));
        };
        let files = self.unmerged().await?;
        self.abort_rebase().await?;
        let after = self.head().await?;
        if after != before {
            let said = format!("HEAD is {after} after an abort, and was {before}");
            return Err(GitError::Unexpected { command: "rebase --abort".into(), said }.into());
        }
        if files.is_empty() { Err(error.into()) } else { Err(RebaseError::Conflict { files }) }
    }

    /// Undoes a rebase that was cut short.
    async fn abort_rebase(&self) -> Result<(), GitError> {
        let git_dir = Repository::around(self.git.dir())?.git_dir;
        if ["rebase-merge", "rebase-apply"].iter().any(|name| git_dir.join(name).exists()) {
            self.git.run(&["rebase", "--abort"]).await?;
        }
        Ok(())
    }

    /// Whether neither a file nor the index differs from the commit.
    async fn is_clean(&self) -> Result<bool, GitError> {
        let args = ["status", "--porcelain", "-z", "--untracked-files=normal", "--ignore-submodules=none"];
        Ok(self.git.run(&args).await?.is_empty())
    }

    async fn unmerged(&self) -> Result<Vec<String>, GitError> {
        let said = self.git.run(&["diff", "--name-only", "--diff-filter=U", "-z"]).await?;
        Ok(split_nul(&said).collect())
    }

    /// Moves a branch of the remote to a commit, from one that it may have by our doing (none: it is not there). Already
    /// there is done. A branch that anyone else moved is never written over.
    pub async fn push(
        &self,
        remote: &str,
        branch: &str,
        commit: &Oid,
        expected: &[Option<Oid>],
    ) -> Result<Pushed, PushError> {
        push(&self.git, remote, branch, commit, expected).await
    }
}

/// [`Work::push`], from any repository that has the commit.
pub(crate) async fn push(
    git: &Git,
    remote: &str,
    branch: &str,
    commit: &Oid,
    expected: &[Option<Oid>],
) -> Result<Pushed, PushError> {
    let moved = |found| {
        let expected = expected.first().cloned().flatten();
        PushError::Moved { branch: branch.to_owned(), expected, found }
    };
    let before = remote_head(git, remote, branch).await?;
    if before.as_ref() == Some(commit) {
        return Ok(Pushed::Already);
    }
    if !expected.contains(&before) {
        return Err(moved(before));
    }
    let name = format!("refs/heads/{branch}");
    let lease = format!("--force-with-lease={name}:{}", before.as_ref().map_or("", Oid::as_str));
    let refspec = format!("{commit}:{name}");
    let args = ["push", "--quiet", "--no-verify", &lease, "--", remote, &refspec];
    let Err(error) = git.remotely().run(&args).await else {
        return Ok(Pushed::Now);
    };
    // A push that we lost may have been our own, in a race with ourselves: what is there decides.
    let found = remote_head(git, remote, branch).await?;
    match error {
        _ if found.as_ref() == Some(commit) => Ok(Pushed::Now),
        _ if found != before => Err(moved(found)),
        GitError::Failed { stderr, .. }
            if stderr.contains("remote rejected") || stderr.contains("declined") =>
        {
            Err(PushError::Refused { branch: branch.to_owned(), reason: stderr })
        }
        error => Err(RemoteError::read(remote, error).into()),
    }
}

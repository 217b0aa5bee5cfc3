//! A remote: what it has, and why it does not answer.

use crate::class::ErrorClass;
use crate::reference;
use rehearsal_git::{Git, GitError, Oid, parse_oid};

/// Why a remote did not give or take something.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// There is no repository any more.
    #[error("the remote `{remote}` is not there: {said}")]
    Gone {
        /// Which.
        remote: String,
        /// What git said.
        said: String,
    },
    /// It does not know us, or does not let us.
    #[error("the remote `{remote}` does not let us in: {said}")]
    Unauthorized {
        /// Which.
        remote: String,
        /// What git said.
        said: String,
    },
    /// It cannot be reached at this time.
    #[error("the remote `{remote}` cannot be reached: {said}")]
    Unreachable {
        /// Which.
        remote: String,
        /// What git said.
        said: String,
    },
    /// It has no such branch.
    #[error("the remote `{remote}` has no branch `{branch}`")]
    NoBranch {
        /// Which.
        remote: String,
        /// The branch.
        branch: String,
    },
    /// git could not do it.
    #[error(transparent)]
    Git(#[from] GitError),
}

impl RemoteError {
    /// Whose it is.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Unreachable { .. } | Self::Git(GitError::TimedOut { .. } | GitError::LockHeld { .. }) => {
                ErrorClass::TRANSIENT
            }
            Self::NoBranch { .. } => ErrorClass::Task,
            Self::Gone { .. } | Self::Unauthorized { .. } | Self::Git(_) => ErrorClass::Systemic,
        }
    }

    /// Understands what git said of a remote, in the words of its C locale.
    pub(crate) fn read(remote: &str, error: GitError) -> Self {
        let GitError::Failed { stderr, .. } = &error else { return Self::Git(error) };
        let says = |words: &[&str]| words.iter().any(|word| stderr.contains(word));
        let (remote, said) = (remote.to_owned(), stderr.clone());
        if says(UNAUTHORIZED) {
            Self::Unauthorized { remote, said }
        } else if says(GONE) {
            Self::Gone { remote, said }
        } else if says(UNREACHABLE) {
            Self::Unreachable { remote, said }
        } else {
            Self::Git(error)
        }
    }
}

const UNAUTHORIZED: &[&str] = &[
    "Authentication failed",
    "could not read Username",
    "could not read Password",
    "Permission denied (",
    "terminal prompts disabled",
    "Host key verification failed",
    "returned error: 401",
    "returned error: 403",
];
const GONE: &[&str] =
    &["does not appear to be a git repository", "Repository not found", "' not found", "No such remote"];
const UNREACHABLE: &[&str] = &[
    "Could not resolve host",
    "Connection refused",
    "Connection timed out",
    "Connection reset",
    "Network is unreachable",
    "unable to access",
    "early EOF",
    "hung up unexpectedly",
    "Could not read from remote repository",
];

/// What a remote's branch points at; none if it has no such branch.
pub async fn remote_head(git: &Git, remote: &str, branch: &str) -> Result<Option<Oid>, RemoteError> {
    let name = format!("refs/heads/{branch}");
    let args = ["ls-remote", "--", remote, &name];
    let said = git.remotely().line(&args).await;
    let said = said.map_err(|error| RemoteError::read(remote, error))?;
    // The pattern also matches `refs/heads/x/refs/heads/NAME`.
    let line = said.lines().find_map(|line| line.split_once('\t').filter(|(_, found)| *found == name));
    Ok(line.map(|(oid, _)| parse_oid(oid, &args)).transpose()?)
}

/// Gets a remote's branch and returns its commit, exactly as it was then. Nothing that others look at is touched, so
/// that any number can be under way at once.
pub async fn fetch(git: &Git, remote: &str, branch: &str) -> Result<Oid, RemoteError> {
    let name = format!("refs/heads/{branch}");
    let private = reference::private("fetch");
    let refspec = format!("+{name}:{private}");
    let args = [
        "fetch",
        "--quiet",
        "--refmap=",
        "--no-write-fetch-head",
        "--no-tags",
        "--no-auto-maintenance",
        "--",
        remote,
        &refspec,
    ];
    match git.remotely().run(&args).await {
        Ok(_) => {}
        Err(GitError::Failed { stderr, .. }) if stderr.contains("couldn't find remote ref") => {
            return Err(RemoteError::NoBranch { remote: remote.into(), branch: branch.into() });
        }
        Err(error) => return Err(RemoteError::read(remote, error)),
    }
    let commit = git.commit(&private).await?;
    reference::delete(git, &private).await?;
    Ok(commit)
}

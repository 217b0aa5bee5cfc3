//! How work gets onto its base: what lands is what was tested, byte for byte.

use crate::branch::{PushError, Pushed, push};
use crate::class::ErrorClass;
use crate::reference;
use rehearsal_git::{Git, GitError, Oid, parse_oid, split_nul};

/// What the base would be with the work on it: to be tested, then landed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The base's tip that it was built on.
    pub base: Oid,
    /// The work's newest commit.
    pub head: Oid,
    /// The commit that is to land: the work itself if it stands on the base, else a merge.
    pub commit: Oid,
    /// All files of it.
    pub tree: Oid,
    /// What holds the commit, if nothing else does.
    staging: Option<String>,
}

/// Why there is no candidate.
#[derive(Debug, thiserror::Error)]
pub enum CandidateError {
    /// The work does not fit the base.
    #[error("conflicts with the base in {}", files.join(", "))]
    Conflict {
        /// Where.
        files: Vec<String>,
    },
    /// git could not do it.
    #[error(transparent)]
    Git(#[from] GitError),
}

/// Why a candidate did not land.
#[derive(Debug, thiserror::Error)]
pub enum LandError {
    /// The base has moved since: a new candidate must be built and tested.
    #[error("the base `{branch}` has moved")]
    BaseMoved {
        /// Which.
        branch: String,
        /// Its tip now.
        found: Option<Oid>,
    },
    /// What was tested is not what would land.
    #[error("the tested tree {tested:.10} is not the tree {tree:.10} that would land")]
    OtherTree {
        /// What was tested.
        tested: Oid,
        /// What would land.
        tree: Oid,
    },
    /// It was not taken.
    #[error(transparent)]
    Push(PushError),
}

impl LandError {
    /// Whose it is.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::BaseMoved { .. } => ErrorClass::TRANSIENT,
            Self::OtherTree { .. } => ErrorClass::Task,
            Self::Push(error) => error.class(),
        }
    }
}

impl Candidate {
    /// Builds one, without a working tree. A merge is held by a reference of its own until it is discarded; the work
    /// itself is held by where it is.
    pub async fn build(git: &Git, base: &Oid, head: &Oid, message: &str) -> Result<Self, CandidateError> {
        let commit = merge_commit(git, base, head, message).await?;
        let tree = tree_of(git, &commit).await?;
        let staging = (commit != *head).then(|| reference::private("staging"));
        if let Some(staging) = &staging {
            reference::set(git, staging, &commit).await?;
        }
        Ok(Self { base: base.clone(), head: head.clone(), commit, tree, staging })
    }

    /// The same commit, to be landed on an earlier base: of a stack of candidates only the top has to land.
    pub fn landing_on(&self, base: &Oid) -> Self {
        Self { base: base.clone(), ..self.clone() }
    }

    /// Moves the remote's base to the candidate, if it is still where the candidate was built.
    pub async fn land(
        &self,
        git: &Git,
        remote: &str,
        branch: &str,
        tested: &Oid,
    ) -> Result<Pushed, LandError> {
        if *tested != self.tree {
            return Err(LandError::OtherTree { tested: tested.clone(), tree: self.tree.clone() });
        }
        push(git, remote, branch, &self.commit, &[Some(self.base.clone())]).await.map_err(|error| match error
        {
            PushError::Moved { branch, found, .. } => LandError::BaseMoved { branch, found },
            error => LandError::Push(error),
        })
    }

    /// Lets it go.
    pub async fn discard(self, git: &Git) -> Result<(), GitError> {
        match &self.staging {
            Some(staging) => reference::delete(git, staging).await,
            None => Ok(()),
        }
    }
}

/// The tree of a commit: all files, by one name.
pub async fn tree_of(git: &Git, commit: &Oid) -> Result<Oid, GitError> {
    git.oid(&["rev-parse", "--verify", "--quiet", &format!("{commit}^{{tree}}")]).await
}

/// Whether the work fits the base; where it does not, if not.
pub async fn check_fit(git: &Git, base: &Oid, head: &Oid) -> Result<(), CandidateError> {
    merged_tree(git, base, head).await.map(drop)
}

/// The tree of a merge of two commits.
async fn merged_tree(git: &Git, base: &Oid, head: &Oid) -> Result<Oid, CandidateError> {
    let args =
        ["merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", base.as_str(), head.as_str()];
    let merged = git.ask(&args).await?;
    let mut said = split_nul(&merged.stdout);
    let tree = said.next().unwrap_or_default();
    if !merged.yes {
        return Err(CandidateError::Conflict { files: said.collect() });
    }
    Ok(parse_oid(&tree, &args)?)
}

/// The work's own commit if the base is in it, else a new one with both as parents.
pub(crate) async fn merge_commit(
    git: &Git,
    base: &Oid,
    head: &Oid,
    message: &str,
) -> Result<Oid, CandidateError> {
    if git.is_ancestor(base, head).await? {
        return Ok(head.clone());
    }
    let tree = merged_tree(git, base, head).await?;
    let args = ["commit-tree", tree.as_str(), "-p", base.as_str(), "-p", head.as_str(), "-m", message];
    Ok(git.committing().await?.oid(&args).await?)
}

//! Pull requests, wherever they live.

use async_trait::async_trait;
use camino::Utf8PathBuf;
use std::time::Duration;

use crate::class::ErrorClass;
use rehearsal_git::{GitError, Oid};

/// Where pull requests live. Every change can be asked for again: what is already there is done.
#[async_trait]
pub trait Forge: Send + Sync {
    /// The pull request of a branch: an open one if there is, else the newest, closed or merged.
    async fn find_pr(&self, head: &str) -> Result<Option<PullRequest>, ForgeError>;

    /// Opens one, or takes over the open one that the branch has.
    async fn create_pr(&self, new: &NewPullRequest) -> Result<Opened, ForgeError>;

    /// How one stands.
    async fn view(&self, number: u64) -> Result<PullRequest, ForgeError>;

    /// What the checks say of a commit.
    async fn checks(&self, commit: &Oid) -> Result<Checks, ForgeError>;

    /// Says something on one, once for each key.
    async fn comment(&self, number: u64, comment: &Comment) -> Result<(), ForgeError>;

    /// Gives a verdict on one.
    async fn review(&self, number: u64, review: &Review) -> Result<(), ForgeError>;

    /// Merges one, if its newest commit is still the expected one.
    async fn merge(&self, number: u64, expected: &Oid) -> Result<Merged, ForgeError>;

    /// Closes one without merging it. One that is closed stays so.
    async fn close(&self, number: u64) -> Result<(), ForgeError>;
}

/// A pull request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullRequest {
    /// Its number.
    pub number: u64,
    /// Where to look at it.
    pub url: String,
    /// Its title.
    pub title: String,
    /// Its text.
    pub body: String,
    /// The branch that it brings.
    pub head: String,
    /// The newest commit of that branch, if the forge says.
    pub head_commit: Option<Oid>,
    /// The branch that it goes to.
    pub base: String,
    /// Where it stands.
    pub state: PrState,
    /// Whether it can be merged.
    pub mergeable: Mergeable,
}

/// Where a pull request stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PrState {
    /// It waits.
    Open,
    /// It was closed without a merge.
    Closed,
    /// It was merged.
    Merged {
        /// The commit of the base that has it, if the forge says.
        commit: Option<Oid>,
    },
}

/// Whether a pull request can be merged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mergeable {
    /// Nothing stands in the way.
    Clean,
    /// It does not fit its base.
    Conflicting,
    /// A rule of the forge stands in the way.
    Blocked {
        /// In the forge's words.
        why: String,
    },
    /// The forge does not know yet.
    Unknown,
}

/// A pull request to be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPullRequest {
    /// Its title.
    pub title: String,
    /// Its text.
    pub body: String,
    /// The branch that it brings; the forge must have it.
    pub head: String,
    /// The branch that it goes to.
    pub base: String,
}

/// A pull request that is open now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    /// It.
    pub pull_request: PullRequest,
    /// Whether it was there before.
    pub adopted: bool,
}

/// What the checks say of a commit. None at all, and none that can be read, are not a pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Checks {
    /// There are none yet.
    None,
    /// There never are any: nobody checks there.
    Never,
    /// Some are not finished.
    Pending {
        /// Which.
        names: Vec<String>,
    },
    /// Some failed.
    Failed {
        /// Which.
        names: Vec<String>,
    },
    /// All passed.
    Passed {
        /// How many.
        count: usize,
    },
    /// They could not be read.
    Unfetchable {
        /// Why.
        reason: String,
    },
}

/// Something to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comment {
    /// Tells this comment from others, so that it is made once.
    pub key: String,
    /// The text.
    pub body: String,
}

impl Comment {
    /// The text with its key in a place where nobody sees it.
    pub(crate) fn marked(&self) -> String {
        format!("{}\n\n{}", self.body, self.mark())
    }

    pub(crate) fn mark(&self) -> String {
        let key: String =
            self.key.chars().filter(|c| c.is_ascii_alphanumeric() || "-_./:".contains(*c)).collect();
        format!("<!-- rehearsal:{} -->", key.replace("--", "-"))
    }
}

/// A verdict with its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Review {
    /// The verdict.
    pub verdict: ReviewVerdict,
    /// The reason.
    pub body: String,
}

/// A reviewer's verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReviewVerdict {
    /// It may be merged.
    Approve,
    /// It may not, as it is.
    RequestChanges,
    /// Neither.
    Comment,
}

/// A pull request that is merged now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged {
    /// The commit of the base that has it, if the forge says.
    pub commit: Option<Oid>,
    /// Whether it was merged before.
    pub already: bool,
}

/// Why a forge did not do it.
#[derive(Debug, thiserror::Error)]
pub enum ForgeError {
    /// It has no such thing.
    #[error("there is no {what}")]
    NotFound {
        /// What.
        what: String,
    },
    /// The branch is not where it was when it was looked at.
    #[error("pull request {number} has another head than {expected:.10}")]
    HeadMoved {
        /// Which.
        number: u64,
        /// What was expected.
        expected: Oid,
        /// What is there, if known.
        found: Option<Oid>,
    },
    /// The base moved in between: look again.
    #[error("the base of pull request {number} has moved")]
    BaseMoved {
        /// Which.
        number: u64,
    },
    /// It cannot be merged as it is.
    #[error("pull request {number} cannot be merged: {reason}")]
    NotMergeable {
        /// Which.
        number: u64,
        /// Why.
        reason: String,
    },
    /// The forge says that the request makes no sense.
    #[error("the forge refused to {action}: {said}")]
    Refused {
        /// What was asked.
        action: String,
        /// In its words.
        said: String,
    },
    /// Too much was asked of it.
    #[error("the forge wants a pause: {said}")]
    RateLimited {
        /// For how long, if it said.
        retry_after: Option<Duration>,
        /// In its words.
        said: String,
    },
    /// It cannot answer now.
    #[error("the forge cannot answer: {said}")]
    Unavailable {
        /// What was heard.
        said: String,
    },
    /// It does not know us, or does not let us.
    #[error("the forge does not let us in: {said}")]
    Unauthorized {
        /// In its words.
        said: String,
    },
    /// The program that talks to it is not there.
    #[error("`{program}` was not found")]
    Missing {
        /// Which.
        program: Utf8PathBuf,
    },
    /// Nobody can know whether it took effect.
    #[error("nobody knows whether the forge did {action}: {said}")]
    Unclear {
        /// What was asked.
        action: String,
        /// What was heard.
        said: String,
    },
    /// It said something that we do not understand.
    #[error("the forge's answer to {action} was not understood: {reason}")]
    Garbled {
        /// What was asked.
        action: String,
        /// What is wrong with the answer.
        reason: String,
    },
    /// git could not do it.
    #[error(transparent)]
    Git(#[from] GitError),
}

impl ForgeError {
    /// Whose it is.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::NotFound { .. }
            | Self::HeadMoved { .. }
            | Self::NotMergeable { .. }
            | Self::Refused { .. } => ErrorClass::Task,
            Self::RateLimited { retry_after, .. } => ErrorClass::Transient { retry_after: *retry_after },
            Self::Unavailable { .. }
            | Self::BaseMoved { .. }
            | Self::Git(GitError::TimedOut { .. } | GitError::LockHeld { .. }) => ErrorClass::TRANSIENT,
            Self::Unauthorized { .. } | Self::Missing { .. } | Self::Git(_) => ErrorClass::Systemic,
            Self::Unclear { .. } | Self::Garbled { .. } => ErrorClass::Unknown,
        }
    }
}

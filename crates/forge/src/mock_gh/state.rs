//! What the stand-in remembers from one call to the next.

use std::io::Write;
use std::time::{Duration, Instant};

use camino::Utf8PathBuf;
use serde::{Deserialize, Serialize};

use super::{MockGhEnv, MockGhError};
use crate::lock::FileLock;
use crate::policy::{LOCK_PAUSE, REPOSITORY_LOCK_LIMIT};

/// The content of `GH_STATE_FILE`. A test may write one to begin with.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MockState {
    /// The repository behind `origin`; git is asked for it otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<Utf8PathBuf>,
    /// All pull requests.
    pub pull_requests: Vec<MockPullRequest>,
    /// What the checks say, one answer after another; the last one stays.
    pub checks: Vec<MockChecks>,
    /// How often they were asked.
    pub checks_asked: usize,
    /// What goes wrong, each in its turn.
    pub faults: Vec<Fault>,
}

/// A pull request.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MockPullRequest {
    /// Its number.
    pub number: u64,
    /// Its title.
    pub title: String,
    /// Its text.
    pub body: String,
    /// The branch that it brings.
    pub head: String,
    /// That branch's newest commit, when it was last seen.
    pub head_commit: String,
    /// The branch that it goes to.
    pub base: String,
    /// Where it stands.
    pub state: PullRequestState,
    /// The commit that has it.
    pub merge_commit: Option<String>,
    /// What was said on it.
    pub comments: Vec<MockRemark>,
    /// Verdicts on it.
    pub reviews: Vec<MockRemark>,
}

/// Where a pull request stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum PullRequestState {
    /// It waits.
    #[default]
    Open,
    /// It was closed without a merge.
    Closed,
    /// It was merged.
    Merged,
}

/// A comment or a review.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MockRemark {
    /// A review's verdict; empty for a comment.
    pub state: String,
    /// The text.
    pub body: String,
}

/// What the checks of a commit say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MockChecks {
    /// There are none.
    None,
    /// They run.
    Pending,
    /// One failed.
    Red,
    /// All passed.
    Green,
    /// GitHub does not answer.
    Unreadable,
}

/// Something that goes wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// In which call: `pr merge`, `api`.
    pub on: String,
    /// What.
    pub kind: FaultKind,
    /// Seconds that a rate limit asks to wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u32>,
    /// How often it is still to happen.
    #[serde(default = "once")]
    pub times: u32,
}

fn once() -> u32 {
    1
}

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// The server fails, and nothing happened.
    ServerErrorBefore,
    /// The server fails after it did what was asked.
    ServerErrorAfter,
    /// Too much was asked.
    RateLimit,
    /// The login does not hold.
    Unauthorized,
    /// What was just made is not visible yet.
    NotFound,
    /// The head has changed.
    HeadChanged,
}

/// How `gh` tells of a server that fails.
pub(super) const SERVER_ERROR: &str = "HTTP 502: Bad Gateway (https://api.github.com/graphql)";

impl Fault {
    /// As `gh` says it.
    pub(super) fn words(&self) -> String {
        match self.kind {
            FaultKind::ServerErrorBefore | FaultKind::ServerErrorAfter => SERVER_ERROR.into(),
            FaultKind::RateLimit => {
                let wait =
                    self.retry_after.map(|seconds| format!(" (retry after {seconds}s)")).unwrap_or_default();
                format!("HTTP 429: You have exceeded a secondary rate limit{wait}")
            }
            FaultKind::Unauthorized => "HTTP 401: Bad credentials (https://api.github.com/graphql)".into(),
            FaultKind::NotFound => "gh: Not Found (HTTP 404)".into(),
            FaultKind::HeadChanged => {
                "HTTP 409: Head branch was modified. Review and try the merge again.".into()
            }
        }
    }
}

impl MockState {
    /// The fault of this call, which is one less then.
    pub(super) fn next_fault(&mut self, verb: &str) -> Option<Fault> {
        let fault = self.faults.iter_mut().find(|fault| fault.on == verb && fault.times > 0)?;
        fault.times -= 1;
        Some(fault.clone())
    }

    /// What the checks say this time.
    pub(super) fn next_checks(&mut self, env: &MockGhEnv) -> Result<MockChecks, MockGhError> {
        let told = match env.var("GH_MOCK_CHECKS") {
            Some(list) => list.split(',').map(named).collect::<Result<Vec<_>, _>>()?,
            None => self.checks.clone(),
        };
        let now = told.get(self.checks_asked).or(told.last()).copied();
        self.checks_asked += 1;
        Ok(now.unwrap_or(MockChecks::None))
    }
}

fn named(name: &str) -> Result<MockChecks, MockGhError> {
    match name.trim() {
        "none" => Ok(MockChecks::None),
        "pending" => Ok(MockChecks::Pending),
        "red" => Ok(MockChecks::Red),
        "green" => Ok(MockChecks::Green),
        "unreadable" => Ok(MockChecks::Unreadable),
        other => Err(MockGhError::Usage(format!(
            "`GH_MOCK_CHECKS` has `{other}`: expected none, pending, red, green or unreadable"
        ))),
    }
}

/// Whether what happens lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kept {
    Yes,
    No,
}

/// The state, locked for one call.
#[derive(Debug)]
pub(super) struct Memory {
    pub(super) state: MockState,
    file: Option<(Utf8PathBuf, FileLock)>,
}

impl Memory {
    pub(super) fn open(env: &MockGhEnv) -> Result<Self, MockGhError> {
        let Some(path) = env.var("GH_STATE_FILE") else {
            return Ok(Self { state: MockState::default(), file: None });
        };
        let path = env.dir.join(path);
        let cannot = |reason: String| MockGhError::File { path: path.clone(), reason };
        let lock = lock(&path).map_err(|error| cannot(error.to_string()))?;
        let lock = lock.ok_or_else(|| cannot("another call does not come to an end".into()))?;
        let state = match fs_err::read(&path) {
            Ok(text) if text.is_empty() => MockState::default(),
            Ok(text) => serde_json::from_slice(&text).map_err(|error| cannot(error.to_string()))?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => MockState::default(),
            Err(error) => return Err(cannot(error.to_string())),
        };
        Ok(Self { state, file: Some((path, lock)) })
    }

    pub(super) fn is_kept(&self) -> bool {
        self.file.is_some()
    }

    pub(super) fn kept(&self) -> Kept {
        if self.is_kept() { Kept::Yes } else { Kept::No }
    }

    /// Written whole or not at all.
    pub(super) fn save(&self) -> Result<(), MockGhError> {
        let Some((path, _)) = &self.file else { return Ok(()) };
        let cannot = |reason: String| MockGhError::File { path: path.clone(), reason };
        let text = serde_json::to_string_pretty(&self.state).map_err(|error| cannot(error.to_string()))?;
        let new = path.with_extension("new");
        let written = fs_err::File::create(&new).and_then(|mut file| file.write_all(text.as_bytes()));
        written.and_then(|()| fs_err::rename(&new, path)).map_err(|error| cannot(error.to_string()))
    }
}

fn lock(path: &Utf8PathBuf) -> std::io::Result<Option<FileLock>> {
    let (lock, begun): (_, Instant) = (Utf8PathBuf::from(format!("{path}.lock")), Instant::now());
    let limit: Duration = REPOSITORY_LOCK_LIMIT;
    loop {
        if let Some(lock) = FileLock::try_take(&lock)? {
            return Ok(Some(lock));
        }
        if begun.elapsed() > limit {
            return Ok(None);
        }
        std::thread::sleep(LOCK_PAUSE);
    }
}

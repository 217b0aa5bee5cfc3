//! Why the stand-in cannot do as it was told.

use std::io;

use camino::Utf8PathBuf;
use rehearsal_core::Place;

/// What the stand-in was told is wrong, or cannot be done here.
const MISTOLD: i32 = 2;
/// It was asked something else, or more, than it was told.
const UNEXPECTED: i32 = 3;

#[derive(Debug, thiserror::Error)]
pub(super) enum MockError {
    #[error("{path}{}: {message}", place.map(|place| format!(":{place}")).unwrap_or_default())]
    Script { path: Utf8PathBuf, place: Option<Place>, message: String },
    #[error(
        "{path} has {runs} runs, and this is call {call} (counted in {state}): it was asked for more than it was told"
    )]
    PastEnd { path: Utf8PathBuf, state: Utf8PathBuf, runs: usize, call: u64 },
    #[error("{path} does not hold the number of calls, but `{text}`")]
    State { path: Utf8PathBuf, text: String },
    #[error("the prompt does not contain {expected:?}; the nearest part of it is\n{nearest}")]
    Prompt { expected: String, nearest: String },
    #[error("`{path}` does not contain {find:?}; the nearest part of it is\n{nearest}")]
    Patch { path: Utf8PathBuf, find: String, nearest: String },
    #[error("`{path}` is outside the worktree; `write_outside` is for that")]
    Outside { path: Utf8PathBuf },
    #[error("`{command}` ended with {status} instead of exit status {expected}:\n{output}")]
    Status { command: String, status: String, expected: i32, output: String },
    #[error(transparent)]
    Git(#[from] rehearsal_git::GitError),
    #[error("`{name}` is not set")]
    Variable { name: &'static str },
    #[error("`{name}` is `{value}`: expected {expected}")]
    Value { name: &'static str, value: String, expected: &'static str },
    #[error("{agent} has no such end as `{kind}`")]
    NoSuchEnd { agent: &'static str, kind: &'static str },
    #[error("cannot {what}: {source}")]
    Io { what: String, source: io::Error },
}

impl MockError {
    pub(super) fn output(source: io::Error) -> Self {
        Self::Io { what: "write its output".into(), source }
    }

    /// For errors of `fs_err`, which name the path themselves.
    pub(super) fn file(source: io::Error) -> Self {
        Self::Io { what: "do as it was told".into(), source }
    }

    pub(super) fn exit_status(&self) -> i32 {
        match self {
            Self::PastEnd { .. } | Self::Prompt { .. } => UNEXPECTED,
            _ => MISTOLD,
        }
    }
}

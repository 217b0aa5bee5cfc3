//! What can go wrong. Hints for people are made at the command line, from what these carry.

use std::path::PathBuf;

use rehearsal_core::transition::Refusal;
use rehearsal_core::{RunId, SessionName, TaskId};

use crate::policy::BUSY_TIMEOUT;

/// Why nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// The rules of tasks do not allow it.
    #[error("{refusal}")]
    Refused {
        /// Which of the changes, counted from 0.
        index: usize,
        /// Why.
        refusal: Refusal,
    },
    /// The name is in use.
    #[error("session `{name}` already exists")]
    SessionExists {
        /// The name.
        name: SessionName,
    },
    /// There is no such session.
    #[error("unknown session `{name}`")]
    UnknownSession {
        /// The name.
        name: SessionName,
        /// The name that may have been meant.
        near: Option<String>,
    },
    /// There is no such task.
    #[error("unknown task `{id}`")]
    UnknownTask {
        /// The id.
        id: TaskId,
    },
    /// There is no such run.
    #[error("unknown run `{id}`")]
    UnknownRun {
        /// The id.
        id: RunId,
    },
    /// A run ends once.
    #[error("run `{run}` has already ended")]
    RunEnded {
        /// The run.
        run: RunId,
    },
    /// A task depends on one that is not there.
    #[error("task `{task}` depends on `{depends_on}`, which does not exist")]
    UnknownDependency {
        /// The task.
        task: TaskId,
        /// The one that is not there.
        depends_on: TaskId,
    },
    /// Tasks would wait for each other for ever.
    #[error("these tasks would wait for each other: {}", path.iter().map(|id| format!("`{id}`")).collect::<Vec<_>>().join(" -> "))]
    DependencyCycle {
        /// The way around: each depends on the next, and the last is the first again.
        path: Vec<TaskId>,
    },
    /// The id is in use; draw another one.
    #[error("id `{id}` is already taken")]
    IdTaken {
        /// The id.
        id: String,
    },
    /// A text is longer than anyone would write.
    #[error("{what} is too long: {length} characters, at most {limit} are allowed")]
    TooLong {
        /// Which text.
        what: &'static str,
        /// Its length.
        length: usize,
        /// The limit.
        limit: usize,
    },
    /// A list is longer than anyone would write.
    #[error("too many {what}: {count}, at most {limit} are allowed")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many.
        count: usize,
        /// The limit.
        limit: usize,
    },
    /// Not a sum of money.
    #[error("a budget must be a number, and not negative: {usd}")]
    BadBudget {
        /// What was given.
        usd: f64,
    },
    /// The database does not work.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why something was not found.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// There is nothing like it.
    #[error("there is no {what} `{text}`")]
    NotFound {
        /// A task, a run, a session.
        what: &'static str,
        /// What was looked for.
        text: String,
        /// What may have been meant.
        near: Option<String>,
    },
    /// There is more than one.
    #[error("`{prefix}` could be any of these {what}s: {}", candidates.join(", "))]
    Ambiguous {
        /// A task, a run.
        what: &'static str,
        /// What was looked for.
        prefix: String,
        /// Some of the ids that begin with it.
        candidates: Vec<String>,
    },
    /// The database does not work.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why the database does not work.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Someone else writes and does not stop.
    #[error("the database is busy: another process has been writing to it for {} s", BUSY_TIMEOUT.as_secs())]
    Busy,
    /// No room. Nothing was written, nothing is broken.
    #[error("there is no space left to write the database")]
    DiskFull,
    /// What is in it cannot be true.
    #[error("the database is damaged: {what}")]
    Corrupt {
        /// What was found.
        what: String,
    },
    /// Anything else.
    #[error("the database does not work")]
    Other(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Why a database cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The directory cannot be made or read.
    #[error("cannot use the directory `{}`", path.display())]
    Directory {
        /// Which.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: std::io::Error,
    },
    /// Locks do not work there, so two processes would damage the database.
    #[error("`{}` is on a network file system ({kind}), where the database is not safe", path.display())]
    NetworkFileSystem {
        /// Where.
        path: PathBuf,
        /// Which kind.
        kind: String,
    },
    /// The file is something else.
    #[error("`{}` is not a database of this program", path.display())]
    NotOurs {
        /// Which file.
        path: PathBuf,
    },
    /// A newer version of this program made it.
    #[error("`{}` was made by a newer version of this program (schema {found}, this one knows {known})", path.display())]
    Newer {
        /// Which file.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The newest version that is known here.
        known: i64,
    },
    /// The database does not work.
    #[error(transparent)]
    Store(#[from] StoreError),
}

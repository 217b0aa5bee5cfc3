//! What can go wrong. Hints for people are made at the command line, from what these carry.

use std::path::PathBuf;

use rehearsal_core::transition::Refusal;
use rehearsal_core::{RunId, SessionName, TaskId};

use crate::policy::{BUSY_TIMEOUT, STATEMENT_TIMEOUT};
use crate::{postgres, sqlite};

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
    /// The connection was lost in the moment of the commit, and the server could not be asked since: all of it was
    /// written, or nothing. It must not be written again before someone has looked.
    #[error("the connection to the database was lost in the moment of writing: it may be written, or not")]
    OutcomeUnknown,
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
    /// It may be read at most. Nothing was written.
    #[error("the database cannot be written: it is read-only here")]
    ReadOnly,
    /// Others change the same, again and again. Nothing was written.
    #[error("the database is busy: others keep changing the same")]
    Contended,
    /// The server is not there, or the way to it is cut. Nothing was written.
    #[error("the database cannot be reached: {what}")]
    Unreachable {
        /// What was met on the way.
        what: String,
    },
    /// The server is there and does not answer. Nothing was written.
    #[error("the database did not answer for {} s", STATEMENT_TIMEOUT.as_secs())]
    Unanswered,
    /// The server does not let us in, or not do what we have to.
    #[error("the database refuses us: {what}")]
    Denied {
        /// What it says.
        what: String,
    },
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
    /// No server can be found by that.
    #[error("this is no address of a PostgreSQL server: {why}")]
    Address {
        /// Why not. Never the address itself, which may hold a password.
        why: String,
    },
    /// It is something else.
    #[error("`{place}` is not a database of this program")]
    NotOurs {
        /// Which file or server.
        place: String,
    },
    /// A newer version of this program made it.
    #[error("`{place}` was made by a newer version of this program (schema {found}, this one knows {known})")]
    Newer {
        /// Which file or server.
        place: String,
        /// Its version.
        found: i64,
        /// The newest version that is known here.
        known: i64,
    },
    /// The database does not work.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl StoreError {
    /// Whether it passes by itself: nothing was done, and the same can be asked again.
    pub const fn passes(&self) -> bool {
        match self {
            Self::Busy | Self::Contended | Self::Unreachable { .. } | Self::Unanswered => true,
            Self::DiskFull | Self::ReadOnly | Self::Denied { .. } | Self::Corrupt { .. } | Self::Other(_) => {
                false
            }
        }
    }
}

impl OpenError {
    /// Whether it can be opened later as it is.
    pub const fn passes(&self) -> bool {
        matches!(self, Self::Store(error) if error.passes())
    }
}

impl CommitError {
    /// Whether nothing was written for a reason that passes by itself.
    pub const fn passes(&self) -> bool {
        matches!(self, Self::Store(error) if error.passes())
    }
}

impl FindError {
    /// Whether it was not looked for, for a reason that passes by itself.
    pub const fn passes(&self) -> bool {
        matches!(self, Self::Store(error) if error.passes())
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        let known = match &error {
            sqlx::Error::Database(database) => {
                let of_sqlite = database.try_downcast_ref().and_then(sqlite::meaning);
                of_sqlite.or_else(|| database.try_downcast_ref().and_then(postgres::meaning))
            }
            sqlx::Error::PoolTimedOut => Some(Self::Busy),
            sqlx::Error::Io(_) | sqlx::Error::Tls(_) | sqlx::Error::Protocol(_) => {
                Some(Self::Unreachable { what: error.to_string() })
            }
            _ => None,
        };
        known.unwrap_or_else(|| Self::Other(Box::new(error)))
    }
}

impl From<sqlx::Error> for FindError {
    fn from(error: sqlx::Error) -> Self {
        Self::Store(error.into())
    }
}

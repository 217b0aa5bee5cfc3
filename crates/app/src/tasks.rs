//! Tasks: adding, changing, deciding, listing.

mod add;
mod change;
mod import;
mod list;
#[cfg(test)]
mod tests;

use rehearsal_core::Task;
use rehearsal_store::Committed;
use serde::Serialize;

use crate::caller::ReportError;
use crate::project::ProjectError;
use crate::sessions::SessionError;

pub use add::{TaskRequest, add};
pub use change::{Changed, EditRequest, Noted, approve, block, cancel, edit, finish, reject, retry, unblock};
pub use import::{ImportDocument, ImportRequest, import};
pub use list::{FlowNow, TaskDetails, TaskFilter, TaskList, list, show};

/// A task as an answer: what commands that change one print with `--json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TaskDocument {
    /// The task as it is now.
    pub task: Task,
    /// The word that listings show.
    pub status: String,
    /// Whether the change was only reported, because an agent asked for it.
    pub reported: bool,
}

/// What an agent reported of a task that cannot be looked at from inside its run.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TaskReport {
    /// As it was given.
    pub id: String,
    /// That it was reported.
    pub reported: bool,
}

impl TaskDocument {
    fn new(task: Task) -> Self {
        Self { status: task.status().to_owned(), task, reported: false }
    }
}

/// Why a task cannot be added, changed or found.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// A rejection without a comment would leave the next run without a reason.
    #[error("a rejection needs a comment: it is all that the next run is told")]
    NoComment,
    /// No task has ever this status or state.
    #[error("unknown {what} `{word}`")]
    UnknownWord {
        /// `status` or `state`.
        what: &'static str,
        /// As it was given.
        word: String,
        /// One that there is, with a similar name.
        near: Option<String>,
        /// All that there are.
        known: Vec<String>,
    },
    /// Two imported tasks have the same key.
    #[error("the key `{key}` is used twice")]
    KeyUsedTwice {
        /// The key.
        key: String,
    },
    /// All tasks of the text are done, or it has none.
    #[error("`{file}` has no open tasks")]
    NothingToImport {
        /// Where they were looked for.
        file: String,
    },
    /// The store did not return what it wrote.
    #[error("the store gave no task back")]
    NoTask,
    /// No session can be chosen.
    #[error(transparent)]
    Session(SessionError),
    /// An agent's report could not be written.
    #[error(transparent)]
    Report(ReportError),
    /// The project cannot be used.
    #[error(transparent)]
    Project(ProjectError),
}

impl From<SessionError> for TaskError {
    fn from(error: SessionError) -> Self {
        Self::Session(error)
    }
}

impl From<ReportError> for TaskError {
    fn from(error: ReportError) -> Self {
        Self::Report(error)
    }
}

impl<E: Into<ProjectError>> From<E> for TaskError {
    fn from(error: E) -> Self {
        Self::Project(error.into())
    }
}

fn only_task(committed: Vec<Committed>) -> Result<Task, TaskError> {
    committed.into_iter().find_map(Committed::task).ok_or(TaskError::NoTask)
}

//! Tasks: adding, changing, deciding, listing.

mod add;
mod change;
mod history;
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
pub(crate) use history::last_decision;
pub use history::{Decided, Decision, TaskHistory, history};
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

/// Tasks as an answer: what a command that changes several prints with `--json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TaskDocuments {
    /// In the order in which they were named.
    pub tasks: Vec<TaskDocument>,
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
#[expect(missing_docs, reason = "the words of `Display` say what each is")]
pub enum TaskError {
    #[error("a rejection needs a comment: it is all that the next run is told")]
    NoComment,
    #[error("the answer is empty")]
    NoAnswer,
    #[error("unknown {what} `{word}`")]
    UnknownWord { what: &'static str, word: String, near: Option<String>, known: Vec<String> },
    #[error("the key `{key}` is used twice")]
    KeyUsedTwice { key: String },
    #[error("`{file}` has no open tasks")]
    NothingToImport { file: String },
    #[error("the store gave no task back")]
    NoTask,
    #[error(transparent)]
    Session(#[from] SessionError),
    #[error(transparent)]
    Report(#[from] ReportError),
    #[error(transparent)]
    Project(ProjectError),
}

impl<E: Into<ProjectError>> From<E> for TaskError {
    fn from(error: E) -> Self {
        Self::Project(error.into())
    }
}

fn only_task(committed: Vec<Committed>) -> Result<Task, TaskError> {
    committed.into_iter().find_map(Committed::task).ok_or(TaskError::NoTask)
}

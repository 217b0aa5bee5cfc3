//! What can be asked, and the answers that are not in `core` already.

use std::collections::BTreeMap;

use rehearsal_core::{RunId, Session, SessionName, StateName, TaskId, TestResult, TestRun, Tokens};

/// Which tasks to list. Listed by priority, then age, then order of arrival.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TaskQuery {
    /// Of this session; none: of all, and of no session.
    pub session: Option<SessionName>,
    /// With such a status.
    pub status: StatusFilter,
    /// In this state of their flow, whether worked on or not.
    pub state: Option<StateName>,
    /// With this label.
    pub label: Option<String>,
    /// With this text in the title or the body; `a` also finds `A`.
    pub text: Option<String>,
    /// The ones that follow this task in the same order.
    pub after: Option<TaskId>,
    /// At most so many; none: all.
    pub limit: Option<u32>,
}

/// Which statuses to list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum StatusFilter {
    /// Any.
    #[default]
    All,
    /// Not over.
    Open,
    /// Over, well or not.
    Ended,
    /// One of these words, as [`Task::status`](rehearsal_core::Task::status) says them, or `ready` or `claimed`.
    Words(Vec<String>),
}

/// How many tasks there are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counts {
    /// By the word that listings show.
    pub by_status: BTreeMap<String, u64>,
    /// Not over.
    pub open: u64,
    /// Ended well.
    pub done: u64,
    /// All of them.
    pub total: u64,
}

/// A session and how its tasks stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionSummary {
    /// The session.
    pub session: Session,
    /// Its tasks.
    pub counts: Counts,
}

/// Whose runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Scope {
    /// Everyone's.
    #[default]
    All,
    /// A session's.
    Session(SessionName),
    /// A task's.
    Task(TaskId),
}

/// Which runs to list, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunQuery {
    /// Whose.
    pub scope: Scope,
    /// At most so many; none: all.
    pub limit: Option<u32>,
}

/// Which events to read, in the order of the log. All that is named must fit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EventQuery {
    /// The ones after this place in the log; 0: from the beginning.
    pub after: i64,
    /// About this task.
    pub task: Option<TaskId>,
    /// About this session, its tasks and their runs.
    pub session: Option<SessionName>,
    /// About this run, or made by it.
    pub run: Option<RunId>,
    /// At most so many; none: all.
    pub limit: Option<u32>,
}

/// What runs cost, as far as their agents told.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Cost {
    /// Runs that are over.
    pub runs: u64,
    /// US dollars, of those that told.
    pub usd: f64,
    /// Runs that did not tell what they cost: the sum is at least what it says.
    pub without_usd: u64,
    /// Tokens, of those that told.
    pub tokens: Tokens,
    /// Runs that did not tell their tokens.
    pub without_tokens: u64,
    /// Turns, of those that told.
    pub turns: u64,
}

/// Which runs of the repository's tests to read. Newest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TestQuery {
    /// Of the project in this directory.
    pub root: Option<String>,
    /// By this runner.
    pub framework: Option<String>,
    /// Of this very tree.
    pub tree: Option<String>,
    /// At most so many; none: all that are remembered.
    pub limit: Option<u32>,
}

/// A run of the tests, and its tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tested {
    /// What it came to.
    pub run: TestRun,
    /// Its tests.
    pub results: Vec<TestResult>,
}

//! What can be written, and what comes of it.

use std::sync::Arc;

use rehearsal_core::flow::Flow;
use rehearsal_core::transition::TaskInput;
use rehearsal_core::{
    Hold, Lane, NewSession, NewTask, ProgressEntry, Run, RunEnd, RunId, RunStart, Session, SessionEdit,
    SessionName, Task, TaskId, TestResult, TestRun,
};

use crate::claim::{ClaimRequest, Claimed};

/// One change. Each leaves its event in the log ([`Change::AddTasks`]: one for each task).
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// Makes a session.
    AddSession(NewSession),
    /// Changes a session.
    EditSession {
        /// Which.
        name: SessionName,
        /// How.
        edit: SessionEdit,
    },
    /// Writes a line to a session's journal.
    AddProgress {
        /// Which session.
        session: SessionName,
        /// The run that says it; none: a person.
        run: Option<RunId>,
        /// What it says.
        text: String,
    },
    /// Adds a task at the start of a flow. Its dependencies must be there already.
    AddTask {
        /// The task.
        task: Box<NewTask>,
        /// Its id, drawn by the caller.
        id: TaskId,
        /// The flow; the task stays with this version of it.
        flow: Arc<Flow>,
    },
    /// Adds many tasks, which may depend on each other in any order. Made for a hundred thousand of them.
    AddTasks {
        /// The tasks and their ids, in the order in which they are to be worked on.
        tasks: Vec<(TaskId, NewTask)>,
        /// The flow of all of them.
        flow: Arc<Flow>,
    },
    /// Moves a task through [`transition`](rehearsal_core::transition::transition).
    ChangeTask {
        /// Which.
        id: TaskId,
        /// What happens to it.
        input: TaskInput,
    },
    /// Takes the next task that may be worked on, under a lease; of a worker that let its lease run out, if need be.
    /// None is no error: there is nothing to do now.
    ClaimNext(Box<ClaimRequest>),
    /// Holds a lane: nothing more of it is claimed. What holds it already is replaced.
    HoldLane {
        /// Which.
        lane: Lane,
        /// Why, and until when.
        hold: Hold,
    },
    /// Lets a lane go on. One that nothing holds is no error.
    FreeLane {
        /// Which.
        lane: Lane,
    },
    /// Begins a run. The task must be claimed by this very run, with this very fence: claim it before, in the
    /// same commit.
    StartRun(RunStart),
    /// Ends a run. What that means for its task is a [`Change::ChangeTask`] of its own.
    EndRun {
        /// Which.
        run: RunId,
        /// How.
        end: Box<RunEnd>,
    },
    /// Remembers a run of the repository's tests. What is older than history has room for is forgotten.
    AddTestRun {
        /// What it came to.
        run: Box<TestRun>,
        /// Its tests.
        results: Vec<TestResult>,
    },
}

/// What came of a change.
#[derive(Debug, Clone, PartialEq)]
pub enum Committed {
    /// The session as it is now.
    Session(Session),
    /// The line as it was written.
    Progress(ProgressEntry),
    /// The task as it is now.
    Task(Box<Task>),
    /// The tasks that were added, in the order given.
    Tasks(Vec<Task>),
    /// The run as it is now.
    Run(Box<Run>),
    /// The task that was claimed, if there was one.
    Claimed(Option<Box<Claimed>>),
    /// A lane is held, or goes on.
    Lane,
    /// A run of the tests was remembered.
    TestRun,
}

impl Committed {
    /// The task, if the change was one of a task.
    pub fn task(self) -> Option<Task> {
        match self {
            Self::Task(task) => Some(*task),
            Self::Claimed(claimed) => claimed.map(|claimed| claimed.task),
            Self::Session(_)
            | Self::Progress(_)
            | Self::Tasks(_)
            | Self::Run(_)
            | Self::Lane
            | Self::TestRun => None,
        }
    }
}

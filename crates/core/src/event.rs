//! The one log. Every change of state is one of these, written in the transaction that makes the change.

use serde::{Deserialize, Serialize};

use crate::transition::TaskInput;
use crate::{
    Hold, Lane, NewSession, RunEnd, RunId, RunStart, SessionEdit, SessionName, StateName, Task, TaskId,
    TestRun, Timestamp, WorkerId,
};

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Event {
    /// Its place in the log.
    pub seq: i64,
    /// When it happened.
    pub at: Timestamp,
    /// Who did it.
    pub actor: Actor,
    /// What happened.
    pub kind: EventKind,
}

/// Who made something happen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Actor {
    /// Someone at a command line.
    User,
    /// A process that works through tasks.
    Worker(WorkerId),
    /// An agent, through the report of its run.
    Run(RunId),
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum EventKind {
    /// A session was made.
    SessionAdded {
        /// Which.
        session: NewSession,
    },
    /// A session was changed.
    SessionEdited {
        /// Which.
        session: SessionName,
        /// How.
        edit: SessionEdit,
    },
    /// A line was written to a session's journal.
    ProgressAdded {
        /// Which session.
        session: SessionName,
        /// What it says.
        text: String,
    },
    /// A task was added.
    TaskAdded {
        /// As it began.
        task: Box<Task>,
    },
    /// A task changed, through the transition function.
    TaskChanged {
        /// Which.
        task: TaskId,
        /// What was put into the function: replaying these gives the task again.
        input: TaskInput,
        /// The state before.
        from: StateName,
        /// The state after.
        to: StateName,
    },
    /// A run began.
    RunStarted {
        /// How.
        run: RunStart,
    },
    /// A run ended.
    RunEnded {
        /// Which.
        run: RunId,
        /// How.
        end: Box<RunEnd>,
    },
    /// A lane was held.
    LaneHeld {
        /// Which.
        lane: Lane,
        /// Why, and until when.
        hold: Hold,
    },
    /// A lane goes on.
    LaneFreed {
        /// Which.
        lane: Lane,
    },
    /// The repository's tests ran.
    TestsRan {
        /// Which run, and what it came to.
        run: Box<TestRun>,
    },
}

impl EventKind {
    /// The word for it, as the log is filtered by.
    pub fn name(&self) -> &'static str {
        match self {
            Self::SessionAdded { .. } => "session_added",
            Self::SessionEdited { .. } => "session_edited",
            Self::ProgressAdded { .. } => "progress_added",
            Self::TaskAdded { .. } => "task_added",
            Self::TaskChanged { .. } => "task_changed",
            Self::RunStarted { .. } => "run_started",
            Self::RunEnded { .. } => "run_ended",
            Self::LaneHeld { .. } => "lane_held",
            Self::LaneFreed { .. } => "lane_freed",
            Self::TestsRan { .. } => "tests_ran",
        }
    }
}

//! The moments at which a worker can die without anything being lost: before and after everything that lasts.
//! In production nobody listens; a rehearsal and the crash tests do.

use async_trait::async_trait;
use rehearsal_core::TaskId;
use serde::{Deserialize, Serialize};

/// A moment in the work on a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Moment {
    /// The claim is in the store, and nothing else was done.
    Claimed,
    /// The worktree is ready.
    Prepared,
    /// The run is in the store, and the agent was not started.
    RunStarted,
    /// The agent is done, and its report is kept in its directory.
    ReportKept,
    /// The run's end is in the store.
    RunEnded,
    /// A step is about to look whether it is already done.
    StepBegun,
    /// A step has done what it does, and the store does not know.
    StepActed,
    /// The store knows that a step is done.
    StepDone,
    /// The task's way is over, and its worktree is still there.
    Ended,
}

impl Moment {
    /// All of them, in the order in which they come.
    pub const ALL: [Self; 9] = [
        Self::Claimed,
        Self::Prepared,
        Self::RunStarted,
        Self::ReportKept,
        Self::RunEnded,
        Self::StepBegun,
        Self::StepActed,
        Self::StepDone,
        Self::Ended,
    ];

    /// The name, as faults write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Claimed => "claimed",
            Self::Prepared => "prepared",
            Self::RunStarted => "run_started",
            Self::ReportKept => "report_kept",
            Self::RunEnded => "run_ended",
            Self::StepBegun => "step_begun",
            Self::StepActed => "step_acted",
            Self::StepDone => "step_done",
            Self::Ended => "ended",
        }
    }
}

/// What a listener makes of a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reaction {
    /// Work goes on.
    GoOn,
    /// The worker is gone, as if it had been killed: nothing is cleared up.
    Die,
}

/// Listens to the moments of a worker.
#[async_trait]
pub trait Moments: Send + Sync {
    /// A moment has come. `step` is the name of the step, at the moments of steps. It may take its time.
    async fn reached(&self, moment: Moment, task: &TaskId, step: Option<&str>) -> Reaction;
}

/// Nobody listens.
#[derive(Debug, Clone, Copy, Default)]
pub struct Undisturbed;

#[async_trait]
impl Moments for Undisturbed {
    async fn reached(&self, _moment: Moment, _task: &TaskId, _step: Option<&str>) -> Reaction {
        Reaction::GoOn
    }
}

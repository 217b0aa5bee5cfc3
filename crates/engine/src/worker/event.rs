//! What a worker tells while it works, and what it comes to.

use rehearsal_core::{
    Activity, AgentName, Hold, Lane, Outcome, RunId, StateName, StepFailure, Task, TaskId, Timestamp,
    WorkerId,
};
use serde::{Deserialize, Serialize};

/// One thing that happened in a worker. Reporters are told of all of them, in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum WorkEvent {
    /// The worker begins.
    WorkStarted {
        /// Which.
        worker: WorkerId,
        /// At most so many tasks at once.
        at_once: u32,
    },
    /// What a worker that died had left was put in order.
    Recovered {
        /// The task.
        task: TaskId,
        /// The run it had left.
        run: RunId,
        /// What became of it.
        outcome: Outcome,
    },
    /// A run whose worker died goes on here: its agent has not stopped.
    Adopted {
        /// The task.
        task: TaskId,
        /// Its title.
        title: String,
        /// In which state.
        state: StateName,
        /// Who works on it.
        agent: Option<AgentName>,
        /// The run.
        run: RunId,
        /// The worker that died.
        from: WorkerId,
    },
    /// A task was claimed.
    Claimed {
        /// Which.
        task: TaskId,
        /// Its title.
        title: String,
        /// In which state.
        state: StateName,
        /// Who works on it; none: only steps are left to do.
        agent: Option<AgentName>,
        /// The run.
        run: RunId,
        /// The run of another worker that let its lease run out.
        taken_from: Option<RunId>,
    },
    /// Its worktree is ready.
    Prepared {
        /// Which task.
        task: TaskId,
        /// Where it is.
        worktree: String,
        /// How it came about.
        origin: String,
    },
    /// The agent does something.
    AgentActed {
        /// For which task.
        task: TaskId,
        /// In which run.
        run: RunId,
        /// What.
        activity: Activity,
    },
    /// The agent's run is over.
    RunEnded {
        /// For which task.
        task: TaskId,
        /// The run.
        run: RunId,
        /// How it ended.
        outcome: Outcome,
        /// How many commits it made.
        commits: usize,
        /// What it cost.
        cost_usd: Option<f64>,
        /// How long it took.
        duration_ms: u64,
    },
    /// A step begins.
    StepStarted {
        /// For which task.
        task: TaskId,
        /// Its name.
        step: String,
    },
    /// A step is done.
    StepDone {
        /// For which task.
        task: TaskId,
        /// Its name.
        step: String,
    },
    /// A step is not done.
    StepFailed {
        /// For which task.
        task: TaskId,
        /// Its name.
        step: String,
        /// Why.
        failure: StepFailure,
    },
    /// A task came into another state, or another standing.
    Moved {
        /// Which.
        task: TaskId,
        /// Its title.
        title: String,
        /// Where it was.
        from: StateName,
        /// Where it is.
        to: StateName,
        /// The word that listings show.
        status: String,
        /// What it waits for.
        reason: Option<String>,
    },
    /// A task was taken from this worker: what it did counts no more.
    Lost {
        /// Which.
        task: TaskId,
        /// The run.
        run: RunId,
    },
    /// A lane stands still.
    Held {
        /// Which.
        lane: Lane,
        /// Why, and until when.
        hold: Hold,
    },
    /// There is nothing to do until then.
    Waiting {
        /// When something becomes claimable by itself.
        until: Option<Timestamp>,
    },
    /// Something that a person should know.
    Warning {
        /// What.
        message: String,
    },
}

/// Why a worker ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WorkEnd {
    /// There was nothing more to do, or only what waits for a person.
    Idle,
    /// It was told to do one task.
    Once,
    /// Its runs have cost what they may cost.
    BudgetReached,
    /// It was told to stop.
    Interrupted,
}

/// What a worker came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkSummary {
    /// Which worker.
    pub worker: WorkerId,
    /// Why it ended.
    pub end: WorkEnd,
    /// The tasks that it touched, as they are now, in the order in which they were first touched.
    pub tasks: Vec<Task>,
    /// Runs that it made.
    pub runs: u32,
    /// What they cost, as far as they told.
    pub cost_usd: f64,
    /// Runs that did not tell.
    pub runs_without_cost: u32,
    /// Lanes that stand still.
    pub held: Vec<(Lane, Hold)>,
    /// How long it took.
    pub duration_ms: u64,
}

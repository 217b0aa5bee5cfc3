//! What a loop tells while it runs, and what it comes to.

use rehearsal_core::{
    Activity, AgentName, Outcome, RunId, SessionName, Task, TaskId, Timestamp, Tokens, WaitFor,
};
use serde::{Deserialize, Serialize};

/// One thing that happened in a loop. Reporters are told of all of them, in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum LoopEvent {
    /// The loop begins.
    LoopStarted {
        /// On which session.
        session: SessionName,
        /// With which agent.
        agent: AgentName,
        /// How many tasks are open.
        open_tasks: u64,
        /// At most so many iterations.
        iterations: u32,
    },
    /// What a worker that died had left was put in order.
    Recovered {
        /// The run it had left.
        run: RunId,
        /// Its task.
        task: TaskId,
        /// What became of it.
        outcome: Outcome,
    },
    /// An iteration begins.
    IterationStarted {
        /// Which.
        iteration: u32,
        /// The run.
        run: RunId,
        /// Its task.
        task: TaskId,
        /// The task's title.
        title: String,
    },
    /// The agent does something.
    AgentActed {
        /// In which run.
        run: RunId,
        /// What.
        activity: Activity,
    },
    /// An iteration is over.
    IterationEnded {
        /// Which.
        iteration: u32,
        /// The run.
        run: RunId,
        /// How it ended.
        outcome: Outcome,
        /// How many commits it made.
        commits: usize,
        /// How many files differ.
        files_changed: usize,
        /// What it cost.
        cost_usd: Option<f64>,
        /// How long it took.
        duration_ms: u64,
    },
    /// A task changed through what an agent reported.
    TaskReported {
        /// Which.
        task: TaskId,
        /// Its title.
        title: String,
        /// What it is now.
        status: String,
    },
    /// The agent said that all is complete, and it is not.
    CompleteRefused {
        /// So many tasks are open.
        open_tasks: u64,
    },
    /// Nothing can be done until then.
    Waiting {
        /// For what.
        wait_for: WaitFor,
        /// Why.
        reason: String,
        /// Until when.
        until: Timestamp,
    },
    /// Something that a person should know.
    Warning {
        /// What.
        message: String,
    },
}

/// Why a loop ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum LoopEnd {
    /// The session has no tasks, or none that is open: the agent was not called.
    NothingToDo,
    /// Every task is done.
    AllDone,
    /// The agent said that all is complete, and its word was taken.
    Complete {
        /// So many tasks are still open.
        open_tasks: u64,
    },
    /// The agent said that it needs a human.
    Blocked {
        /// What for.
        why: String,
    },
    /// What is left waits for a human.
    NeedsHuman {
        /// The tasks, with what each waits for.
        waiting: Vec<String>,
    },
    /// Some tasks ended in failure, and none is left.
    SomeFailed {
        /// So many.
        failed: u64,
    },
    /// All iterations are used; not an error.
    MaxIterations,
    /// The cost limit.
    BudgetReached {
        /// What was spent.
        spent_usd: f64,
    },
    /// Too many failed runs in a row.
    TooManyFailures {
        /// The last of them.
        last: Outcome,
    },
    /// The same failure of the system twice in a row: no task can be helped by going on.
    LineStopped {
        /// The failure.
        cause: Outcome,
    },
    /// The wait would be longer than allowed.
    WaitTooLong {
        /// For what.
        wait: String,
        /// Until when.
        until: Timestamp,
    },
    /// Someone stopped it.
    Interrupted,
}

/// What a loop came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoopSummary {
    /// Which session.
    pub session: SessionName,
    /// Why it ended.
    pub end: LoopEnd,
    /// How many iterations it took.
    pub iterations: u32,
    /// Its runs, in order.
    pub runs: Vec<RunId>,
    /// The tasks that its runs were for or reported on, as they are now.
    pub tasks: Vec<Task>,
    /// So many are done in the session.
    pub done_tasks: u64,
    /// So many are open.
    pub open_tasks: u64,
    /// What its runs cost; none if no run told.
    pub cost_usd: Option<f64>,
    /// How many of its runs did not tell their cost.
    pub runs_without_cost: u32,
    /// Tokens its runs used; none if no run told.
    pub tokens: Option<Tokens>,
    /// How long it took.
    pub duration_ms: u64,
}

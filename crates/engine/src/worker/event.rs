//! What a worker tells while it works, and what it comes to.

use std::collections::BTreeMap;

use rehearsal_agent::ConfinedBy;
use rehearsal_core::{
    Activity, AgentName, Hold, Lane, Notice, Outcome, RunId, SessionName, StateName, StepFailure, Task,
    TaskId, Timestamp, Tokens, WorkerId,
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
        /// The session that it works through, iteration by iteration.
        session: Option<SessionStart>,
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
        /// Which iteration of the session it is.
        iteration: Option<u32>,
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
    /// The agent said that the session is complete, and it is not.
    CompleteRefused {
        /// How many tasks are open.
        open_tasks: u64,
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
        /// What ends then, in a session.
        reason: Option<String>,
    },
    /// Something that a person should know.
    Warning {
        /// What.
        notice: Notice,
    },
}

/// A session that is worked through.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionStart {
    /// Which.
    pub session: SessionName,
    /// With which agent.
    pub agent: AgentName,
    /// How many tasks are open.
    pub open_tasks: u64,
    /// At most so many iterations.
    pub iterations: u32,
}

/// Why a worker ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum WorkEnd {
    /// There was nothing more to do, or only what waits for a person.
    Idle,
    /// It was told to do one task.
    Once,
    /// Its runs have cost what they may cost.
    BudgetReached {
        /// What was spent.
        spent_usd: f64,
    },
    /// It was told to stop.
    Interrupted,
    /// The session has no open tasks: the agent was not called.
    NothingToDo,
    /// Every task of the session is done.
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
    /// What is left of the session waits for a human.
    NeedsHuman {
        /// The tasks, with what each waits for.
        waiting: Vec<String>,
    },
    /// Some tasks of the session ended in failure, and none is left.
    SomeFailed {
        /// So many.
        failed: u64,
    },
    /// All iterations are used; not an error, unless all of them failed.
    MaxIterations,
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
}

/// What a worker came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkSummary {
    /// Which worker.
    pub worker: WorkerId,
    /// The session that it worked for; none: for all.
    pub session: Option<SessionName>,
    /// Why it ended.
    pub end: WorkEnd,
    /// How many iterations of a session it took.
    pub iterations: u32,
    /// Its runs, in the order in which they ended.
    pub runs: Vec<RunId>,
    /// The tasks that its runs were for or reported on, as they are now, in the order in which they were first touched.
    pub tasks: Vec<Task>,
    /// How many of these tasks are done.
    pub done_tasks: u64,
    /// How many tasks are open, in the session or in all.
    pub open_tasks: u64,
    /// What its runs cost; none if no run told.
    pub cost_usd: Option<f64>,
    /// How many of its runs did not tell their cost.
    pub runs_without_cost: u32,
    /// Tokens its runs used; none if no run told.
    pub tokens: Option<Tokens>,
    /// What kept its agents within bounds, by the names of those that ran.
    pub confined_by: BTreeMap<AgentName, ConfinedBy>,
    /// How the last iteration of a session ended, if every one of them failed.
    pub all_failed: Option<Outcome>,
    /// Whether all that a session's tasks wait for is a greater budget.
    pub is_spent: bool,
    /// What a person has to know who did not watch.
    pub notices: Vec<Notice>,
    /// Lanes that stand still.
    pub held: Vec<(Lane, Hold)>,
    /// How long it took.
    pub duration_ms: u64,
}

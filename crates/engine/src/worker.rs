//! The worker: claims tasks and takes each to its next state.
//!
//! One task is one slot: claim, run the agent, do the steps, move. Everything that lasts goes through the store with the
//! claim's fence, so a worker that lost a task changes nothing more. What a worker that died has left is continued or
//! put in order by the next one on the same machine, or taken over by any when its lease has run out.
//!
//! `work` and `run` are two policies of it: several tasks of any flow, each in a worktree; or a session's tasks one after
//! the other, in the user's checkout.

mod adopt;
mod agents;
mod attempt;
mod checkout;
mod circuit_breaker;
mod dispatch;
mod event;
mod heartbeat;
mod moment;
mod notes;
mod options;
mod patient;
mod presence;
mod recover;
mod request;
mod session;
mod slot;
mod state;
mod tally;
mod wakeup;
mod worktree;

use std::sync::Arc;

use camino::Utf8PathBuf;
use rehearsal_agent::environment::Variables;
use rehearsal_core::config::TestingSettings;
use rehearsal_core::quality::Rules;
use rehearsal_core::{BoxFuture, Clock, FlowName, TaskId};
use rehearsal_store::{CommitError, FindError, Store, StoreError};
use tokio_util::task::AbortOnDropHandle;

use crate::StopSwitch;
use crate::prompt::PromptError;

pub(crate) use adopt::is_to_be_found;
pub(crate) use checkout::CheckoutRecord;
pub(crate) use notes::denied_in_last_run;
pub(crate) use presence::{Alive, Presence, WorkerKind};
pub(crate) use state::WorkerState;

pub use agents::{Role, Roles};
pub use checkout::{LeftWork, LeftWorkError, left_work};
pub use event::{SessionStart, WorkEnd, WorkEvent, WorkSummary};
pub use moment::{Moment, Moments, Reaction, Undisturbed};
pub use options::{Landing, Outlet, Policy, QueuePolicy, SessionPolicy, WorkOptions, Workspace};
pub use patient::open_patiently;
pub use recover::{LocalWorker, forget_dead_workers, has_died, is_in_checkout, left_runs, workers_here};

/// Told of everything that happens in a worker. Must not block.
pub type WorkReporter = Arc<dyn Fn(WorkEvent) + Send + Sync>;

/// What a worker needs.
pub struct Worker {
    /// Where tasks live.
    pub store: Arc<dyn Store>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// The agents.
    pub roles: Arc<dyn Roles>,
    /// Where they work.
    pub workspace: Workspace,
    /// Where state is kept: run directories, traces of workers.
    pub state_dir: Utf8PathBuf,
    /// How tests run.
    pub testing: TestingSettings,
    /// Which changes need a review.
    pub quality: Rules,
    /// Our environment, as it was when the program began.
    pub variables: Variables,
    /// The rest.
    pub options: WorkOptions,
    /// Who is told.
    pub reporter: WorkReporter,
    /// How it is stopped.
    pub stop: StopSwitch,
    /// Who listens to its moments.
    pub moments: Arc<dyn Moments>,
}

/// Why a worker could not go on. Failures of agents and steps are not errors.
#[derive(Debug, thiserror::Error)]
pub enum WorkError {
    /// The store did not take it.
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] StoreError),
    /// A directory or file of ours cannot be used.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// There is no such session.
    #[error(transparent)]
    Session(#[from] FindError),
    /// The prompt cannot be made.
    #[error(transparent)]
    Prompt(#[from] PromptError),
    /// A task of the session has a flow that a loop cannot take it through.
    #[error("task `{task}` is of flow `{flow}`, which is not for a loop: {why}")]
    OtherFlow {
        /// The task.
        task: TaskId,
        /// Its flow.
        flow: FlowName,
        /// What stands in the way.
        why: String,
    },
    /// A rehearsal let the worker die here.
    #[error("the worker died")]
    Died,
}

impl From<crate::ledger::LedgerError> for WorkError {
    fn from(error: crate::ledger::LedgerError) -> Self {
        match error {
            crate::ledger::LedgerError::Commit(error) => Self::Commit(error),
            crate::ledger::LedgerError::Read(error) => Self::Read(error),
        }
    }
}

impl Worker {
    /// Works until it is stopped, or its policy says that it is over.
    pub fn run(self) -> BoxFuture<'static, Result<WorkSummary, WorkError>> {
        Box::pin(async move {
            let state = Arc::new(WorkerState::new(self));
            let worker = &state.worker;
            let presence = Presence::announce(&worker.state_dir, &state.id, state.kind())?;
            {
                let _turn = worker.clock.turn().await;
                Box::pin(state.begin()).await?;
            }
            // Beats as long as we live, and no longer.
            let _heartbeat = AbortOnDropHandle::new(tokio::spawn(Arc::clone(&state).beat()));
            // A worker that died takes no turn: whoever killed it may have it.
            let end = Box::pin(state.work()).await?;
            let _turn = worker.clock.turn().await;
            let summary = Box::pin(state.summary(end)).await?;
            presence.leave();
            Ok(summary)
        })
    }
}

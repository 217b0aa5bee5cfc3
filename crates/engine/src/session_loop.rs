//! The loop: one agent, fresh context each time, until a session's tasks are done.
//!
//! A visible state machine: look at the session ([`SessionLoop::next_step`]), then iterate, wait or end. Each
//! iteration claims one task, runs the agent, and writes all that came of it in one transaction.

mod event;
mod iteration;
mod recovery;
mod tally;
mod waiting;

use std::sync::Arc;
use std::time::Duration;

use camino::Utf8PathBuf;
use rehearsal_agent::Agent;
use rehearsal_core::config::Profile;
use rehearsal_core::{
    AgentName, Clock, Outcome, RunId, Session, SessionName, Task, TaskId, Timestamp, Wait, WorkerId,
};
use rehearsal_store::{CommitError, Counts, FindError, Store, StoreError};

use crate::StopSwitch;
use crate::ledger::LedgerError;
use crate::prompt::PromptError;
use tally::Tally;

pub use event::{LoopEnd, LoopEvent, LoopSummary};

/// Told of everything that happens in a loop. Must not block.
pub type Reporter = Arc<dyn Fn(LoopEvent) + Send + Sync>;

/// What a loop needs.
pub struct SessionLoop {
    /// Where tasks live.
    pub store: Arc<dyn Store>,
    /// The agent.
    pub agent: Arc<dyn Agent>,
    /// The agent's name.
    pub agent_name: AgentName,
    /// How the agent is set up.
    pub profile: Profile,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Where the agent works.
    pub working_dir: Utf8PathBuf,
    /// Where runs keep their files.
    pub runs_dir: Utf8PathBuf,
    /// The prompt's template.
    pub template: String,
    /// The rest.
    pub options: LoopOptions,
    /// Who is told.
    pub reporter: Reporter,
    /// How it is stopped.
    pub stop: StopSwitch,
}

/// What a user can say about a loop.
#[derive(Debug, Clone, PartialEq)]
pub struct LoopOptions {
    /// Which session.
    pub session: SessionName,
    /// At most so many iterations.
    pub iterations: u32,
    /// Stop after so many failed runs in a row.
    pub max_failures: u32,
    /// Stop at this cost.
    pub max_cost: Option<f64>,
    /// The longest wait.
    pub max_wait: Duration,
    /// Take the agent's word that all is complete.
    pub accept_complete: bool,
    /// A message for every prompt.
    pub message: Option<String>,
    /// How the tests are run.
    pub test_command: Option<String>,
}

/// Why a loop could not go on. Failures of agents are no errors: they are outcomes.
#[derive(Debug, thiserror::Error)]
pub enum LoopError {
    /// There is no such session.
    #[error(transparent)]
    Session(#[from] FindError),
    /// The store did not take it.
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] StoreError),
    /// The prompt cannot be made.
    #[error(transparent)]
    Prompt(#[from] PromptError),
    /// A run's directory cannot be made.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// A task of the session goes another way than a loop can take it.
    #[error("task `{task}` is of flow `{flow}`, which is not for a loop: {why}")]
    OtherFlow {
        /// The task.
        task: TaskId,
        /// Its flow.
        flow: rehearsal_core::FlowName,
        /// What stands in the way.
        why: String,
    },
}

impl From<LedgerError> for LoopError {
    fn from(error: LedgerError) -> Self {
        match error {
            LedgerError::Commit(error) => Self::Commit(error),
            LedgerError::Read(error) => Self::Read(error),
        }
    }
}

/// The same failure of the system so often in a row stops the line.
const STOP_THE_LINE_AFTER: u32 = 2;

/// What the loop carries from one iteration to the next.
struct Progress {
    worker: WorkerId,
    started_at: Timestamp,
    iteration: u32,
    tally: Tally,
    runs: Vec<RunId>,
    /// In the order in which they were first touched.
    touched: Vec<TaskId>,
    notes: Vec<String>,
    /// The task whose last run was told to wait by the agent's vendor: until then no task can be worked on.
    rest_of: Option<TaskId>,
    /// Until when the loop told that it waits.
    told_to_wait: Option<Timestamp>,
    failures_in_a_row: u32,
    hard_setbacks_in_a_row: u32,
}

/// What to do next.
enum NextStep {
    Iterate(Box<Task>),
    Wait(Wait, Timestamp),
    End(LoopEnd),
}

impl SessionLoop {
    /// Runs to the end.
    pub async fn run(&self) -> Result<LoopSummary, LoopError> {
        let session = self.session().await?;
        let mut progress = Progress::new(self.clock.now());
        self.check_prompt().await?;
        self.recover(&progress.worker).await?;
        progress.rest_of = self.stored_rest().await?;
        let counts = self.counts().await?;
        self.tell(LoopEvent::LoopStarted {
            session: session.name.clone(),
            agent: self.agent_name.clone(),
            open_tasks: counts.open,
            iterations: self.options.iterations,
        });
        let end = loop {
            match self.next_step(&progress).await? {
                NextStep::End(end) => break end,
                NextStep::Wait(..) => {
                    if let Some(end) = self.wait(&mut progress).await? {
                        break end;
                    }
                }
                NextStep::Iterate(task) => {
                    if let Some(end) = self.iterate(&session.name, *task, &mut progress).await? {
                        break end;
                    }
                }
            }
        };
        self.summary(end, progress).await
    }

    /// A template that cannot be used is found before anything is begun.
    async fn check_prompt(&self) -> Result<(), LoopError> {
        let next = self.store.next_task(Some(&self.options.session), self.clock.now()).await?;
        if let Some(task) = next {
            self.check_flow(&task).await?;
            self.request(&RunId::from_random(crate::random_bits()), &task, 1, &[]).await?;
        }
        Ok(())
    }

    async fn check_flow(&self, task: &Task) -> Result<(), LoopError> {
        let flow = self.store.flow(&task.flow_version).await?;
        flow.fits_a_loop().map_err(|why| LoopError::OtherFlow {
            task: task.id.clone(),
            flow: task.flow.clone(),
            why,
        })
    }

    /// Looks at the session as it is now: people edit it while the loop runs.
    async fn next_step(&self, progress: &Progress) -> Result<NextStep, LoopError> {
        let end = |end| Ok(NextStep::End(end));
        if self.stop.is_thrown() {
            return end(LoopEnd::Interrupted);
        }
        let now = self.clock.now();
        let (counts, next) = tokio::try_join!(self.counts(), async {
            Ok(self.store.next_task(Some(&self.options.session), now).await?)
        })?;
        if counts.open == 0 {
            return end(match (progress.iteration, failed(&counts)) {
                (0, _) => LoopEnd::NothingToDo,
                (_, 0) => LoopEnd::AllDone,
                (_, failed) => LoopEnd::SomeFailed { failed },
            });
        }
        if progress.iteration >= self.options.iterations {
            return end(LoopEnd::MaxIterations);
        }
        if let Some(limit) = self.options.max_cost
            && progress.tally.spent() >= limit
        {
            return end(LoopEnd::BudgetReached { spent_usd: progress.tally.spent() });
        }
        if let Some((wait, until)) = self.rest_of_the_agent(progress).await? {
            return Ok(NextStep::Wait(wait, until));
        }
        if let Some(task) = next {
            self.check_flow(&task).await?;
            return Ok(NextStep::Iterate(Box::new(task)));
        }
        self.what_it_waits_for().await
    }

    async fn summary(&self, end: LoopEnd, progress: Progress) -> Result<LoopSummary, LoopError> {
        let counts = self.counts().await?;
        let mut tasks = Vec::new();
        for id in &progress.touched {
            tasks.extend(self.store.task(id).await?);
        }
        Ok(LoopSummary {
            session: self.options.session.clone(),
            end,
            iterations: progress.iteration,
            runs: progress.runs,
            tasks,
            done_tasks: counts.done,
            open_tasks: counts.open,
            cost_usd: progress.tally.cost_usd,
            runs_without_cost: progress.tally.runs_without_cost,
            tokens: progress.tally.tokens,
            duration_ms: u64::try_from(self.clock.now().since(progress.started_at).as_millis())
                .unwrap_or(u64::MAX),
        })
    }

    async fn session(&self) -> Result<Session, LoopError> {
        Ok(self.store.session(&self.options.session).await?)
    }

    async fn counts(&self) -> Result<Counts, LoopError> {
        Ok(self.store.count_tasks(Some(&self.options.session)).await?)
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn tell(&self, event: LoopEvent) {
        (self.reporter)(event);
    }
}

/// Tasks that are over, and neither done nor cancelled.
fn failed(counts: &Counts) -> u64 {
    let cancelled = counts.by_status.get("cancelled").copied().unwrap_or(0);
    counts.total.saturating_sub(counts.open + counts.done + cancelled)
}

impl Progress {
    fn new(started_at: Timestamp) -> Self {
        Self {
            worker: crate::worker_id(uuid::Uuid::now_v7()),
            started_at,
            iteration: 0,
            tally: Tally::default(),
            runs: Vec::new(),
            touched: Vec::new(),
            notes: Vec::new(),
            rest_of: None,
            told_to_wait: None,
            failures_in_a_row: 0,
            hard_setbacks_in_a_row: 0,
        }
    }

    fn touch(&mut self, task: &TaskId) {
        if !self.touched.contains(task) {
            self.touched.push(task.clone());
        }
    }

    /// Counts an outcome, and says whether it is one too many.
    fn count(&mut self, outcome: &Outcome, max_failures: u32) -> Option<LoopEnd> {
        use rehearsal_core::Blame;
        let name = outcome.name();
        let failed = outcome.blame() == Blame::Agent || matches!(outcome, Outcome::Failed { .. });
        let hard = outcome.blame() == Blame::System && !name.passes_with_time();
        if outcome.blame() != Blame::System {
            self.failures_in_a_row = if failed { self.failures_in_a_row + 1 } else { 0 };
        }
        self.hard_setbacks_in_a_row = if hard { self.hard_setbacks_in_a_row + 1 } else { 0 };
        if failed && self.failures_in_a_row >= max_failures {
            return Some(LoopEnd::TooManyFailures { last: outcome.clone() });
        }
        if self.hard_setbacks_in_a_row >= STOP_THE_LINE_AFTER {
            return Some(LoopEnd::LineStopped { cause: outcome.clone() });
        }
        None
    }
}

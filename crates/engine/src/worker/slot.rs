//! One task in work: its agent, its steps, its next state.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use camino::Utf8Path;
use rehearsal_core::flow::{Flow, Step};
use rehearsal_core::transition::{Refusal, TaskInput};
use rehearsal_core::{
    AgentName, Blame, Delivery, Notice, Outcome, Promise, RunId, Standing, StateName, StepFailure, Task, Wait,
};
use rehearsal_forge::{Occupied, Work, Worktree};
use rehearsal_store::{Change, Claimed, CommitError, Committed};
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use super::adopt::Adoptee;
use super::heartbeat::ClaimGuard;
use super::{CheckoutRecord, Moment, Policy, WorkError, WorkEvent, WorkerKind, WorkerState};
use crate::steps::{self, CheckoutContext, StepContext};

/// A claimed task, and all that is needed to work on it.
pub(super) struct Slot<'a> {
    pub(super) state: &'a WorkerState,
    pub(super) task: Task,
    pub(super) flow: Arc<Flow>,
    pub(super) run: RunId,
    /// Keeps the claim alive.
    pub(super) guard: ClaimGuard,
    /// Ends whatever is under way: the claim is lost, or the worker is to stop now.
    pub(super) cancel: CancellationToken,
    /// Whether the agent had done its part before this claim.
    pub(super) only_steps: bool,
    /// Where the work is, from when it is prepared until the claim is over.
    pub(super) place: OnceCell<(Worktree, Occupied)>,
    /// Who works on it.
    pub(super) agent: Option<AgentName>,
    /// Which iteration of a session it is.
    pub(super) iteration: Option<u32>,
    /// Whether the budget of the run was what is left of the worker's.
    pub(super) was_capped: bool,
    /// How the agent's run ended.
    pub(super) finished: Option<Finished>,
    /// When the run began on the monotonic clock; none: another process began it.
    pub(super) run_began: Option<Duration>,
}

/// How a run ended, for whoever decides what comes next.
pub(super) struct Finished {
    pub(super) outcome: Outcome,
    pub(super) promise: Option<Promise>,
    /// Whether its budget was what is left of the worker's.
    pub(super) was_capped: bool,
    /// Whether the system failed once too often.
    pub(super) stops_the_line: bool,
}

/// Why work on a task ended early.
#[derive(Debug)]
pub(super) enum ClaimExit {
    /// The claim is someone else's now, or nobody's. A normal end.
    Lost,
    /// The answer to a commit was lost: what became of the claim has to be looked at.
    Unsure,
    /// The worker itself cannot go on.
    Work(WorkError),
}

impl<T: Into<WorkError>> From<T> for ClaimExit {
    fn from(error: T) -> Self {
        match error.into() {
            // Whoever took over has ended the run, too.
            WorkError::Commit(
                CommitError::Refused { refusal: Refusal::Stale { .. } | Refusal::OtherWorker { .. }, .. }
                | CommitError::RunEnded { .. },
            ) => Self::Lost,
            // What is in the store is not what we believe: it is looked at again.
            WorkError::Commit(
                CommitError::OutcomeUnknown
                | CommitError::Refused { refusal: Refusal::WrongStep { .. } | Refusal::RunOver { .. }, .. },
            ) => Self::Unsure,
            error => Self::Work(error),
        }
    }
}

/// Works on a task until its claim is over.
pub(super) async fn work(
    state: &WorkerState,
    claimed: Claimed,
    guard: ClaimGuard,
) -> Result<Option<Finished>, WorkError> {
    let Claimed { task, taken_from } = claimed;
    let Standing::Claimed(claim) = &task.standing else { return Ok(None) };
    let run = claim.run.clone();
    let iteration = match state.worker.options.policy {
        Policy::Session(_) => {
            if let Err(error) = state.worker.check_flow(&task).await {
                let input = TaskInput::Release { fence: task.fence };
                state.commit(vec![Change::ChangeTask { id: task.id, input }]).await?;
                return Err(error);
            }
            // Where only steps are left, no agent is called.
            task.pending.is_none().then(|| state.begin_iteration())
        }
        Policy::Queue(_) => None,
    };
    let agent = state.agent_for(&task).await?;
    state.tell(WorkEvent::Claimed {
        task: task.id.clone(),
        title: task.title.clone(),
        state: task.state.clone(),
        agent: agent.clone(),
        run: run.clone(),
        taken_from,
        iteration,
    });
    let slot = Slot { agent, iteration, ..Slot::new(state, task, run, guard).await? };
    Box::pin(work_in(slot, Begin::Anew)).await
}

/// How work on a task begins.
pub(super) enum Begin {
    Anew,
    /// With an agent that was at work before.
    With(Box<Adoptee>),
}

/// Stays in a slot until its claim is over.
pub(super) async fn work_in(mut slot: Slot<'_>, begin: Begin) -> Result<Option<Finished>, WorkError> {
    let (state, run, id) = (slot.state, slot.run.clone(), slot.task.id.clone());
    let cancel = slot.cancel.clone();
    // An agent in the user's checkout is in nobody's way: it comes to its end, and what else it says counts.
    let lost = match state.kind() {
        WorkerKind::Work => slot.guard.lost.clone(),
        WorkerKind::Run => CancellationToken::new(),
    };
    state.tally(|tally| tally.touch(&id));
    let ended = {
        let through = slot.through(begin);
        tokio::pin!(through);
        tokio::select! {
            ended = &mut through => ended,
            () = lost.cancelled() => {
                // The agent is ended first; what it did stays in the worktree, and counts for nothing.
                cancel.cancel();
                through.await
            }
        }
    };
    match ended {
        Ok(()) => return Ok(slot.finished),
        Err(ClaimExit::Lost) => state.tell(WorkEvent::Lost { task: id.clone(), run }),
        Err(ClaimExit::Unsure) => state.unsure.store(true, Ordering::SeqCst),
        Err(ClaimExit::Work(error)) => return Err(error),
    }
    // A person who cancels a task leaves its worktree to whoever was in it.
    if let Some(task) = state.worker.store.task(&id).await?.filter(Task::is_ended) {
        state.give_worktree_back(&task).await;
    }
    Ok(slot.finished)
}

impl<'a> Slot<'a> {
    pub(super) async fn new(
        state: &'a WorkerState,
        task: Task,
        run: RunId,
        guard: ClaimGuard,
    ) -> Result<Self, WorkError> {
        let flow = state.worker.store.flow(&task.flow_version).await?;
        let cancel = state.worker.stop.now.child_token();
        let only_steps = task.pending.is_some();
        Ok(Self {
            state,
            task,
            flow,
            run,
            guard,
            cancel,
            only_steps,
            place: OnceCell::new(),
            agent: None,
            iteration: None,
            was_capped: false,
            finished: None,
            run_began: None,
        })
    }
}

impl Slot<'_> {
    async fn through(&mut self, begin: Begin) -> Result<(), ClaimExit> {
        let from = self.task.state.clone();
        match begin {
            Begin::With(adoptee) => self.go_on_with(*adoptee).await?,
            Begin::Anew => {
                self.reach(Moment::Claimed).await?;
                if self.task.pending.is_none() {
                    self.attempt().await?;
                }
            }
        }
        let has_steps = self.task.pending.is_some();
        while self.is_mine() {
            if self.task.pending.is_none() {
                break;
            }
            if self.state.worker.stop.now.is_cancelled() {
                self.change(TaskInput::Release { fence: self.task.fence }).await?;
                break;
            }
            self.next_step().await?;
        }
        if has_steps && self.state.kind() == WorkerKind::Run {
            let Task { id: task, title, .. } = self.task.clone();
            self.state.tell(WorkEvent::TaskReported { task, title, status: self.task.status().to_owned() });
        }
        self.tell_where_it_is(from);
        if self.task.is_ended() {
            self.reach(Moment::Ended).await?;
            self.state.give_worktree_back(&self.task).await;
        }
        Ok(())
    }

    pub(super) fn is_mine(&self) -> bool {
        matches!(&self.task.standing, Standing::Claimed(claim) if claim.run == self.run)
    }

    async fn next_step(&mut self) -> Result<(), ClaimExit> {
        let Some(pending) = self.task.pending.clone() else { return Ok(()) };
        let Some(step) = self.flow.steps_of(&self.task.state).get(pending.next as usize).cloned() else {
            return Ok(());
        };
        self.state.tell(WorkEvent::StepStarted { task: self.task.id.clone(), step: step.to_string() });
        self.reach_step(Moment::StepBegun, &step).await?;
        let done = if self.state.kind() == WorkerKind::Run {
            self.step_in_checkout(&step).await?
        } else {
            match self.step_in_worktree(&step).await? {
                Some(done) => done,
                None => return self.change(TaskInput::Redo { fence: self.task.fence }).await,
            }
        };
        if self.guard.lost.is_cancelled() {
            return Err(ClaimExit::Lost);
        }
        if self.cancel.is_cancelled() && done.is_err() {
            self.change(TaskInput::Release { fence: self.task.fence }).await?;
            return Ok(());
        }
        self.reach_step(Moment::StepActed, &step).await?;
        match done {
            Ok(delivery) => {
                let (fence, number, delivery) = (self.task.fence, pending.next, Box::new(delivery));
                self.change(TaskInput::StepDone { fence, step: number, delivery }).await?;
                self.state.count_setback("steps", None);
                self.state.tell(WorkEvent::StepDone { task: self.task.id.clone(), step: step.to_string() });
                self.reach_step(Moment::StepDone, &step).await
            }
            Err(failure) => self.step_failed(&step, pending.next, failure).await,
        }
    }

    /// None: another machine took over what was never pushed from the one where it was done.
    async fn step_in_worktree(
        &mut self,
        step: &Step,
    ) -> Result<Option<Result<Delivery, StepFailure>>, ClaimExit> {
        let path = match self.worktree().await {
            Ok(worktree) if self.is_gone(worktree) => {
                self.state.warn(Notice::WorkLost { task: self.task.id.clone() });
                return Ok(None);
            }
            Ok(worktree) => worktree.path.clone(),
            Err(failure) => return Ok(Some(Err(failure))),
        };
        self.take(step, &path).await.map(Some)
    }

    async fn step_in_checkout(&self, step: &Step) -> Result<Result<Delivery, StepFailure>, ClaimExit> {
        let run = self.task.pending.as_ref().and_then(|pending| pending.run.clone());
        let record = run.as_ref().and_then(|run| CheckoutRecord::read(&self.state.worker.state_dir, run));
        let end = match run {
            Some(run) => self.state.worker.store.find_run(run.as_str()).await.ok().and_then(|run| run.end),
            None => None,
        };
        let context = CheckoutContext {
            state: self.state,
            task: &self.task,
            root: self.state.worker.workspace.root(),
            end: end.as_ref(),
            record: record.as_ref(),
            cancel: &self.cancel,
        };
        Ok(context.run(step).await)
    }

    /// Does a step in the task's place.
    async fn take(
        &mut self,
        step: &Step,
        worktree: &Utf8Path,
    ) -> Result<Result<Delivery, StepFailure>, ClaimExit> {
        if *step == Step::PushBranch
            && let Err(failure) = self.offer(worktree).await?
        {
            return Ok(Err(failure));
        }
        let (worktrees, outlet) = match self.worktrees() {
            Ok(site) => site,
            Err(failure) => return Ok(Err(failure)),
        };
        let context = StepContext {
            state: self.state,
            task: &self.task,
            worktree,
            worktrees,
            outlet,
            cancel: &self.cancel,
        };
        Ok(steps::run(step, &context).await)
    }

    /// Writes down what is about to be pushed: if we do not come to say that it was, it is known to be ours all the same.
    async fn offer(&mut self, worktree: &Utf8Path) -> Result<Result<(), StepFailure>, ClaimExit> {
        let head = match Work::at(worktree).head().await {
            Ok(head) => head,
            Err(error) => return Ok(Err(steps::of_git(&error))),
        };
        let step = self.task.pending.as_ref().map_or(0, |pending| pending.next);
        if !self.task.delivery.may_have_pushed(&head) {
            let (fence, commit) = (self.task.fence, head);
            self.change(TaskInput::Offer { fence, step, commit }).await?;
        }
        Ok(Ok(()))
    }

    async fn step_failed(&mut self, step: &Step, number: u32, failure: StepFailure) -> Result<(), ClaimExit> {
        let told = failure.clone();
        let systemic = match &failure {
            StepFailure::Systemic { outcome, reason } => Some((*outcome, format!("{step}: {reason}"))),
            _ => None,
        };
        self.change(TaskInput::StepFailed { fence: self.task.fence, step: number, failure }).await?;
        let (task, step) = (self.task.id.clone(), step.to_string());
        self.state.tell(WorkEvent::StepFailed { task, step, failure: told });
        if let Some((outcome, reason)) = systemic {
            self.state.stop_the_line_after_steps(outcome, reason).await?;
        }
        Ok(())
    }

    /// Moves the task, in the name of its run.
    pub(super) async fn change(&mut self, input: TaskInput) -> Result<(), ClaimExit> {
        let changes = vec![Change::ChangeTask { id: self.task.id.clone(), input }];
        let committed = self.state.commit(changes).await?;
        if let Some(task) = committed.into_iter().find_map(Committed::task) {
            self.has_become(task);
        }
        Ok(())
    }

    /// The task as it was committed. With the claim the place is left as well, at once: whoever claims it next is not to wait.
    pub(super) fn has_become(&mut self, task: Task) {
        self.task = task;
        if !self.is_mine() {
            self.place.take();
        }
    }

    fn tell_where_it_is(&self, from: StateName) {
        let reason = match &self.task.standing {
            Standing::Waiting(Wait { reason, .. }) => Some(reason.clone()),
            Standing::Ready | Standing::Claimed(_) | Standing::Ended { .. } => {
                self.task.feedback.as_ref().map(|feedback| feedback.text.clone())
            }
        };
        self.state.tell(WorkEvent::Moved {
            task: self.task.id.clone(),
            title: self.task.title.clone(),
            from,
            to: self.task.state.clone(),
            status: self.task.status().to_owned(),
            reason,
        });
    }

    pub(super) async fn reach(&self, moment: Moment) -> Result<(), ClaimExit> {
        Ok(self.state.reach(moment, &self.task.id, None).await?)
    }

    async fn reach_step(&self, moment: Moment, step: &Step) -> Result<(), ClaimExit> {
        Ok(self.state.reach(moment, &self.task.id, Some(step.name())).await?)
    }
}

/// Whether what was said of an outcome is the system's fault.
pub(super) fn is_system(outcome: &rehearsal_core::Outcome) -> bool {
    outcome.blame() == Blame::System
}

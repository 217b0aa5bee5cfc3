//! One task in work: its agent, its steps, its next state.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use rehearsal_core::flow::{Flow, Step};
use rehearsal_core::transition::{Refusal, TaskInput};
use rehearsal_core::{Blame, OutcomeName, RunId, Standing, StateName, StepFailure, Task, Wait};
use rehearsal_forge::{Occupied, Oid, Origin, Worktree, fetch};
use rehearsal_store::{Change, Claimed, CommitError, Committed};
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use super::adopt::Adoptee;
use super::heart::Kept;
use super::{Desk, Moment, WorkError, WorkEvent};
use crate::steps::{self, Scene};

/// A claimed task, and all that is needed to work on it.
pub(super) struct Slot<'a> {
    pub(super) desk: &'a Desk,
    pub(super) task: Task,
    pub(super) flow: Arc<Flow>,
    pub(super) run: RunId,
    /// Keeps the claim alive.
    pub(super) kept: Kept,
    /// Ends whatever is under way: the claim is lost, or the worker is to stop now.
    pub(super) cancel: CancellationToken,
    /// Whether the agent had done its part before this claim.
    only_steps: bool,
    /// Where the work is, from when it is prepared until the claim is over.
    pub(super) place: OnceCell<(Worktree, Occupied)>,
}

/// Why work on a task ended early.
#[derive(Debug)]
pub(super) enum Early {
    /// The claim is someone else's now, or nobody's. A normal end.
    Lost,
    /// The answer to a commit was lost: what became of the claim has to be looked at.
    Unsure,
    /// The worker itself cannot go on.
    Work(WorkError),
}

impl<T: Into<WorkError>> From<T> for Early {
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
pub(super) async fn work(desk: &Desk, claimed: Claimed, kept: Kept) -> Result<(), WorkError> {
    let Claimed { task, taken_from } = claimed;
    let Standing::Claimed(claim) = &task.standing else { return Ok(()) };
    desk.tell(WorkEvent::Claimed {
        task: task.id.clone(),
        title: task.title.clone(),
        state: task.state.clone(),
        agent: task.next_agent().cloned(),
        run: claim.run.clone(),
        taken_from,
    });
    let run = claim.run.clone();
    let slot = Slot::new(desk, task, run, kept).await?;
    Box::pin(work_in(slot, Begin::Anew)).await
}

/// How work on a task begins.
pub(super) enum Begin {
    Anew,
    /// With an agent that was at work before.
    With(Box<Adoptee>),
}

/// Stays in a slot until its claim is over.
pub(super) async fn work_in(mut slot: Slot<'_>, begin: Begin) -> Result<(), WorkError> {
    let (desk, run, id) = (slot.desk, slot.run.clone(), slot.task.id.clone());
    let (lost, cancel) = (slot.kept.lost.clone(), slot.cancel.clone());
    desk.touch(&id);
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
        Ok(()) => return Ok(()),
        Err(Early::Lost) => desk.tell(WorkEvent::Lost { task: id.clone(), run }),
        Err(Early::Unsure) => desk.unsure.store(true, Ordering::SeqCst),
        Err(Early::Work(error)) => return Err(error),
    }
    // A person who cancels a task leaves its worktree to whoever was in it.
    if let Some(task) = desk.worker.store.task(&id).await?.filter(Task::is_ended) {
        desk.give_worktree_back(&task).await;
    }
    Ok(())
}

impl<'a> Slot<'a> {
    pub(super) async fn new(desk: &'a Desk, task: Task, run: RunId, kept: Kept) -> Result<Self, WorkError> {
        let flow = desk.worker.store.flow(&task.flow_version).await?;
        let cancel = desk.worker.stop.now.child_token();
        let only_steps = task.pending.is_some();
        Ok(Self { desk, task, flow, run, kept, cancel, only_steps, place: OnceCell::new() })
    }
}

impl Slot<'_> {
    async fn through(&mut self, begin: Begin) -> Result<(), Early> {
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
        while self.is_mine() {
            if self.task.pending.is_none() {
                break;
            }
            if self.desk.worker.stop.now.is_cancelled() {
                self.change(TaskInput::Release { fence: self.task.fence }).await?;
                break;
            }
            self.next_step().await?;
        }
        self.tell_where_it_is(from);
        if self.task.is_ended() {
            self.reach(Moment::Ended).await?;
            self.desk.give_worktree_back(&self.task).await;
        }
        Ok(())
    }

    pub(super) fn is_mine(&self) -> bool {
        matches!(&self.task.standing, Standing::Claimed(claim) if claim.run == self.run)
    }

    async fn next_step(&mut self) -> Result<(), Early> {
        let Some(pending) = self.task.pending.clone() else { return Ok(()) };
        let Some(step) = self.flow.steps_of(&self.task.state).get(pending.next as usize).cloned() else {
            return Ok(());
        };
        self.desk.tell(WorkEvent::StepStarted { task: self.task.id.clone(), step: step.to_string() });
        self.reach_step(Moment::StepBegun, &step).await?;
        let done = match self.worktree().await {
            // Another machine took over what was never pushed from the one where it was done.
            Ok(worktree) if self.is_gone(worktree) => {
                self.desk.warn(format!(
                    "the work on task {} is gone with its machine: the agent has to work again",
                    self.task.id
                ));
                return self.change(TaskInput::Redo { fence: self.task.fence }).await;
            }
            Ok(worktree) => {
                let scene = Scene {
                    desk: self.desk,
                    task: &self.task,
                    worktree: &worktree.path,
                    cancel: &self.cancel,
                };
                steps::take(&step, &scene).await
            }
            Err(failure) => Err(failure),
        };
        if self.kept.lost.is_cancelled() {
            return Err(Early::Lost);
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
                self.desk.count_setback("steps", None);
                self.desk.tell(WorkEvent::StepDone { task: self.task.id.clone(), step: step.to_string() });
                self.reach_step(Moment::StepDone, &step).await
            }
            Err(failure) => self.step_failed(&step, pending.next, failure).await,
        }
    }

    async fn step_failed(&mut self, step: &Step, number: u32, failure: StepFailure) -> Result<(), Early> {
        let told = failure.clone();
        let systemic = match &failure {
            StepFailure::Systemic { outcome, reason } => Some((*outcome, format!("{step}: {reason}"))),
            _ => None,
        };
        self.change(TaskInput::StepFailed { fence: self.task.fence, step: number, failure }).await?;
        let (task, step) = (self.task.id.clone(), step.to_string());
        self.desk.tell(WorkEvent::StepFailed { task, step, failure: told });
        if let Some((outcome, reason)) = systemic {
            self.desk.stop_the_line_after_steps(outcome, reason).await?;
        }
        Ok(())
    }

    /// The task's worktree, made if it is not there.
    pub(super) async fn worktree(&self) -> Result<&Worktree, StepFailure> {
        let place = self.place.get_or_try_init(|| self.prepare()).await?;
        Ok(&place.0)
    }

    async fn prepare(&self) -> Result<(Worktree, Occupied), StepFailure> {
        let worker = &self.desk.worker;
        // What is there needs no base, and a remote that is asked takes its time.
        let base = if worker.worktrees.has(&self.task.id) { None } else { Some(self.base().await?) };
        let base = base.as_ref().map_or("HEAD", Oid::as_str);
        let fence = self.task.fence;
        let prepared = worker.worktrees.prepare(&self.task.id, fence, base).await;
        let worktree = prepared.map_err(|error| of_worktree(&error))?;
        let occupied = worker.worktrees.occupy(&worktree).await.map_err(|error| of_worktree(&error))?;
        let worktree = match (&worktree.origin, &self.task.delivery.pushed) {
            (Origin::Fresh | Origin::Warm | Origin::Rebuilt { .. }, Some(pushed)) => {
                self.bring_what_was_pushed(worktree, pushed).await?
            }
            _ => worktree,
        };
        Ok((worktree, occupied))
    }

    /// The work was done in another place: what was pushed of it is brought here.
    async fn bring_what_was_pushed(&self, worktree: Worktree, pushed: &str) -> Result<Worktree, StepFailure> {
        let (outlet, delivery) = (&self.desk.worker.outlet, &self.task.delivery);
        let git = rehearsal_forge::Git::at(worktree.path.clone());
        let branch = delivery.branch.as_deref().unwrap_or_default();
        let found = fetch(&git, &outlet.remote, branch).await;
        // A branch that is gone was merged and deleted, and one that others moved is not ours to take.
        let head = match found {
            Ok(head) if head.as_str() == pushed => head,
            Ok(_) | Err(_) => return Ok(worktree),
        };
        let moved = git.run(&["reset", "--quiet", "--hard", head.as_str()]).await;
        moved.map_err(|error| steps::of_git(&error))?;
        Ok(Worktree { head, ..worktree })
    }

    /// Whether what the agent did is not here.
    fn is_gone(&self, worktree: &Worktree) -> bool {
        let is_new = matches!(worktree.origin, Origin::Fresh | Origin::Warm);
        is_new && self.only_steps && self.task.agent.is_some() && self.task.delivery.pushed.is_none()
    }

    /// Where new work begins: the base as the remote has it, or as it is here if the remote does not answer.
    async fn base(&self) -> Result<Oid, StepFailure> {
        let worker = &self.desk.worker;
        let git = rehearsal_forge::Git::at(worker.worktrees.root());
        let outlet = &worker.outlet;
        match fetch(&git, &outlet.remote, &outlet.base).await {
            Ok(base) => Ok(base),
            Err(error) => match git.commit(&format!("refs/heads/{}", outlet.base)).await {
                Ok(base) => Ok(base),
                Err(_) => Err(StepFailure::Transient { reason: error.to_string() }),
            },
        }
    }

    pub(super) fn tell_prepared(&self, worktree: &Worktree) {
        let origin = match &worktree.origin {
            Origin::Fresh => "fresh",
            Origin::Warm => "warm",
            Origin::Reused => "reused",
            Origin::Rebuilt { .. } => "rebuilt",
        };
        self.desk.tell(WorkEvent::Prepared {
            task: self.task.id.clone(),
            worktree: worktree.path.to_string(),
            origin: origin.to_owned(),
        });
        if let Origin::Rebuilt { set_aside: Some(path) } = &worktree.origin {
            self.desk
                .warn(format!("the worktree of task {} was broken; its files are in `{path}`", self.task.id));
        }
    }

    /// Moves the task, in the name of its run.
    pub(super) async fn change(&mut self, input: TaskInput) -> Result<(), Early> {
        let changes = vec![Change::ChangeTask { id: self.task.id.clone(), input }];
        let committed = self.desk.commit(changes).await?;
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
        self.desk.tell(WorkEvent::Moved {
            task: self.task.id.clone(),
            title: self.task.title.clone(),
            from,
            to: self.task.state.clone(),
            status: self.task.status().to_owned(),
            reason,
        });
    }

    pub(super) async fn reach(&self, moment: Moment) -> Result<(), Early> {
        Ok(self.desk.reach(moment, &self.task.id, None).await?)
    }

    async fn reach_step(&self, moment: Moment, step: &Step) -> Result<(), Early> {
        Ok(self.desk.reach(moment, &self.task.id, Some(step.name())).await?)
    }
}

impl Desk {
    /// What is merged or pushed is elsewhere; anything else stays until `gc` is asked, which keeps it too.
    pub(super) async fn give_worktree_back(&self, task: &Task) {
        let delivery = &task.delivery;
        let saved = [&delivery.pushed, &delivery.merged];
        let is_out = delivery.pushed.is_some() || delivery.merged.is_some();
        let mut saved: Vec<Oid> = saved
            .into_iter()
            .filter_map(|oid| oid.as_deref().filter(|_| is_out).and_then(|oid| Oid::new(oid).ok()))
            .collect();
        if !is_out {
            // Nothing came of it, and it stands where the base stood: that is the remote's.
            let (outlet, git) = (&self.worker.outlet, rehearsal_forge::Git::at(self.worker.worktrees.root()));
            saved.extend(fetch(&git, &outlet.remote, &outlet.base).await.ok());
        }
        let released = self.worker.worktrees.release(&task.id, task.fence, &saved).await;
        if let Err(error) = released {
            self.warn(format!("the worktree of task {} stays: {error}", task.id));
        }
    }
}

/// What it means that there is no worktree. None of it is the agent's fault.
pub(super) fn of_worktree(error: &rehearsal_forge::WorktreeError) -> StepFailure {
    use rehearsal_forge::WorktreeError;
    let reason = error.to_string();
    match error {
        WorktreeError::Git(error) => steps::of_git(error),
        WorktreeError::Busy { .. } | WorktreeError::Superseded { .. } => StepFailure::Transient { reason },
        WorktreeError::Setup { .. }
        | WorktreeError::IncludesTooMuch { .. }
        | WorktreeError::Unsaved { .. } => StepFailure::Unknown { reason },
        WorktreeError::Inside { .. } => {
            StepFailure::Systemic { outcome: OutcomeName::PermissionDenied, reason }
        }
    }
}

/// Whether what was said of an outcome is the system's fault.
pub(super) fn is_system(outcome: &rehearsal_core::Outcome) -> bool {
    outcome.blame() == Blame::System
}

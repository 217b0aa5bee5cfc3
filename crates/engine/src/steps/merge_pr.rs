//! The merge queue: what lands is what was tested, byte for byte, and in order.
//!
//! Whoever wants to merge waits in line. Whoever comes first leads: it takes all that wait, stacks them on the base's
//! tip, tests the whole stack once, and moves the base to it by compare-and-swap. A red stack is halved until it is
//! known whose fault it is. A base that moved meanwhile only means to begin again.

use std::collections::VecDeque;
use std::sync::{Mutex as SyncMutex, PoisonError};

use rehearsal_core::{Delivery, Notice, OutcomeName, RedVerdict, StepFailure};
use rehearsal_forge::{Candidate, CandidateError, LandError, PrState, Worktree, WorktreeError, Worktrees};
use rehearsal_git::Oid;
use tokio::sync::{Mutex, oneshot};

use super::{StepContext, of_class, of_forge, of_git, red};
use crate::worker::Landing;

/// Times that the base may move under a merge before it is left for later.
const MOST_BUILDS: u32 = 5;

/// Those who want to merge, in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct MergeQueue {
    waiting: SyncMutex<VecDeque<Waiting>>,
    lead: Mutex<()>,
}

/// One who wants to merge.
#[derive(Debug)]
struct Waiting {
    wish: Wish,
    answer: oneshot::Sender<Result<Oid, StepFailure>>,
}

/// What is to be merged.
#[derive(Debug, Clone)]
struct Wish {
    head: Oid,
    message: String,
    /// The tree that is known to pass.
    tested: Option<Oid>,
}

impl MergeQueue {
    fn waiting(&self) -> std::sync::MutexGuard<'_, VecDeque<Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StepContext<'_> {
    /// Merges where landing is ours; elsewhere the open pull request is the result.
    pub(super) async fn land(&self) -> Result<Delivery, StepFailure> {
        match self.outlet.landing {
            Landing::Ours => self.merge_pr().await,
            Landing::Forge => Ok(self.delivery()),
        }
    }

    pub(super) async fn merge_pr(&self) -> Result<Delivery, StepFailure> {
        let (head, number) = (self.pushed()?, self.number()?);
        let view = self.view().await?;
        if let PrState::Merged { commit } = view.state {
            let merged = commit.unwrap_or(head);
            return Ok(Delivery { merged: Some(merged), ..self.delivery() });
        }
        if view.head_commit.as_ref().is_some_and(|found| *found != head) {
            let reason = format!("pull request {number} has commits that are not ours");
            return Err(StepFailure::Unknown { reason });
        }
        let merged = match self.outlet.landing {
            Landing::Ours => self.through_the_queue(&head, number).await?,
            Landing::Forge => self.by_the_forge(&head, number).await?,
        };
        Ok(Delivery { merged: Some(merged), ..self.delivery() })
    }

    async fn through_the_queue(&self, head: &Oid, number: u64) -> Result<Oid, StepFailure> {
        let queue = &self.state.merges;
        let message = format!("Merge pull request #{number}: {}", self.task.title);
        let wish = Wish { head: head.clone(), message, tested: self.task.delivery.tested_tree.clone() };
        let (answer, mut answered) = oneshot::channel();
        queue.waiting().push_back(Waiting { wish, answer });
        let _lead = queue.lead.lock().await;
        // Whoever led before may have merged ours with its own.
        if let Ok(answer) = answered.try_recv() {
            return answer;
        }
        self.merge_all_that_wait().await;
        answered.await.unwrap_or_else(|_| {
            Err(StepFailure::Transient { reason: "the merge was not carried out".into() })
        })
    }

    async fn merge_all_that_wait(&self) {
        let mut batch: Vec<Waiting> = self.state.merges.waiting().drain(..).collect();
        while !batch.is_empty() {
            let wishes: Vec<Wish> = batch.iter().map(|waiting| waiting.wish.clone()).collect();
            let done = self.merge_batch(&wishes).await;
            let rest = batch.split_off(done.len().min(batch.len()));
            for (waiting, result) in std::mem::replace(&mut batch, rest).into_iter().zip(done) {
                // Whoever is gone finds out by looking when it comes back.
                let _ = waiting.answer.send(result);
            }
        }
    }

    /// Merges as many from the front as can be decided now; at least one.
    async fn merge_batch(&self, wishes: &[Wish]) -> Vec<Result<Oid, StepFailure>> {
        let mut size = wishes.len();
        for _ in 0..MOST_BUILDS {
            match self.try_stack(&wishes[..size]).await {
                Ok(commits) => return commits.into_iter().map(Ok).collect(),
                Err(Setback::BaseMoved) => {}
                // Those before it fit together; it is judged against a base that has them.
                Err(Setback::Conflict { at, .. }) if at > 0 => size = at,
                Err(Setback::Red(_)) if size > 1 => size = size.div_ceil(2),
                Err(
                    Setback::Conflict { failure, .. } | Setback::Red(failure) | Setback::Trouble(failure),
                ) => {
                    return vec![Err(failure)];
                }
            }
        }
        vec![Err(StepFailure::Transient { reason: "the base keeps moving".into() })]
    }

    /// Builds the stack, tests it and lands it.
    async fn try_stack(&self, wishes: &[Wish]) -> Result<Vec<Oid>, Setback> {
        let git = self.git();
        let base = self.base_tip().await.map_err(Setback::Trouble)?;
        let mut stack: Vec<Candidate> = Vec::new();
        for (at, wish) in wishes.iter().enumerate() {
            let below = stack.last().map_or(&base, |candidate| &candidate.commit);
            match Candidate::build(&git, below, &wish.head, &wish.message).await {
                Ok(candidate) => stack.push(candidate),
                Err(error) => {
                    discard(stack, &git).await;
                    return Err(setback(at, &base, error));
                }
            }
        }
        let landed = self.test_and_land(&base, &stack, wishes).await;
        let commits = stack.iter().map(|candidate| candidate.commit.clone()).collect();
        discard(stack, &git).await;
        landed.map(|()| commits)
    }

    async fn test_and_land(&self, base: &Oid, stack: &[Candidate], wishes: &[Wish]) -> Result<(), Setback> {
        let Some(top) = stack.last() else { return Ok(()) };
        // A single one that stands on the tip was tested as it is.
        let is_tested = wishes.iter().any(|wish| wish.tested.as_ref() == Some(&top.tree));
        if !is_tested {
            self.gate(top).await?;
        }
        let outlet = self.outlet;
        match top.landing_on(base).land(&self.git(), &outlet.remote, &outlet.base, &top.tree).await {
            Ok(_) => Ok(()),
            Err(LandError::BaseMoved { .. }) => Err(Setback::BaseMoved),
            Err(error) => Err(Setback::Trouble(match error.class() {
                rehearsal_forge::ErrorClass::Task => red(RedVerdict::MergeFailed, error.to_string()),
                class => of_class(class, error.to_string()),
            })),
        }
    }

    /// Tests a candidate in a checkout of its own.
    async fn gate(&self, candidate: &Candidate) -> Result<(), Setback> {
        let checkout = self.check_out(&candidate.commit).await.map_err(Setback::Trouble)?;
        let tested = self.test_in(&checkout.path).await;
        self.give_back(&checkout, &candidate.commit).await;
        match tested {
            Ok(()) => Ok(()),
            Err(failure @ StepFailure::Red { .. }) => Err(Setback::Red(failure)),
            Err(failure) => Err(Setback::Trouble(failure)),
        }
    }

    async fn check_out(&self, commit: &Oid) -> Result<Worktree, StepFailure> {
        let gate = gate_of(self.task)?;
        let checkout = self.worktrees.prepare(&gate, self.task.fence, commit.as_str()).await;
        let checkout = checkout.map_err(|error| StepFailure::Transient { reason: error.to_string() })?;
        let git = rehearsal_git::Git::at(checkout.path.clone());
        let cleaned = async {
            git.run(&["reset", "--quiet", "--hard", commit.as_str()]).await?;
            git.run(&["clean", "--quiet", "-fd"]).await
        };
        cleaned.await.map_err(|error| of_git(&error))?;
        Ok(checkout)
    }

    async fn give_back(&self, checkout: &Worktree, commit: &Oid) {
        if let Err(error) = clear(self.worktrees, checkout, commit).await {
            self.state.warn(Notice::GateCheckoutKept { error: error.to_string() });
        }
    }

    /// Lets the forge merge, after the gate ran on what it will come to, and looks whether it is that.
    async fn by_the_forge(&self, head: &Oid, number: u64) -> Result<Oid, StepFailure> {
        let _lead = self.state.merges.lead.lock().await;
        let git = self.git();
        let base = self.base_tip().await?;
        let message = format!("Merge pull request #{number}");
        let candidate = match Candidate::build(&git, &base, head, &message).await {
            Ok(candidate) => candidate,
            Err(error) => return Err(setback(0, &base, error).into_failure()),
        };
        let tree = candidate.tree.clone();
        let gated = if self.task.delivery.tested_tree.as_ref() == Some(&tree) {
            Ok(())
        } else {
            self.gate(&candidate).await
        };
        discard(vec![candidate], &git).await;
        gated.map_err(Setback::into_failure)?;
        let outlet = self.outlet;
        let merged = outlet.forge.merge(number, head).await;
        let merged = merged.map_err(|error| of_forge(&error, RedVerdict::MergeFailed))?;
        let tip = self.base_tip().await?;
        let landed = merged.commit.unwrap_or_else(|| tip.clone());
        if self.tree(&landed).await.ok().as_ref() != Some(&tree) {
            self.state.warn(Notice::MergedUntested { number, commit: landed.clone() });
        }
        Ok(landed)
    }
}

/// Why a stack did not land.
enum Setback {
    /// Someone else landed first.
    BaseMoved,
    /// One of them does not fit on those before it.
    Conflict { at: usize, failure: StepFailure },
    /// The tests of the whole stack are red.
    Red(StepFailure),
    /// Nothing was decided.
    Trouble(StepFailure),
}

impl Setback {
    fn into_failure(self) -> StepFailure {
        match self {
            Self::BaseMoved => StepFailure::Transient { reason: "the base has moved".into() },
            Self::Conflict { failure, .. } | Self::Red(failure) | Self::Trouble(failure) => failure,
        }
    }
}

fn setback(at: usize, base: &Oid, error: CandidateError) -> Setback {
    match error {
        CandidateError::Conflict { .. } => {
            let failure = red(RedVerdict::Conflict, format!("{error} (at {base:.10})"));
            Setback::Conflict { at, failure }
        }
        CandidateError::Git(error) => Setback::Trouble(of_git(&error)),
    }
}

async fn discard(stack: Vec<Candidate>, git: &rehearsal_git::Git) {
    for candidate in stack {
        // A reference that stays is swept up with the rest.
        let _ = candidate.discard(git).await;
    }
}

/// What is in the checkout of a gate is a merge that can be made again, and what the tests wrote.
async fn clear(worktrees: &Worktrees, checkout: &Worktree, commit: &Oid) -> Result<(), WorktreeError> {
    let git = rehearsal_git::Git::at(checkout.path.clone());
    let _ = git.run(&["clean", "--quiet", "-fd"]).await;
    let _ = git.run(&["reset", "--quiet", "--hard", commit.as_str()]).await;
    worktrees.release(&checkout.task, checkout.fence, std::slice::from_ref(commit)).await.map(drop)
}

/// Clears the checkout in which the gate of a task ran when its worker died. The task is over.
pub(crate) async fn clear_gate_of(
    task: &rehearsal_core::Task,
    worktrees: &Worktrees,
) -> Result<(), WorktreeError> {
    let Ok(gate) = gate_of(task) else { return Ok(()) };
    let checkout = worktrees.prepare(&gate, task.fence, "HEAD").await?;
    let commit = rehearsal_git::Git::at(checkout.path.clone()).commit("HEAD").await?;
    clear(worktrees, &checkout, &commit).await
}

/// The task whose gate has a checkout under this name.
pub(crate) fn task_of_gate(name: &rehearsal_core::TaskId) -> Option<rehearsal_core::TaskId> {
    rehearsal_core::TaskId::new(name.as_str().strip_suffix(GATE)?).ok()
}

/// What the name of a gate's checkout ends with.
const GATE: &str = "-gate";

/// The gate of a task has a checkout of its own beside the task's.
fn gate_of(task: &rehearsal_core::Task) -> Result<rehearsal_core::TaskId, StepFailure> {
    rehearsal_core::TaskId::new(format!("{}{GATE}", task.id)).map_err(|error| StepFailure::Systemic {
        outcome: OutcomeName::PermissionDenied,
        reason: error.to_string(),
    })
}

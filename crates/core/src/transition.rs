//! The one function that moves tasks.
//!
//! `(task, input, flow, now) → task`, pure. The store calls it inside the transaction that writes the task and
//! its event; nothing else changes a task. Every claim ends in one place, [`release_claim`].

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::flow::{End, Flow, State};
use crate::{
    Blame, Claim, Fence, Outcome, RunId, Standing, StateName, Task, TaskEdit, Timestamp, Wait, WaitFor,
    WorkerId,
};

/// What can happen to a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TaskInput {
    /// Its words are changed.
    Edit {
        /// How.
        edit: TaskEdit,
    },
    /// A worker takes it for a run.
    Claim {
        /// The worker.
        worker: WorkerId,
        /// The run.
        run: RunId,
    },
    /// The run that claimed it is over.
    EndRun {
        /// The fence of the claim.
        fence: Fence,
        /// How it ended.
        outcome: Outcome,
    },
    /// The claim is given back, and nobody is blamed.
    Release {
        /// The fence of the claim.
        fence: Fence,
    },
    /// It needs a human.
    Block {
        /// What for.
        reason: String,
    },
    /// What it waited for is there.
    Unblock,
    /// It is done.
    Finish,
    /// It will not be done.
    Cancel,
    /// It begins anew, also after its end.
    Retry,
}

/// Why something cannot happen to a task.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Its end is reached; only a retry leads out of it.
    #[error("task `{task}` is already {status}")]
    Ended {
        /// Which task.
        task: String,
        /// What it is.
        status: String,
    },
    /// Someone works on it.
    #[error("task `{task}` is being worked on by run `{run}`")]
    Claimed {
        /// Which task.
        task: String,
        /// By which run.
        run: RunId,
    },
    /// It waits.
    #[error("task `{task}` waits: {reason}")]
    Waits {
        /// Which task.
        task: String,
        /// For what.
        reason: String,
    },
    /// It waits for nothing.
    #[error("task `{task}` is not blocked")]
    NotBlocked {
        /// Which task.
        task: String,
    },
    /// The writer lost the task to someone else: a normal end for a worker that slept.
    #[error("fence {given} of task `{task}` is stale: it is {current} now")]
    Stale {
        /// Which task.
        task: String,
        /// The fence that the writer has.
        given: Fence,
        /// The fence as it is.
        current: Fence,
    },
    /// It would wait for itself.
    #[error("task `{task}` cannot depend on itself")]
    DependsOnItself {
        /// Which task.
        task: String,
    },
    /// A task without a title says nothing.
    #[error("a task needs a title")]
    NoTitle,
    /// The flow says nothing about where to go.
    #[error("flow `{flow}` has no edge for outcome `{outcome}` in state `{state}`")]
    NoEdge {
        /// Which flow.
        flow: String,
        /// Which state.
        state: String,
        /// Which outcome.
        outcome: String,
    },
}

/// The first wait after a failure of the system that named no time; it doubles with each in a row.
const FIRST_WAIT: Duration = Duration::from_secs(60);
/// The longest such wait.
const LONGEST_WAIT: Duration = Duration::from_secs(30 * 60);

/// Moves a task. The given task is as the store has it; the result replaces it.
pub fn transition(task: &Task, input: &TaskInput, flow: &Flow, now: Timestamp) -> Result<Task, Refusal> {
    let mut next = task.clone();
    next.updated_at = now;
    match input {
        TaskInput::Edit { edit } => apply_edit(&mut next, edit)?,
        TaskInput::Claim { worker, run } => claim(&mut next, worker, run, now)?,
        TaskInput::EndRun { fence, outcome } => {
            check_fence(task, *fence)?;
            end_run(&mut next, outcome, flow, now)?;
        }
        TaskInput::Release { fence } => {
            check_fence(task, *fence)?;
            release_claim(&mut next);
            next.standing = Standing::Ready;
        }
        TaskInput::Block { reason } => {
            refuse_ended(task)?;
            release_claim(&mut next);
            next.standing =
                Standing::Waiting(Wait { wait_for: WaitFor::Human, reason: reason.clone(), until: None });
        }
        TaskInput::Unblock => unblock(&mut next, flow)?,
        TaskInput::Finish => {
            refuse_ended(task)?;
            release_claim(&mut next);
            finish(&mut next, flow);
        }
        TaskInput::Cancel => {
            refuse_ended(task)?;
            release_claim(&mut next);
            next.standing = Standing::Ended { end: End::Cancelled };
        }
        TaskInput::Retry => {
            if let Standing::Claimed(claim) = &task.standing {
                return Err(Refusal::Claimed { task: task.id.to_string(), run: claim.run.clone() });
            }
            release_claim(&mut next);
            begin_anew(&mut next, flow);
        }
    }
    Ok(next)
}

/// Ends any claim. The fence moves, so that whoever held it can write nothing more.
fn release_claim(task: &mut Task) {
    if matches!(task.standing, Standing::Claimed(_)) {
        task.standing = Standing::Ready;
        task.fence = task.fence.next();
    }
}

fn claim(task: &mut Task, worker: &WorkerId, run: &RunId, now: Timestamp) -> Result<(), Refusal> {
    refuse_ended(task)?;
    match &task.standing {
        Standing::Claimed(claim) => {
            return Err(Refusal::Claimed { task: task.id.to_string(), run: claim.run.clone() });
        }
        Standing::Waiting(wait) if wait.until.is_none_or(|until| until > now) => {
            return Err(Refusal::Waits { task: task.id.to_string(), reason: wait.reason.clone() });
        }
        Standing::Ready | Standing::Waiting(_) | Standing::Ended { .. } => {}
    }
    task.fence = task.fence.next();
    task.standing = Standing::Claimed(Claim { worker: worker.clone(), run: run.clone(), since: now });
    Ok(())
}

fn end_run(task: &mut Task, outcome: &Outcome, flow: &Flow, now: Timestamp) -> Result<(), Refusal> {
    release_claim(task);
    task.last_outcome = Some(outcome.clone());
    count(task, outcome);
    match outcome.blame() {
        Blame::System => {
            task.standing = Standing::Waiting(system_wait(outcome, task.setbacks, now));
        }
        Blame::User => task.standing = Standing::Ready,
        Blame::Nobody | Blame::Task | Blame::Agent => follow_edge(task, outcome, flow)?,
    }
    Ok(())
}

fn count(task: &mut Task, outcome: &Outcome) {
    match outcome {
        Outcome::NeedsContinuation { .. } => task.continuations += 1,
        Outcome::Rejected { .. } => task.rejections += 1,
        _ => {}
    }
    if outcome.name().costs_attempt() {
        task.attempts += 1;
    }
    task.setbacks = if outcome.blame() == Blame::System { task.setbacks + 1 } else { 0 };
}

fn system_wait(outcome: &Outcome, setbacks: u32, now: Timestamp) -> Wait {
    let name = outcome.name();
    let backoff = FIRST_WAIT.saturating_mul(1 << setbacks.saturating_sub(1).min(10)).min(LONGEST_WAIT);
    // A vendor whose clock is behind names an hour that is past; trying again at once would hammer it.
    let told = outcome.until().filter(|until| *until > now);
    // What only a hand can mend has no hour; the next `run` may try again at once.
    let until = if name.passes_with_time() { told.unwrap_or_else(|| now.plus(backoff)) } else { now };
    Wait { wait_for: WaitFor::System(name), reason: outcome.to_string(), until: Some(until) }
}

fn follow_edge(task: &mut Task, outcome: &Outcome, flow: &Flow) -> Result<(), Refusal> {
    let no_edge = || Refusal::NoEdge {
        flow: flow.name.to_string(),
        state: task.state.to_string(),
        outcome: outcome.name().to_string(),
    };
    let Some(State::Work { on, .. }) = flow.states.get(&task.state) else {
        return Err(no_edge());
    };
    let (name, edge) = on.find(outcome.name().into()).ok_or_else(no_edge)?;
    let mut to = edge.to.clone();
    if let Some(limit) = &edge.limit {
        let taken = task.edges_taken.entry(format!("{}/{name}", task.state)).or_insert(0);
        *taken += 1;
        if *taken > limit.at_most {
            to = limit.then.clone();
        }
    }
    move_to(task, &to, flow);
    if let Standing::Waiting(wait) = &mut task.standing
        && let Some(detail) = outcome.detail()
    {
        wait.reason = detail;
    }
    Ok(())
}

fn move_to(task: &mut Task, to: &StateName, flow: &Flow) {
    if task.state != *to {
        task.came_from = Some(task.state.clone());
        task.state = to.clone();
    }
    task.standing = flow.standing_in(to);
}

fn unblock(task: &mut Task, flow: &Flow) -> Result<(), Refusal> {
    refuse_ended(task)?;
    if !matches!(task.standing, Standing::Waiting(_)) {
        return Err(Refusal::NotBlocked { task: task.id.to_string() });
    }
    let back = match flow.states.get(&task.state) {
        Some(State::Work { .. }) => task.state.clone(),
        _ => task.came_from.clone().unwrap_or_else(|| flow.start.clone()),
    };
    task.setbacks = 0;
    move_to(task, &back, flow);
    Ok(())
}

fn finish(task: &mut Task, flow: &Flow) {
    if let Some(state) = flow.success_state()
        && task.state != *state
    {
        task.came_from = Some(task.state.clone());
        task.state = state.clone();
    }
    task.standing = Standing::Ended { end: End::Success };
}

fn begin_anew(task: &mut Task, flow: &Flow) {
    task.came_from = None;
    task.attempts = 0;
    task.continuations = 0;
    task.setbacks = 0;
    task.edges_taken.clear();
    task.state = flow.start.clone();
    task.standing = flow.standing_in(&flow.start);
}

fn apply_edit(task: &mut Task, edit: &TaskEdit) -> Result<(), Refusal> {
    let edit = edit.clone();
    if edit.title.as_ref().is_some_and(|title| title.trim().is_empty()) {
        return Err(Refusal::NoTitle);
    }
    if edit.depends_on.as_ref().is_some_and(|ids| ids.contains(&task.id)) {
        return Err(Refusal::DependsOnItself { task: task.id.to_string() });
    }
    task.title = edit.title.unwrap_or_else(|| task.title.clone());
    task.body = edit.body.unwrap_or_else(|| task.body.clone());
    task.criteria = edit.criteria.unwrap_or_else(|| task.criteria.clone());
    task.priority = edit.priority.unwrap_or(task.priority);
    task.labels = edit.labels.unwrap_or_else(|| task.labels.clone());
    task.depends_on = edit.depends_on.unwrap_or_else(|| task.depends_on.clone());
    task.budget = edit.budget.unwrap_or(task.budget);
    Ok(())
}

fn refuse_ended(task: &Task) -> Result<(), Refusal> {
    if task.is_ended() {
        return Err(Refusal::Ended { task: task.id.to_string(), status: task.status().to_owned() });
    }
    Ok(())
}

fn check_fence(task: &Task, given: Fence) -> Result<(), Refusal> {
    if task.fence == given && matches!(task.standing, Standing::Claimed(_)) {
        return Ok(());
    }
    Err(Refusal::Stale { task: task.id.to_string(), given, current: task.fence })
}

#[cfg(test)]
mod tests;

//! The one function that moves tasks.
//!
//! `(task, input, flow, now) → task`, pure. The store calls it inside the transaction that writes the task and
//! its event; nothing else changes a task. Every claim ends in one place, [`release_claim`].

mod decide;
mod steps;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::flow::{EdgeName, End, Flow, State};
use crate::{
    AgentName, Blame, Claim, Delivery, Feedback, Fence, Oid, Outcome, PendingSteps, RunId, Standing,
    StateName, StepFailure, Task, TaskEdit, Timestamp, Wait, WaitFor, WorkerId,
};
use steps::{offer, step_done, step_failed};

/// What can happen to a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// A worker takes it from another one whose lease is over. Whoever writes this has made sure of that in the
    /// same transaction.
    TakeOver {
        /// The new worker.
        worker: WorkerId,
        /// Its run.
        run: RunId,
        /// The fence of the claim that is over.
        stale: Fence,
    },
    /// Its worker is proven dead. Nobody has taken it yet.
    Lose {
        /// The fence of the claim that is over.
        stale: Fence,
        /// The worker that died: a claim that another has adopted since is not over.
        of: WorkerId,
    },
    /// What its agent did is gone with the machine that it was done on: the agent has to work again.
    Redo {
        /// The fence of the claim.
        fence: Fence,
    },
    /// A new process on the same machine goes on where one stopped that is proven dead, with its agent or its steps; the
    /// run and the fence stay.
    Adopt {
        /// The fence of the claim.
        fence: Fence,
        /// The process that died: of two that want to go on, only the first finds it here.
        from: WorkerId,
        /// The new process.
        by: WorkerId,
    },
    /// The remote's branch is about to be moved to a commit. Whoever finds it there later knows that it was us.
    Offer {
        /// The fence of the claim.
        fence: Fence,
        /// Which step does it, counted from 0.
        step: u32,
        /// The commit.
        commit: Oid,
    },
    /// A step of its state is done, and its effect was seen to last.
    StepDone {
        /// The fence of the claim.
        fence: Fence,
        /// Which step, counted from 0.
        step: u32,
        /// The work as it is outside now.
        delivery: Box<Delivery>,
    },
    /// A step of its state is not done.
    StepFailed {
        /// The fence of the claim.
        fence: Fence,
        /// Which step, counted from 0.
        step: u32,
        /// Why.
        failure: StepFailure,
    },
    /// A person decides what a state waits for.
    Decide {
        /// Whether it may go on.
        approve: bool,
        /// What has to change, or a word with the approval.
        comment: String,
    },
    /// The run that claimed it is over.
    EndRun {
        /// The fence of the claim.
        fence: Fence,
        /// How it ended.
        outcome: Outcome,
    },
    /// The system keeps its agent from working, and another one takes over at once.
    FallBack {
        /// The other one.
        to: AgentName,
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
    /// A person answers what it waited for. The next run reads the answer in place of what was said before.
    Answer {
        /// The answer.
        text: String,
    },
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
    /// The claim is the one that is meant, but its worker is not: another one has adopted it since.
    #[error("task `{task}` is held by worker `{holder}`, not by `{given}`")]
    OtherWorker {
        /// Which task.
        task: String,
        /// The worker that is to be replaced.
        given: WorkerId,
        /// The worker that holds it.
        holder: WorkerId,
    },
    /// The flow does not ask anybody in this state.
    #[error("task `{task}` does not wait for a decision: it is {status}")]
    NoDecision {
        /// Which task.
        task: String,
        /// What it is.
        status: String,
    },
    /// A run ends once.
    #[error("the run of task `{task}` is over, and its steps are under way")]
    RunOver {
        /// Which task.
        task: String,
    },
    /// Steps are done in their order, each once.
    #[error("step {given} of task `{task}` cannot be told: {expected}")]
    WrongStep {
        /// Which task.
        task: String,
        /// The step that was told.
        given: u32,
        /// What is to be told.
        expected: String,
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
pub const LONGEST_WAIT: Duration = Duration::from_secs(30 * 60);

/// Workers that one task may lose before it is held to be the cause.
const MOST_LOSSES: u32 = 3;

/// Moves a task. The given task is as the store has it; the result replaces it.
pub fn transition(task: &Task, input: &TaskInput, flow: &Flow, now: Timestamp) -> Result<Task, Refusal> {
    let mut next = task.clone();
    next.updated_at = now;
    match input {
        TaskInput::Edit { edit } => apply_edit(&mut next, edit, flow)?,
        TaskInput::Claim { worker, run } => claim(&mut next, worker, run, now)?,
        TaskInput::TakeOver { worker, run, stale } => {
            check_fence(task, *stale)?;
            if lose(&mut next, flow) {
                hold(&mut next, worker, run, now);
            }
        }
        TaskInput::Lose { stale, of } => {
            check_holder(task, *stale, of)?;
            lose(&mut next, flow);
        }
        TaskInput::Redo { fence } => {
            check_fence(task, *fence)?;
            release_claim(&mut next);
            next.standing = Standing::Ready;
            next.pending = flow.steps_alone(&task.state);
        }
        TaskInput::Adopt { fence, from, by } => {
            let claim = check_holder(task, *fence, from)?;
            // An agent has outlived its worker. A step has not: it may be what killed it.
            if task.pending.is_none() || lose(&mut next, flow) {
                next.fence = task.fence;
                next.standing = Standing::Claimed(Claim { worker: by.clone(), ..claim.clone() });
            }
        }
        TaskInput::Offer { fence, step, commit } => {
            check_fence(task, *fence)?;
            offer(&mut next, *step, commit)?;
        }
        TaskInput::StepDone { fence, step, delivery } => {
            check_fence(task, *fence)?;
            step_done(&mut next, *step, delivery, flow)?;
        }
        TaskInput::StepFailed { fence, step, failure } => {
            check_fence(task, *fence)?;
            step_failed(&mut next, *step, failure, flow, now)?;
        }
        TaskInput::Decide { approve, comment } => decide::decide(&mut next, *approve, comment, flow)?,
        TaskInput::EndRun { fence, outcome } => {
            let run = check_fence(task, *fence)?.run.clone();
            end_run(&mut next, run, outcome, flow, now)?;
        }
        TaskInput::FallBack { .. } => fall_back(&mut next)?,
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
        TaskInput::Answer { text } => answer(&mut next, text, flow)?,
        TaskInput::Finish => {
            refuse_ended(task)?;
            release_claim(&mut next);
            next.pending = None;
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
    hold(task, worker, run, now);
    Ok(())
}

fn hold(task: &mut Task, worker: &WorkerId, run: &RunId, now: Timestamp) {
    task.fence = task.fence.next();
    task.standing = Standing::Claimed(Claim { worker: worker.clone(), run: run.clone(), since: now });
}

/// A claim is lost with its worker; whether the task can be claimed again. One that loses worker after worker kills
/// them, more likely than not.
fn lose(task: &mut Task, flow: &Flow) -> bool {
    release_claim(task);
    task.losses += 1;
    if task.losses > MOST_LOSSES {
        let reason = format!("its worker was lost {} times", task.losses);
        if task.pending.is_some() {
            // What a step did before its worker was lost is not known, and may be out already: that is no bad end.
            leave_to_a_human(task, "lease", reason);
        } else {
            give_up(task, "lease", reason, flow);
        }
        return false;
    }
    true
}

/// Ends a task badly, or leaves it to a human where the flow has no bad end.
fn give_up(task: &mut Task, from: &str, reason: String, flow: &Flow) {
    match flow.failure_state().cloned() {
        Some(state) => {
            task.feedback = Some(Feedback { from: from.to_owned(), text: reason });
            move_to(task, &state, flow);
        }
        None => leave_to_a_human(task, from, reason),
    }
}

fn leave_to_a_human(task: &mut Task, from: &str, reason: String) {
    task.feedback = Some(Feedback { from: from.to_owned(), text: reason.clone() });
    task.standing = Standing::Waiting(Wait { wait_for: WaitFor::Human, reason, until: None });
}

fn end_run(
    task: &mut Task,
    run: RunId,
    outcome: &Outcome,
    flow: &Flow,
    now: Timestamp,
) -> Result<(), Refusal> {
    // Told twice, because the first answer was lost: it counts once, and the steps do not begin again.
    if task.pending.is_some() {
        return Err(Refusal::RunOver { task: task.id.to_string() });
    }
    task.last_outcome = Some(outcome.clone());
    task.feedback = outcome_feedback(outcome);
    task.losses = 0;
    count(task, outcome);
    if flow.steps_follow(&task.state, outcome.name()) {
        // The same worker goes on with the steps, under the same claim.
        task.pending = Some(PendingSteps { outcome: outcome.clone(), run: Some(run), next: 0, tries: 0 });
        return Ok(());
    }
    release_claim(task);
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

/// It waits for its agent no longer. Who works on it is decided when it is claimed.
fn fall_back(task: &mut Task) -> Result<(), Refusal> {
    match &task.standing {
        Standing::Waiting(Wait { wait_for: WaitFor::System(_), .. }) => {
            task.standing = Standing::Ready;
            Ok(())
        }
        _ => Err(Refusal::NotBlocked { task: task.id.to_string() }),
    }
}

/// How long an agent is left alone after the system failed it so many times in a row.
pub fn system_wait(outcome: &Outcome, setbacks: u32, now: Timestamp) -> Wait {
    let name = outcome.name();
    let backoff = FIRST_WAIT.saturating_mul(1 << setbacks.saturating_sub(1).min(10)).min(LONGEST_WAIT);
    // A vendor whose clock is behind names an hour that is past; trying again at once would hammer it.
    let told = outcome.until().filter(|until| *until > now);
    // What only a hand can mend has no hour; the next `run` may try again at once.
    let until = if name.passes_with_time() { told.unwrap_or_else(|| now.plus(backoff)) } else { now };
    Wait { wait_for: WaitFor::System(name), reason: outcome.to_string(), until: Some(until) }
}

/// What an agent's end has to say to the next run.
fn outcome_feedback(outcome: &Outcome) -> Option<Feedback> {
    let (from, text) = match outcome {
        Outcome::Rejected { comment } => ("review", comment),
        Outcome::NeedsContinuation { reason } => ("agent", reason),
        Outcome::Continue { message } => ("agent", message),
        _ => return None,
    };
    Some(Feedback { from: from.to_owned(), text: text.clone() })
}

fn follow_edge(task: &mut Task, outcome: &Outcome, flow: &Flow) -> Result<(), Refusal> {
    take_edge(task, &[outcome.name().into()], flow)?;
    let why = outcome.detail().or_else(|| (outcome.blame() != Blame::Nobody).then(|| outcome.to_string()));
    explain_wait(task, why);
    Ok(())
}

/// A state that waits for a human says why a task came there, where that is known.
fn explain_wait(task: &mut Task, why: Option<String>) {
    if let (Standing::Waiting(wait), Some(why)) = (&mut task.standing, why) {
        wait.reason = why;
    }
}

/// Takes the first of these edges that the state has.
fn take_edge(task: &mut Task, names: &[EdgeName], flow: &Flow) -> Result<(), Refusal> {
    let no_edge = || Refusal::NoEdge {
        flow: flow.name.to_string(),
        state: task.state.to_string(),
        outcome: names.iter().map(|name| name.as_str()).next().unwrap_or_default().to_owned(),
    };
    let Some(State::Work { on, .. } | State::Wait { on, .. }) = flow.states.get(&task.state) else {
        return Err(no_edge());
    };
    let (name, edge) = names.iter().find_map(|name| on.find(*name)).ok_or_else(no_edge)?;
    let mut to = edge.to.clone();
    if let Some(limit) = &edge.limit {
        let taken = task.edges_taken.entry(format!("{}/{name}", task.state)).or_insert(0);
        *taken += 1;
        if *taken > limit.at_most {
            to = limit.then.clone();
        }
    }
    move_to(task, &to, flow);
    Ok(())
}

fn move_to(task: &mut Task, to: &StateName, flow: &Flow) {
    if task.state != *to {
        task.came_from = Some(task.state.clone());
        task.state = to.clone();
    }
    task.agent = flow.agent_for(to, task.author.as_ref()).cloned();
    task.pending = flow.steps_alone(to);
    task.standing = flow.standing_in(to);
}

/// Whether a greater budget is what it waits for.
fn waits_for_a_budget(task: &Task) -> bool {
    matches!(&task.standing, Standing::Waiting(wait) if wait.wait_for == WaitFor::Human)
        && matches!(task.last_outcome, Some(Outcome::BudgetReached { .. }))
}

fn unblock(task: &mut Task, flow: &Flow) -> Result<(), Refusal> {
    refuse_ended(task)?;
    if !matches!(task.standing, Standing::Waiting(_)) {
        return Err(Refusal::NotBlocked { task: task.id.to_string() });
    }
    (task.setbacks, task.losses) = (0, 0);
    match flow.states.get(&task.state) {
        // Steps that were under way go on where they were.
        Some(State::Work { .. }) => task.standing = Standing::Ready,
        _ => {
            let back = task.came_from.clone().unwrap_or_else(|| flow.start.clone());
            move_to(task, &back, flow);
        }
    }
    Ok(())
}

fn answer(task: &mut Task, text: &str, flow: &Flow) -> Result<(), Refusal> {
    unblock(task, flow)?;
    task.feedback = Some(Feedback::answer(text));
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
    task.attempts = 0;
    task.continuations = 0;
    task.setbacks = 0;
    task.losses = 0;
    task.edges_taken.clear();
    task.feedback = None;
    // The branch stays its own, and where it stands must be known to move it; the rest was another time's work.
    let Delivery { branch, pushed, offered, .. } = std::mem::take(&mut task.delivery);
    task.delivery = Delivery { branch, pushed, offered, ..Delivery::default() };
    move_to(task, &flow.start, flow);
    task.came_from = None;
}

fn apply_edit(task: &mut Task, edit: &TaskEdit, flow: &Flow) -> Result<(), Refusal> {
    let edit = edit.clone();
    let is_what_it_waits_for = edit.budget.is_some() && waits_for_a_budget(task);
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
    task.touches = edit.touches.unwrap_or_else(|| task.touches.clone());
    task.budget = edit.budget.unwrap_or(task.budget);
    if is_what_it_waits_for { unblock(task, flow) } else { Ok(()) }
}

fn refuse_ended(task: &Task) -> Result<(), Refusal> {
    if task.is_ended() {
        return Err(Refusal::Ended { task: task.id.to_string(), status: task.status().to_owned() });
    }
    Ok(())
}

fn check_fence(task: &Task, given: Fence) -> Result<&Claim, Refusal> {
    match &task.standing {
        Standing::Claimed(claim) if task.fence == given => Ok(claim),
        _ => Err(Refusal::Stale { task: task.id.to_string(), given, current: task.fence }),
    }
}

/// An adoption leaves the fence as it was: who writes about a worker that died has to name it, too.
fn check_holder<'a>(task: &'a Task, fence: Fence, given: &WorkerId) -> Result<&'a Claim, Refusal> {
    let claim = check_fence(task, fence)?;
    if claim.worker == *given {
        return Ok(claim);
    }
    let (task, given, holder) = (task.id.to_string(), given.clone(), claim.worker.clone());
    Err(Refusal::OtherWorker { task, given, holder })
}

#[cfg(test)]
mod tests;

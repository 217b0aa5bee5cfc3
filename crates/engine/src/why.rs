//! `why TASK`: the exact reason a task is not moving, and what to do about it.

mod ready;

use camino::Utf8Path;
use rehearsal_core::flow::{End, Flow, State};
use rehearsal_core::guard::Limits;
use rehearsal_core::{
    Claim, Feedback, NextAction, Outcome, Standing, Task, TaskId, Timestamp, Wait, WaitFor,
};
use rehearsal_store::{Store, StoreError};
use serde::{Deserialize, Serialize};

use crate::worker::{Alive, Presence, WorkerKind, denied_in_last_run, is_to_be_found};

/// The answer: what holds the task, and what to do about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Why {
    /// The task.
    pub task: TaskId,
    /// Its title.
    pub title: String,
    /// What it is.
    pub status: String,
    /// The reasons, the deciding one first.
    pub reasons: Vec<String>,
    /// What to do.
    #[serde(skip)]
    pub next: Vec<NextAction>,
    /// When it goes on by itself, if it waits for a time.
    pub until: Option<Timestamp>,
    /// Until when its worker holds it, unless it says again that it is alive.
    pub lease_until: Option<Timestamp>,
}

/// What the answer goes by, beside the store.
#[derive(Debug, Clone, Copy)]
pub struct Surroundings<'a> {
    /// The time.
    pub now: Timestamp,
    /// What the configuration allows.
    pub limits: &'a Limits,
    /// The process of the loop that runs in this checkout.
    pub loop_holder: Option<&'a str>,
    /// Where workers of this machine leave their traces.
    pub state_dir: &'a Utf8Path,
}

/// Finds out why a task is where it is.
pub async fn why(store: &dyn Store, task: &Task, around: &Surroundings<'_>) -> Result<Why, StoreError> {
    let mut why = Why {
        task: task.id.clone(),
        title: task.title.clone(),
        status: task.status().to_owned(),
        reasons: Vec::new(),
        next: Vec::new(),
        until: None,
        lease_until: None,
    };
    let flow = store.flow(&task.flow_version).await?;
    match &task.standing {
        Standing::Ended { end } => explain_end(task, *end, &mut why),
        Standing::Claimed(claim) => explain_claim(store, task, claim, around, &mut why).await?,
        Standing::Waiting(wait) if is_over(wait, around.now) => {
            why.reasons.push(format!("its wait is over ({})", wait.reason));
            ready::explain(store, task, &flow, around, &mut why).await?;
        }
        Standing::Waiting(wait) => {
            why.until = wait.until;
            why.reasons.extend(what_led_here(task, &flow, wait));
            why.reasons.push(wait.reason.clone());
            explain_wait(store, task, &flow, wait, around, &mut why).await?;
        }
        Standing::Ready => ready::explain(store, task, &flow, around, &mut why).await?,
    }
    why.reasons.extend(next_step(task, &flow));
    if !task.is_ended() {
        why.reasons.extend(denied_in_last_run(store, task).await?);
    }
    if let Some(outcome) = &task.last_outcome
        && *outcome != Outcome::Done
        && !task.is_ended()
        && !is_told(&why.reasons, &outcome.to_string())
    {
        why.reasons.push(format!("its last run ended with {outcome} ({} so far)", attempts(task)));
    }
    Ok(why)
}

fn is_told(reasons: &[String], outcome: &str) -> bool {
    reasons.iter().any(|reason| reason.contains(outcome) || outcome.contains(reason.as_str()))
}

fn attempts(task: &Task) -> String {
    if task.attempts == 1 { "1 attempt".to_owned() } else { format!("{} attempts", task.attempts) }
}

fn is_over(wait: &Wait, now: Timestamp) -> bool {
    wait.until.is_some_and(|until| until <= now)
}

fn explain_end(task: &Task, end: End, why: &mut Why) {
    match end {
        End::Success => why.reasons.push("it is done".into()),
        End::Cancelled => {
            why.reasons.push("it was cancelled".into());
            why.next.push(NextAction::Retry { task: task.id.clone() });
        }
        End::Failure => {
            let last = match (&task.feedback, &task.last_outcome) {
                (Some(feedback), Some(Outcome::Done) | None) => format!("; {}", said(feedback)),
                (_, Some(outcome)) => format!("; its last run ended with {outcome}"),
                (None, None) => String::new(),
            };
            why.reasons.push(format!("it failed after {}{last}", attempts(task)));
            why.next.push(NextAction::ListRuns { task: task.id.clone() });
            why.next.push(NextAction::Retry { task: task.id.clone() });
        }
    }
}

async fn explain_claim(
    store: &dyn Store,
    task: &Task,
    claim: &Claim,
    around: &Surroundings<'_>,
    why: &mut Why,
) -> Result<(), StoreError> {
    let seconds = around.now.since(claim.since).as_secs();
    let leases = store.leases().await?;
    let worker = &claim.worker;
    if Presence::kind_of(around.state_dir, worker) == WorkerKind::Run {
        why.reasons.push(format!("run {} has worked on it for {seconds} s", claim.run));
        if Presence::of(around.state_dir, worker) == Alive::No {
            why.reasons.push("but no loop is running here: its worker has died".into());
            why.next.push(NextAction::Run { session: task.session.clone() });
        } else {
            why.next.push(NextAction::FollowLogs { run: claim.run.clone() });
        }
        return Ok(());
    }
    let Some((_, until)) = leases.into_iter().find(|(leased, _)| leased.id == task.id) else {
        return Ok(());
    };
    why.lease_until = Some(until);
    why.reasons.push(match task.next_agent() {
        Some(agent) => {
            format!("{agent} has worked on it for {seconds} s (run {}, worker {worker})", claim.run)
        }
        None => format!("worker {worker} has done its steps for {seconds} s"),
    });
    match Presence::of(around.state_dir, worker) {
        Alive::No if is_to_be_found(around.state_dir, &claim.run) => {
            why.lease_until = None;
            why.reasons.push("but that worker has died: the next one goes on with its agent".into());
            why.next.push(NextAction::Work);
        }
        Alive::No => {
            why.lease_until = None;
            why.reasons.push("but that worker has died: the next one puts it in order".into());
            why.next.push(NextAction::Work);
        }
        Alive::Unknown if until <= around.now => {
            why.reasons.push("but that worker has not been heard of: any other takes it over".into());
            why.next.push(NextAction::Work);
        }
        Alive::Yes | Alive::Unknown if task.next_agent().is_some() => {
            why.next.push(NextAction::FollowLogs { run: claim.run.clone() });
        }
        Alive::Yes | Alive::Unknown => why.next.push(NextAction::WatchStatus),
    }
    Ok(())
}

async fn explain_wait(
    store: &dyn Store,
    task: &Task,
    flow: &Flow,
    wait: &Wait,
    around: &Surroundings<'_>,
    why: &mut Why,
) -> Result<(), StoreError> {
    match wait.wait_for {
        WaitFor::Human if asks_for_a_decision(task, flow) => {
            why.next.push(NextAction::Approve { task: task.id.clone() });
            why.next.push(NextAction::Reject { task: task.id.clone() });
        }
        WaitFor::Human => {
            why.reasons.push("it waits for a human".into());
            let is_spent = matches!(task.last_outcome, Some(Outcome::BudgetReached { .. }));
            if is_spent && task.budget.usd.is_some() {
                why.next.push(NextAction::RaiseCostLimit { task: task.id.clone() });
            }
            why.next.push(NextAction::Unblock { task: task.id.clone() });
        }
        WaitFor::System(name) => {
            why.reasons.push(format!("it waits because of the system ({name}), which costs it no attempt"));
            ready::explain_hindrance(store, task, around, why).await?;
        }
        WaitFor::Time => {}
        WaitFor::Ci => why.reasons.push("it waits for checks on the forge".into()),
    }
    Ok(())
}

/// A state that waits for a human says nothing of why a task came there; the step or the reviewer that sent it does.
fn what_led_here(task: &Task, flow: &Flow, wait: &Wait) -> Option<String> {
    let is_sent = wait.wait_for == WaitFor::Human && !asks_for_a_decision(task, flow);
    let feedback = task.feedback.as_ref().filter(|_| is_sent && wait.reason.starts_with("state `"))?;
    Some(said(feedback))
}

/// Who says what, in one line. The whole of it goes into the next prompt, and `task show` has it.
fn said(feedback: &Feedback) -> String {
    /// About two lines of a terminal.
    const MOST: usize = 160;
    let text = gist(&feedback.text);
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{} says: {}…", feedback.from, &text[..end]),
        None => format!("{} says: {text}", feedback.from),
    }
}

/// What a report says, on one line and without its heading.
pub fn gist(report: &str) -> String {
    let words: Vec<&str> =
        report.trim_start_matches("Test execution completed:").split_whitespace().collect();
    words.join(" ")
}

/// Whether its state asks a person to approve or reject.
pub fn asks_for_a_decision(task: &Task, flow: &Flow) -> bool {
    matches!(flow.states.get(&task.state), Some(State::Wait { on, .. }) if on.decides())
}

/// Which step comes next, and how often it was tried in vain.
pub fn next_step(task: &Task, flow: &Flow) -> Option<String> {
    let pending = task.pending.as_ref()?;
    let steps = flow.steps_of(&task.state);
    let step = steps.get(pending.next as usize)?;
    let tried = match pending.tries {
        0 => String::new(),
        1 => ", which was tried once in vain".to_owned(),
        tries => format!(", which was tried {tries} times in vain"),
    };
    Some(format!("step {} of {} is next: {step}{tried}", pending.next + 1, steps.len()))
}

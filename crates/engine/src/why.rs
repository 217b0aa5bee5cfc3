//! `why TASK`: the exact reason a task is not moving.

use rehearsal_core::flow::End;
use rehearsal_core::{Outcome, Standing, Task, TaskId, Timestamp, WaitFor};
use rehearsal_store::{Store, StoreError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The answer: what holds the task, and what to do about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Why {
    /// The task.
    pub task: TaskId,
    /// Its title.
    pub title: String,
    /// What it is.
    pub status: String,
    /// The reasons, the deciding one first.
    pub reasons: Vec<String>,
    /// What to do, as commands.
    pub next: Vec<String>,
    /// When it goes on by itself, if it waits for a time.
    pub until: Option<Timestamp>,
}

/// Finds out why a task is where it is.
pub async fn why(
    store: &dyn Store,
    task: &Task,
    now: Timestamp,
    loop_holder: Option<&str>,
) -> Result<Why, StoreError> {
    let mut why = Why {
        task: task.id.clone(),
        title: task.title.clone(),
        status: task.status().to_owned(),
        reasons: Vec::new(),
        next: Vec::new(),
        until: None,
    };
    match &task.standing {
        Standing::Ended { end } => explain_end(task, *end, &mut why),
        Standing::Claimed(claim) => {
            let seconds = now.since(claim.since).as_secs();
            why.reasons.push(format!("run {} has worked on it for {seconds} s", claim.run));
            if loop_holder.is_none() {
                why.reasons.push("but no loop is running here: its worker has died".into());
                why.next.push(run_command(task));
            } else {
                why.next.push(format!("rehearsal logs {} --follow", claim.run));
            }
        }
        Standing::Waiting(wait) => {
            why.until = wait.until;
            why.reasons.push(wait.reason.clone());
            explain_wait(task, wait.wait_for, wait.until, now, &mut why);
        }
        Standing::Ready => explain_ready(store, task, now, loop_holder, &mut why).await?,
    }
    if let Some(outcome) = &task.last_outcome
        && *outcome != Outcome::Done
        && !why.reasons.contains(&outcome.to_string())
    {
        why.reasons.push(format!("its last run ended with {outcome} ({} attempts so far)", task.attempts));
    }
    Ok(why)
}

fn explain_end(task: &Task, end: End, why: &mut Why) {
    match end {
        End::Success => why.reasons.push("it is done".into()),
        End::Cancelled => {
            why.reasons.push("it was cancelled".into());
            why.next.push(format!("rehearsal task retry {}", task.id));
        }
        End::Failure => {
            why.reasons.push(format!("it failed after {} attempts", task.attempts));
            why.next.push(format!("rehearsal runs list --task {}", task.id));
            why.next.push(format!("rehearsal task retry {}", task.id));
        }
    }
}

fn explain_wait(task: &Task, wait_for: WaitFor, until: Option<Timestamp>, now: Timestamp, why: &mut Why) {
    match wait_for {
        WaitFor::Human => {
            why.reasons.push("it waits for a human".into());
            why.next.push(format!("rehearsal task unblock {}", task.id));
        }
        WaitFor::System(name) => {
            why.reasons.push(format!("it waits because of the system ({name}), which costs it no attempt"));
            if until.is_some_and(|until| until <= now) {
                why.next.push(run_command(task));
            }
        }
        WaitFor::Time | WaitFor::Ci => {}
    }
}

async fn explain_ready(
    store: &dyn Store,
    task: &Task,
    now: Timestamp,
    loop_holder: Option<&str>,
    why: &mut Why,
) -> Result<(), StoreError> {
    for id in &task.depends_on {
        match store.task(id).await? {
            Some(other) if other.is_done() => {}
            Some(other) => {
                why.reasons.push(format!(
                    "it depends on {} ({}), which is {}",
                    other.id,
                    other.title,
                    other.status()
                ));
                why.next.push(format!("rehearsal why {}", other.id));
            }
            None => why.reasons.push(format!("it depends on {id}, which does not exist")),
        }
    }
    if !why.reasons.is_empty() {
        return Ok(());
    }
    let Some(session) = &task.session else {
        why.reasons.push("it belongs to no session, and so to no loop".into());
        return Ok(());
    };
    match (store.next_task(Some(session), now).await?, loop_holder) {
        (Some(next), _) if next.id != task.id => {
            why.reasons.push(format!("it is ready, and {} ({}) comes first", next.id, next.title));
        }
        (_, Some(_)) => why.reasons.push("it is ready, and next".into()),
        (_, None) => {}
    }
    if loop_holder.is_none() {
        why.reasons.push("it is ready, and no loop is running".into());
        why.next.push(run_command(task));
    }
    Ok(())
}

fn run_command(task: &Task) -> String {
    let session = task.session.as_ref().map_or("SESSION", |session| session.as_str());
    format!("rehearsal run {session}")
}

/// The same in one clause, for a task that a loop cannot go on with.
pub(crate) fn in_short(task: &Task, now: Timestamp) -> String {
    let is_over = |until: Option<Timestamp>| until.is_some_and(|until| until <= now);
    match &task.standing {
        Standing::Waiting(wait) if !is_over(wait.until) => wait.reason.clone(),
        Standing::Claimed(claim) => format!("run {} works on it", claim.run),
        Standing::Ended { .. } => task.status().to_owned(),
        Standing::Ready | Standing::Waiting(_) => "it depends on tasks that are not done".into(),
    }
}

//! Why a task that waits for nothing is not worked on.

use rehearsal_core::flow::{End, Flow};
use rehearsal_core::guard::Hindrance;
use rehearsal_core::{NextAction, Standing, Task};
use rehearsal_store::{Store, StoreError};

use super::{Surroundings, Why};
use crate::worker::Presence;

pub(super) async fn explain(
    store: &dyn Store,
    task: &Task,
    flow: &Flow,
    around: &Surroundings<'_>,
    why: &mut Why,
) -> Result<(), StoreError> {
    if explain_dependencies(store, task, why).await? || explain_hindrance(store, task, around, why).await? {
        return Ok(());
    }
    let works_somewhere = Presence::is_anyone_here(around.state_dir);
    if works_somewhere {
        why.reasons.push("it is ready: the next worker that is free takes it".into());
        why.next.push(NextAction::WatchStatus);
        return Ok(());
    }
    match (flow.fits_a_loop(), &task.session) {
        (Ok(()), Some(_)) => explain_turn(store, task, around, why).await,
        _ => {
            why.reasons.push("it is ready, and no worker is running here".into());
            why.next.push(NextAction::Work);
            Ok(())
        }
    }
}

async fn explain_dependencies(store: &dyn Store, task: &Task, why: &mut Why) -> Result<bool, StoreError> {
    let mut waits = false;
    for id in &task.depends_on {
        match store.task(id).await? {
            Some(other) if other.is_done() => continue,
            // Only a hand brings it back: by itself this one will never go on.
            Some(other) if other.is_ended() => {
                let how = if matches!(other.standing, Standing::Ended { end: End::Cancelled }) {
                    "was cancelled"
                } else {
                    "failed"
                };
                why.reasons.push(format!("it depends on {} ({}), which {how}", other.id, other.title));
                why.next.push(NextAction::Why { task: other.id.clone() });
                why.next.push(NextAction::Retry { task: other.id });
            }
            Some(other) => {
                let status = other.status();
                why.reasons.push(format!("it depends on {} ({}), which is {status}", other.id, other.title));
                why.next.push(NextAction::Why { task: other.id });
            }
            None => why.reasons.push(format!("it depends on {id}, which does not exist")),
        }
        waits = true;
    }
    Ok(waits)
}

/// What the guards of a claim say, if they say no.
pub(super) async fn explain_hindrance(
    store: &dyn Store,
    task: &Task,
    around: &Surroundings<'_>,
    why: &mut Why,
) -> Result<bool, StoreError> {
    let Some(hindrance) = store.hindrance(task, around.limits, around.now).await? else { return Ok(false) };
    why.reasons.push(hindrance.to_string());
    match hindrance {
        Hindrance::Disabled { agent } => {
            why.next.push(NextAction::EnableAgent { agent });
        }
        Hindrance::Held { lane, hold } => {
            why.until = hold.until.or(why.until);
            why.next.push(NextAction::Resume { lane });
        }
        Hindrance::TooSoon { until, .. } => why.until = Some(until),
        Hindrance::AllBusy { .. } | Hindrance::AgentBusy { .. } => {
            why.next.push(NextAction::WatchStatus);
        }
        Hindrance::StateFull { state, .. } => why.next.push(NextAction::ListTasks { state }),
        Hindrance::Spent { .. } => why.next.push(NextAction::RaiseCostLimit { task: task.id.clone() }),
        Hindrance::Overlap { task, .. } => why.next.push(NextAction::Why { task }),
    }
    Ok(true)
}

/// Its turn in the loop of its session.
async fn explain_turn(
    store: &dyn Store,
    task: &Task,
    around: &Surroundings<'_>,
    why: &mut Why,
) -> Result<(), StoreError> {
    match (store.next_task(task.session.as_ref(), around.now).await?, around.loop_holder) {
        (Some(next), _) if next.id != task.id => {
            why.reasons.push(format!("it is ready, and {} ({}) comes first", next.id, next.title));
        }
        (_, Some(_)) => why.reasons.push("it is ready, and next".into()),
        (_, None) => {}
    }
    if around.loop_holder.is_none() {
        why.reasons.push("it is ready, and no loop is running".into());
        why.next.push(NextAction::Run { session: task.session.clone() });
    }
    Ok(())
}

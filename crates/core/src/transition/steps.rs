//! What a state's steps come to.

use super::{FIRST_WAIT, LONGEST_WAIT, Refusal, explain_wait, follow_edge, release_claim, take_edge};
use crate::flow::{Flow, Step};
use crate::{
    Delivery, Feedback, Oid, OutcomeName, RedVerdict, Standing, StepFailure, Task, Timestamp, Wait, WaitFor,
};

/// Times that one step may fail through no fault of its task before a human looks.
const MOST_TRIES: u32 = 10;

/// The next step is about to move the remote's branch.
pub(super) fn offer(task: &mut Task, step: u32, commit: &Oid) -> Result<(), Refusal> {
    expected(task, step)?;
    if !task.delivery.may_have_pushed(commit) {
        task.delivery.offered.push(commit.clone());
    }
    Ok(())
}

/// The next step is done: its effect is remembered, and after the last one the agent's edge is taken.
pub(super) fn step_done(task: &mut Task, step: u32, delivery: &Delivery, flow: &Flow) -> Result<(), Refusal> {
    let mut pending = expected(task, step)?;
    task.delivery = delivery.clone();
    pending.next += 1;
    pending.tries = 0;
    (task.setbacks, task.losses) = (0, 0);
    if (pending.next as usize) < flow.steps_of(&task.state).len() {
        task.pending = Some(pending);
        return Ok(());
    }
    release_claim(task);
    task.feedback = None;
    follow_edge(task, &pending.outcome, flow)
}

/// The next step is not done: by the task's fault the flow decides, otherwise it is tried again.
pub(super) fn step_failed(
    task: &mut Task,
    step: u32,
    failure: &StepFailure,
    flow: &Flow,
    now: Timestamp,
) -> Result<(), Refusal> {
    let mut pending = expected(task, step)?;
    let name = flow.steps_of(&task.state).get(step as usize).map_or("step", |step| step.name());
    release_claim(task);
    let wait = |wait_for, until| {
        Standing::Waiting(Wait { wait_for, reason: format!("{name}: {}", failure.reason()), until })
    };
    match failure {
        StepFailure::Red { verdict, reason } => {
            task.feedback = Some(Feedback { from: name.to_owned(), text: reason.clone() });
            task.delivery.needs_rebase |= *verdict == RedVerdict::Conflict;
            let own = flow.steps_of(&task.state).get(step as usize).and_then(|step| step.spec().edge);
            let edges: Vec<_> = [Some(verdict.edge()), own].into_iter().flatten().collect();
            take_edge(task, &edges, flow)?;
            explain_wait(task, Some(format!("{name}: {}", gist(reason))));
            return Ok(());
        }
        StepFailure::Pending { until, .. } => {
            let paused = matches!(flow.steps_of(&task.state).get(step as usize), Some(Step::Pause(_)));
            // The next look is the end of the pause.
            pending.tries += u32::from(paused);
            task.standing = wait(if paused { WaitFor::Time } else { WaitFor::Ci }, Some(*until));
        }
        StepFailure::Transient { .. } => {
            pending.tries += 1;
            let backoff =
                FIRST_WAIT.saturating_mul(1 << pending.tries.saturating_sub(1).min(10)).min(LONGEST_WAIT);
            task.standing = if pending.tries > MOST_TRIES {
                wait(WaitFor::Human, None)
            } else {
                wait(WaitFor::System(OutcomeName::Unreachable), Some(now.plus(backoff)))
            };
        }
        StepFailure::Systemic { outcome, .. } => {
            task.setbacks += 1;
            task.standing = wait(WaitFor::System(*outcome), Some(now.plus(FIRST_WAIT)));
        }
        StepFailure::Unknown { .. } => task.standing = wait(WaitFor::Human, None),
    }
    task.pending = Some(pending);
    Ok(())
}

/// The beginning of a report, on one line; the whole of it is the task's feedback.
fn gist(report: &str) -> String {
    /// About two lines of a terminal.
    const MOST: usize = 160;
    let words: Vec<&str> =
        report.trim_start_matches("Test execution completed:").split_whitespace().collect();
    let text = words.join(" ");
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// The steps that are under way, if this is the next of them.
fn expected(task: &Task, step: u32) -> Result<crate::PendingSteps, Refusal> {
    let wrong = |expected: String| Refusal::WrongStep { task: task.id.to_string(), given: step, expected };
    let pending = task.pending.clone().ok_or_else(|| wrong("no steps are under way".to_owned()))?;
    if pending.next == step { Ok(pending) } else { Err(wrong(format!("step {} is next", pending.next))) }
}

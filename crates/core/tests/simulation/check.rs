//! What is checked whenever a row changes, by rules of its own: not by those that are under test.

use rehearsal_core::flow::{End, Flow, State};
use rehearsal_core::transition::TaskInput;
use rehearsal_core::{Blame, Claim, Outcome, Standing, StepFailure, Task};

use crate::invariant::{
    Invariant::{I1, I2, I3, I4, I5, I8, I10, I11},
    Violation, ensure,
};
use crate::store::Writer;

/// Whether this writer had the right to this write.
pub(crate) fn writer(
    before: &Task,
    lease_until: Option<i64>,
    input: &TaskInput,
    writer: &Writer,
    now: i64,
) -> Result<(), Violation> {
    let owner = match &before.standing {
        Standing::Claimed(Claim { run, .. }) => Some(run),
        _ => None,
    };
    if let Writer::Run(run) = writer {
        ensure(owner == Some(run), I3, || format!("a zombie was believed: {run} wrote, {owner:?} holds"))?;
    }
    if let Writer::Sweeper(seen) = writer {
        ensure(before.fence == *seen, I3, || format!("swept fence {}, having seen {seen}", before.fence))?;
        let over = lease_until.is_some_and(|until| until <= now);
        ensure(over, I2, || format!("robbed: the lease of {} holds", before.id))?;
    }
    match input {
        TaskInput::EndRun { fence, .. } | TaskInput::StepDone { fence, .. } => {
            ensure(*fence == before.fence, I3, || format!("fence {fence} was taken for {}", before.fence))
        }
        _ => Ok(()),
    }
}

/// Whether a row may move like this.
pub(crate) fn movement(before: &Task, after: &Task, input: &TaskInput, flow: &Flow) -> Result<(), Violation> {
    ensure(flow.states.contains_key(&after.state), I1, || format!("no state `{}`", after.state))?;
    ensure(after.fence >= before.fence, I2, || "a fence fell".to_owned())?;
    let run = |task: &Task| match &task.standing {
        Standing::Claimed(claim) => Some(claim.run.clone()),
        _ => None,
    };
    let changed_hands = run(before) != run(after);
    ensure(!changed_hands || after.fence > before.fence, I2, || {
        "it changed hands under one fence".to_owned()
    })?;
    let by_hand = matches!(input, TaskInput::Retry);
    ensure(!before.is_ended() || by_hand, I4, || format!("it left its end by {input:?}"))?;
    ensure(is_legal(before, after, input, flow), I5, || {
        format!("no edge leads from `{}` to `{}` by {input:?}", before.state, after.state)
    })?;
    if let Standing::Waiting(wait) = &after.standing {
        ensure(!wait.reason.is_empty(), I10, || "it waits for nothing with a name".to_owned())?;
    }
    if let TaskInput::EndRun { outcome, .. } = input {
        ensure(before.pending.is_none(), I8, || "the end of a run counted twice".to_owned())?;
        let reviewed = matches!(flow.states.get(&before.state), Some(State::Work { on, .. }) if on.decides());
        let let_out = after.pending.is_some() && after.state == before.state;
        let allowed = !let_out || !reviewed || *outcome == Outcome::Approved;
        ensure(allowed, I5, || format!("a reviewer said {outcome}, and the work went out"))?;
    }
    let free = match input {
        TaskInput::EndRun { outcome, .. } => matches!(outcome.blame(), Blame::System | Blame::User),
        TaskInput::StepFailed { failure, .. } => !matches!(failure, StepFailure::Red { .. }),
        TaskInput::Retry => false,
        _ => true,
    };
    ensure(!free || after.attempts == before.attempts, I11, || format!("an attempt was spent by {input:?}"))
}

/// Whether the flow draws this way, or a person or a poisonous task explains it.
fn is_legal(before: &Task, after: &Task, input: &TaskInput, flow: &Flow) -> bool {
    if before.state == after.state {
        return true;
    }
    match input {
        TaskInput::Finish | TaskInput::Retry | TaskInput::Unblock | TaskInput::Answer { .. } => true,
        TaskInput::Lose { .. } | TaskInput::TakeOver { .. } => {
            matches!(flow.states.get(&after.state), Some(State::End(End::Failure)))
        }
        TaskInput::EndRun { .. }
        | TaskInput::StepDone { .. }
        | TaskInput::StepFailed { .. }
        | TaskInput::Decide { .. } => match flow.states.get(&before.state) {
            Some(State::Work { on, .. } | State::Wait { on, .. }) => on.iter().any(|(_, edge)| {
                edge.to == after.state || edge.limit.as_ref().is_some_and(|limit| limit.then == after.state)
            }),
            _ => false,
        },
        _ => false,
    }
}

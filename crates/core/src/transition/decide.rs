//! A person's decision.

use super::{Refusal, take_edge};
use crate::flow::{EdgeName, Flow, State};
use crate::{Feedback, OutcomeName, Standing, Task};

/// Approves or rejects what a state asks a person about.
pub(super) fn decide(task: &mut Task, approve: bool, comment: &str, flow: &Flow) -> Result<(), Refusal> {
    let asks = matches!(flow.states.get(&task.state), Some(State::Wait { on, .. }) if on.decides());
    if !asks || !matches!(task.standing, Standing::Waiting(_)) {
        return Err(Refusal::NoDecision { task: task.id.to_string(), status: task.status().to_owned() });
    }
    let outcome = if approve { OutcomeName::Approved } else { OutcomeName::Rejected };
    if !approve {
        task.rejections += 1;
    }
    task.feedback = (!comment.trim().is_empty())
        .then(|| Feedback { from: "review".to_owned(), text: comment.trim().to_owned() });
    take_edge(task, &[EdgeName::Outcome(outcome)], flow)
}

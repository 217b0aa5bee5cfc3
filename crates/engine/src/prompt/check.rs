//! Whether a template can be used, before there is a task for it.

use rehearsal_core::flow::Flow;
use rehearsal_core::{
    Delivery, Feedback, NewTask, PullRequestRef, Session, SessionName, Task, TaskId, Timestamp,
};

use super::{PromptData, PromptError, render};
use crate::findings::Finding;

/// Renders a template for a task that has all that a task can have.
pub fn check_task_template(template: &str) -> Result<(), PromptError> {
    let (Some(task), Ok(name)) = (a_task(), SessionName::new("session")) else { return Ok(()) };
    let session = Session {
        name,
        description: "a description".into(),
        context: "a context".into(),
        criteria: vec!["a criterion".into()],
        created_at: Timestamp(0),
    };
    let findings = [Finding { id: "k3f".into(), title: "another task".into(), text: "what it found".into() }];
    let data = PromptData {
        task: &task,
        session: Some(&session),
        findings: &findings,
        base: Some("main"),
        test_command: Some("test"),
        iteration: None,
        notes: &["a note".to_owned()],
    };
    render(template, &data).map(drop)
}

fn a_task() -> Option<Task> {
    let new = NewTask {
        title: "a title".into(),
        body: "a description".into(),
        criteria: vec!["a criterion".into()],
        touches: vec!["a/file".into()],
        ..NewTask::default()
    };
    let task = Task::new(new, TaskId::from_random(0), &Flow::shipped("pull-request")?, Timestamp(0));
    let pull_request = Some(PullRequestRef { number: 1, url: "https://example.invalid/1".into() });
    let delivery = Delivery { pull_request, needs_rebase: true, ..Delivery::default() };
    let feedback = Some(Feedback { from: "gatekeeper".into(), text: "a comment".into() });
    Some(Task { delivery, feedback, ..task })
}

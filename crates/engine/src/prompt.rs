//! The prompt of one iteration.
//!
//! Its template is a file that a user can override: `.rehearsal/prompts/loop.md`.

mod check;

use minijinja::{Environment, ErrorKind, UndefinedBehavior, context};
use rehearsal_core::{Oid, Outcome, ProgressEntry, Session, Task};
use serde::Serialize;

use crate::findings::Finding;
pub use check::check_task_template;

/// The template that ships with the program.
pub const SHIPPED_TEMPLATE: &str = include_str!("templates/loop.md");
/// The template for a task's work, in a flow.
pub const TASK_TEMPLATE: &str = include_str!("templates/task.md");
/// The template for a task that asks for words and not for changes.
pub const LOOK_TEMPLATE: &str = include_str!("templates/look.md");
/// The template for a decision on a task's work.
pub const REVIEW_TEMPLATE: &str = include_str!("templates/review.md");
/// What is appended to an agent's system prompt, unless its profile has its own text.
pub const SYSTEM_PROMPT: &str = include_str!("templates/system.md");

/// How many lines of the journal a prompt shows.
pub const PROGRESS_LINES: u32 = 50;
/// How many open tasks a prompt shows; a prompt must not grow with the backlog.
pub const TASKS_SHOWN: u32 = 50;
/// Enough for a template that loops over all that it is given, and an end for one that loops without end.
const FUEL: u64 = 2_000_000;

/// Why a prompt cannot be made.
#[derive(Debug, thiserror::Error)]
#[error("the prompt template cannot be used: {message}")]
pub struct PromptError {
    /// What is wrong.
    pub message: String,
    /// In which line of the template.
    pub line: Option<usize>,
}

/// All that a prompt tells.
#[derive(Debug)]
pub struct PromptData<'a> {
    /// The session.
    pub session: &'a Session,
    /// The last lines of its journal, oldest first.
    pub progress: &'a [ProgressEntry],
    /// Its open tasks, most urgent first; at most [`TASKS_SHOWN`].
    pub tasks: &'a [Task],
    /// The task of this iteration, which is also among the tasks.
    pub current: &'a Task,
    /// How many tasks are open in all.
    pub open_tasks: u64,
    /// How many are done.
    pub done_tasks: u64,
    /// How many there are.
    pub all_tasks: u64,
    /// Which iteration it is.
    pub iteration: u32,
    /// Of how many.
    pub iterations: u32,
    /// How the tests are run.
    pub test_command: Option<&'a str>,
    /// What this prompt must say because of what happened before.
    pub notes: &'a [String],
    /// What the user wants to add.
    pub message: Option<&'a str>,
}

#[derive(Serialize)]
struct TaskView<'a> {
    id: &'a str,
    title: String,
    body: String,
    criteria: Vec<String>,
    priority: &'static str,
    status: &'a str,
    labels: &'a [String],
    depends_on: Vec<&'a str>,
    last_outcome: Option<String>,
    current: bool,
}

/// Renders the prompt. `template` is the user's own, or [`SHIPPED_TEMPLATE`].
pub fn render(template: &str, data: &PromptData<'_>) -> Result<String, PromptError> {
    let tasks: Vec<TaskView<'_>> = data.tasks.iter().map(|task| view(task, data.current)).collect();
    let progress: Vec<String> = data.progress.iter().map(|entry| quoted(&entry.text)).collect();
    let values = context! {
        session => context! {
            name => data.session.name.as_str(),
            description => quoted(&data.session.description),
            context => quoted(data.session.context.trim_end()),
            criteria => data.session.criteria.iter().map(|text| quoted(text)).collect::<Vec<_>>(),
        },
        progress => progress,
        more_tasks => data.open_tasks.saturating_sub(tasks.len() as u64),
        tasks => minijinja::Value::from(minijinja::value::Serde(tasks)),
        current => minijinja::Value::from(minijinja::value::Serde(view(data.current, data.current))),
        done_tasks => data.done_tasks,
        all_tasks => data.all_tasks,
        iteration => data.iteration,
        iterations => data.iterations,
        test_command => data.test_command,
        notes => data.notes.to_vec(),
        message => data.message,
    };
    rendered(template, values)
}

/// What the prompt of one task tells.
#[derive(Debug)]
pub struct TaskPrompt<'a> {
    /// The task.
    pub task: &'a Task,
    /// Its session.
    pub session: Option<&'a Session>,
    /// What the tasks that it depends on came to.
    pub findings: &'a [Finding],
    /// The branch that the work goes into.
    pub base: &'a str,
    /// How the tests are run.
    pub test_command: Option<&'a str>,
}

/// Renders the prompt of a task in a flow. `template` is the user's own, or a shipped one.
pub fn render_task(template: &str, data: &TaskPrompt<'_>) -> Result<String, PromptError> {
    let TaskPrompt { task, session, findings, base, test_command } = data;
    let findings = findings.iter().map(|finding| {
        context! { id => &finding.id, title => quoted(&finding.title), text => quoted(finding.text.trim_end()) }
    });
    let delivery = &task.delivery;
    let values = context! {
        session => session.map(|session| context! {
            name => session.name.as_str(),
            description => quoted(&session.description),
            context => quoted(session.context.trim_end()),
        }),
        session_criteria => session.map_or_else(Vec::new, |session| {
            session.criteria.iter().map(|text| quoted(text)).collect()
        }),
        task => context! {
            id => task.id.as_str(),
            title => quoted(&task.title),
            body => quoted(task.body.trim_end()),
            criteria => task.criteria.iter().map(|text| quoted(text)).collect::<Vec<_>>(),
            touches => task.touches.clone(),
            state => task.state.as_str(),
            attempt => task.attempts + 1,
        },
        findings => findings.collect::<Vec<_>>(),
        feedback => task.feedback.as_ref().map(|feedback| context! {
            from => quoted(&feedback.from),
            text => quoted(feedback.text.trim_end()),
        }),
        continues => task.is_to_be_continued(),
        needs_rebase => delivery.needs_rebase,
        base => *base,
        base_commit => delivery.base.as_ref().map_or(*base, Oid::as_str),
        pull_request => delivery.pull_request.as_ref().map(|it| it.url.clone()),
        test_command => *test_command,
    };
    rendered(template, values)
}

fn rendered(template: &str, values: minijinja::Value) -> Result<String, PromptError> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_fuel(Some(FUEL));
    environment.render_str(template, values).map_err(|error| PromptError {
        line: error.line(),
        message: match (error.kind(), error.detail()) {
            (ErrorKind::OutOfFuel, _) => "it does not come to an end".into(),
            (kind, Some(detail)) => format!("{kind}: {detail}"),
            (kind, None) => kind.to_string(),
        },
    })
}

fn view<'a>(task: &'a Task, current: &Task) -> TaskView<'a> {
    TaskView {
        id: task.id.as_str(),
        title: quoted(&task.title),
        body: quoted(task.body.trim_end()),
        criteria: task.criteria.iter().map(|text| quoted(text)).collect(),
        priority: task.priority.as_str(),
        status: task.status(),
        labels: &task.labels,
        depends_on: task.depends_on.iter().map(rehearsal_core::TaskId::as_str).collect(),
        last_outcome: task
            .last_outcome
            .as_ref()
            .filter(|outcome| **outcome != Outcome::Done)
            .map(Outcome::to_string),
        current: task.id == current.id,
    }
}

/// A text of someone else's must not close a section of the prompt.
fn quoted(text: &str) -> String {
    let mut quoted = text.to_owned();
    for section in ["context", "progress", "task", "tasks", "findings", "feedback", "instructions"] {
        for tag in [format!("<{section}>"), format!("</{section}>")] {
            if quoted.contains(&tag) {
                quoted = quoted.replace(&tag, &tag.replace('<', "&lt;"));
            }
        }
    }
    quoted
}

#[cfg(test)]
mod tests;

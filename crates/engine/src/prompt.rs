//! What an agent is told.
//!
//! Its template is a file that a user can override: `.rehearsal/prompts/loop.md`.

mod check;

use minijinja::value::merge_maps;
use minijinja::{Environment, ErrorKind, UndefinedBehavior, context};
use rehearsal_core::{Feedback, Oid, Outcome, ProgressEntry, Session, Task};
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

/// All that a prompt can say.
#[derive(Debug)]
pub struct PromptData<'a> {
    /// The task.
    pub task: &'a Task,
    /// Its session.
    pub session: Option<&'a Session>,
    /// What the tasks that it depends on came to.
    pub findings: &'a [Finding],
    /// The branch that the work goes into; none: the one that is checked out.
    pub base: Option<&'a str>,
    /// How the tests are run.
    pub test_command: Option<&'a str>,
    /// Its place in the loop of a session.
    pub iteration: Option<&'a Iteration>,
    /// What it must say because of the task's last run.
    pub notes: &'a [String],
}

/// What a prompt says about the loop of a session.
#[derive(Debug)]
pub struct Iteration {
    /// Which iteration it is.
    pub number: u32,
    /// Of how many.
    pub most: u32,
    /// The last lines of the session's journal, oldest first.
    pub progress: Vec<ProgressEntry>,
    /// The session's open tasks, the present one first; at most [`TASKS_SHOWN`].
    pub tasks: Vec<Task>,
    /// How many tasks are open in all.
    pub open_tasks: u64,
    /// How many are done.
    pub done_tasks: u64,
    /// How many there are.
    pub all_tasks: u64,
    /// What this prompt must say because of what happened before.
    pub notes: Vec<String>,
    /// What the user wants to add.
    pub message: Option<String>,
    /// How the agent calls this program.
    pub program: String,
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

/// Renders a prompt. `template` is the user's own, or a shipped one.
pub fn render(template: &str, data: &PromptData<'_>) -> Result<String, PromptError> {
    let PromptData { task, session, findings, base, test_command, iteration, notes } = data;
    let of_loop = iteration.map_or(&[][..], |iteration| &iteration.notes);
    let notes: Vec<String> = notes.iter().chain(of_loop).map(|note| quoted(note)).collect();
    let findings = findings.iter().map(|finding| {
        context! { id => &finding.id, title => quoted(&finding.title), text => quoted(finding.text.trim_end()) }
    });
    let criteria = |session: &Session| session.criteria.iter().map(|text| quoted(text)).collect::<Vec<_>>();
    let values = context! {
        session => session.map(|session| context! {
            name => session.name.as_str(),
            description => quoted(&session.description),
            context => quoted(session.context.trim_end()),
            criteria => criteria(session),
        }),
        session_criteria => session.map_or_else(Vec::new, criteria),
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
        pull_request => task.delivery.pull_request.as_ref().map(|it| it.url.clone()),
        test_command => *test_command,
        notes => notes,
        ..merge_maps(base.map(|base| base_values(task, base)).into_iter().chain(
            iteration.map(|iteration| iteration_values(task, iteration)),
        )),
    };
    rendered(template, values)
}

fn base_values(task: &Task, base: &str) -> minijinja::Value {
    context! {
        base => base,
        base_commit => task.delivery.base.as_ref().map_or(base, Oid::as_str),
        needs_rebase => task.delivery.needs_rebase,
    }
}

fn iteration_values(current: &Task, iteration: &Iteration) -> minijinja::Value {
    let tasks: Vec<TaskView<'_>> = iteration.tasks.iter().map(|task| view(task, current)).collect();
    context! {
        progress => iteration.progress.iter().map(|entry| quoted(&entry.text)).collect::<Vec<_>>(),
        more_tasks => iteration.open_tasks.saturating_sub(tasks.len() as u64),
        tasks => minijinja::Value::from(minijinja::value::Serde(tasks)),
        current => minijinja::Value::from(minijinja::value::Serde(view(current, current))),
        done_tasks => iteration.done_tasks,
        all_tasks => iteration.all_tasks,
        iteration => iteration.number,
        iterations => iteration.most,
        message => iteration.message.clone(),
        rehearsal => iteration.program.clone(),
    }
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
            // The question that a person has answered.
            .filter(|_| !task.feedback.as_ref().is_some_and(Feedback::is_answer))
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

//! A run that was real becomes a scenario: its task, its commits, its outcome.

use std::fmt::Write as _;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_core::{Exit, Outcome, OutcomeName, Run, RunEnd, RunId, Task, TaskId};
use rehearsal_git::{Git, GitError};
use serde::Serialize;

use super::path_of;
use crate::file::FileError;
use crate::project::{Project, ProjectError};

/// `promote --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PromoteDocument {
    /// The file that was written.
    pub scenario: String,
    /// The scenario's name.
    pub name: String,
}

/// Why a run cannot become a scenario.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the words of `Display` say what each is")]
pub enum PromoteError {
    #[error("run `{run}` is not over")]
    NotOver { run: RunId },
    #[error("there is no task `{task}`")]
    NoTask { task: TaskId },
    #[error("`{file}` is already there")]
    Exists { file: String },
    #[error("commit {commit:.10} has text that is not UTF-8")]
    NotUtf8 { commit: String },
    #[error("a run that ended with `{outcome}` cannot be promoted")]
    Outcome { outcome: OutcomeName },
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Project(ProjectError),
}

impl<E: Into<ProjectError>> From<E> for PromoteError {
    fn from(error: E) -> Self {
        Self::Project(error.into())
    }
}

/// Writes a scenario from a run, which is named by a unique prefix of its id.
pub async fn promote(
    project: &Project,
    run: &str,
    name: Option<String>,
) -> Result<PromoteDocument, PromoteError> {
    project.caller.may_change()?;
    let store = project.store().await?;
    let run = store.find_run(run).await?;
    let Some(end) = &run.end else {
        return Err(PromoteError::NotOver { run: run.start.id });
    };
    let task = store.task(&run.start.task).await?;
    let task = task.ok_or_else(|| PromoteError::NoTask { task: run.start.task.clone() })?;
    let name = name.unwrap_or_else(|| format!("run-{}", run.start.id));
    let path = path_of(project, &name);
    let shown = project.shown(&path);
    if path.exists() {
        return Err(PromoteError::Exists { file: shown });
    }
    let commits = Commits::of(&project.root, end).await?;
    let text = scenario(&name, &task, &run, end, &commits)?;
    if let Err(error) = rehearsal_scenario::parse(&text) {
        return Err(FileError::wrong(error, shown).into());
    }
    if let Some(parent) = path.parent() {
        fs_err::create_dir_all(parent)?;
    }
    fs_err::write(&path, text)?;
    Ok(PromoteDocument { scenario: shown, name })
}

/// What a run committed, and on what.
struct Commits {
    before: String,
    /// Message and patch of each.
    each: Vec<(String, String)>,
}

impl Commits {
    async fn of(root: &Utf8Path, end: &RunEnd) -> Result<Self, PromoteError> {
        let git = Git::at(Utf8PathBuf::from(root));
        let Some(first) = end.commits.first() else {
            let before = git.line(&["rev-parse", "HEAD"]).await?;
            return Ok(Self { before, each: Vec::new() });
        };
        let parent = format!("{}^", first.id);
        let before = git.line(&["rev-parse", &parent]).await?;
        let mut each = Vec::new();
        for commit in &end.commits {
            let message = git.line(&["show", "--no-patch", "--format=%B", commit.id.as_str()]).await?;
            let from = format!("{}^", commit.id);
            let patch = git.run(&["diff", "--binary", &from, commit.id.as_str()]).await?;
            let patch = String::from_utf8(patch)
                .map_err(|_| PromoteError::NotUtf8 { commit: commit.id.to_string() })?;
            each.push((message.trim().to_owned(), patch));
        }
        Ok(Self { before, each })
    }
}

fn scenario(
    name: &str,
    task: &Task,
    run: &Run,
    end: &RunEnd,
    commits: &Commits,
) -> Result<String, PromoteError> {
    let outcome = &end.verdict.outcome;
    let last = last_action(outcome, commits.each.is_empty())?;
    let agent = &run.start.agent;
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "# Run {} of task {}, as it was: its commits, and how it ended.",
        run.start.id, task.id
    );
    let _ = writeln!(text, "name: {name}");
    let _ = writeln!(
        text,
        "flow: |\n  name: promoted\n  start: work\n  states:\n    work:\n      agent: {agent}"
    );
    let decides = matches!(outcome, Outcome::Approved | Outcome::Rejected { .. });
    let edges = if decides { "{ approved: over, rejected: over }" } else { "{ done: over }" };
    let _ = writeln!(text, "      on: {edges}\n      otherwise: over\n    over: {{ end: success }}");
    let _ = writeln!(text, "repository: {{ template: ., at: {} }}", commits.before);
    let _ =
        writeln!(text, "tasks:\n  - id: {}\n    title: {}", quoted(task.id.as_str())?, quoted(&task.title)?);
    if !task.body.is_empty() {
        let _ = writeln!(text, "    body: {}", quoted(&task.body)?);
    }
    let _ = writeln!(text, "agents:\n  {agent}:\n    - script:");
    for (message, patch) in &commits.each {
        if !patch.is_empty() {
            let _ = writeln!(text, "        - apply: {}", block(patch, 12)?);
        }
        let _ = writeln!(text, "        - commit: {{ message: {} }}", quoted(message)?);
    }
    let _ = writeln!(text, "{last}");
    let _ = writeln!(
        text,
        "expect:\n  tasks:\n    {}: {{ outcomes: [{}] }}",
        quoted(task.id.as_str())?,
        outcome.name()
    );
    Ok(text)
}

/// What makes a scripted agent end in the same way.
fn last_action(outcome: &Outcome, is_bare: bool) -> Result<String, PromoteError> {
    let result = |fields: String| format!("        - result: {{ {fields} }}");
    Ok(match outcome {
        Outcome::Done if is_bare => {
            format!("        - task_done: current\n{}", result("outcome: success".into()))
        }
        Outcome::Done | Outcome::NoChanges => result("outcome: success".into()),
        Outcome::Approved => result("outcome: success, decision: approve".into()),
        Outcome::Rejected { comment } => {
            result(format!("outcome: success, decision: reject, comment: {}", quoted(comment)?))
        }
        Outcome::NeedsContinuation { reason } => {
            result(format!("outcome: needs_continuation, reason: {}", quoted(reason)?))
        }
        Outcome::Blocked { reason } => result(format!("outcome: blocked, reason: {}", quoted(reason)?)),
        Outcome::Failed { reason } => result(format!("outcome: failure, reason: {}", quoted(reason)?)),
        Outcome::Continue { message } => {
            format!("        - say: {}", quoted(&format!("<promise>CONTINUE: {message}</promise>"))?)
        }
        Outcome::Crashed { exit: Exit::Code(code), .. } => format!("        - crash: {{ exit: {code} }}"),
        Outcome::Crashed { exit: Exit::Signal(_), .. } => "        - crash: { signal: kill }".to_owned(),
        Outcome::TimedOut { .. } => "        - hang".to_owned(),
        other => {
            return Err(PromoteError::Outcome { outcome: other.name() });
        }
    })
}

/// A text on one line: every JSON string is one in YAML.
fn quoted(text: &str) -> io::Result<String> {
    serde_json::to_string(text).map_err(io::Error::other)
}

/// A text over several lines, where YAML can keep every byte of it so.
fn block(text: &str, indent: usize) -> io::Result<String> {
    let plain = text.ends_with('\n')
        && !text.ends_with("\n\n")
        && !text.starts_with([' ', '\n', '\t'])
        && text.chars().all(|c| c == '\n' || c == '\t' || !c.is_control())
        && !text.contains(['\u{85}', '\u{2028}', '\u{2029}', '\u{feff}']);
    if !plain {
        return quoted(text);
    }
    let margin = " ".repeat(indent);
    let lines: String = text.lines().map(|line| format!("\n{margin}{line}")).collect();
    Ok(format!("|{lines}"))
}

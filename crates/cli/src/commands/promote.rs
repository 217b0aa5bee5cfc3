//! `promote RUN`: a run that was real becomes a scenario: its task, its commits, its outcome.

use std::fmt::Write as _;

use camino::Utf8PathBuf;
use clap::Args;
use rehearsal_core::{Exit as ProcessExit, Outcome, Run, RunEnd, Task};
use rehearsal_git::Git;
use serde::Serialize;

use super::Done;
use super::rehearse::scenario_path;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::inside::InsideRun;

#[derive(Debug, Args)]
#[command(after_help = "Example: rehearsal promote 7x3k --name greets-by-name")]
pub(crate) struct PromoteArgs {
    /// The run, by the beginning of its id
    run: String,
    /// The scenario's name; made of the run's id otherwise
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
}

/// `promote --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct PromoteDocument {
    /// The file that was written.
    scenario: String,
    /// The scenario's name.
    name: String,
}

pub(crate) async fn run(args: PromoteArgs, context: &Context) -> Done {
    InsideRun::refuse_changes()?;
    let project = context.project()?;
    let store = project.store().await?;
    let run = store.find_run(&args.run).await?;
    let Some(end) = &run.end else {
        return Err(CliError::usage(format!("run `{}` is not over", run.start.id)));
    };
    let task = store.task(&run.start.task).await?;
    let task = task.ok_or_else(|| CliError::usage(format!("there is no task `{}`", run.start.task)))?;
    let name = args.name.unwrap_or_else(|| format!("run-{}", run.start.id));
    let path = scenario_path(&project, &name);
    if path.exists() {
        let shown = project.shown(&path);
        return Err(CliError::usage(format!("`{shown}` is already there")).hint("choose another `--name`"));
    }
    let commits = Commits::of(&project.root, end).await?;
    let text = scenario(&name, &task, &run, end, &commits)?;
    if let Err(error) = rehearsal_scenario::parse(&text) {
        return Err(CliError::in_file(error, &project.shown(&path)));
    }
    if let Some(parent) = path.parent() {
        fs_err::create_dir_all(parent)?;
    }
    fs_err::write(&path, text)?;
    let shown = project.shown(&path);
    context.ui.say(format!("{shown} is written"));
    context.ui.say(format!("next: rehearsal rehearse --filter {name} --trace"));
    context.ui.document(PromoteDocument { scenario: shown, name });
    Ok(Exit::Ok)
}

/// What a run committed, and on what.
struct Commits {
    before: String,
    /// Message and patch of each.
    each: Vec<(String, String)>,
}

impl Commits {
    async fn of(root: &camino::Utf8Path, end: &RunEnd) -> Result<Self, CliError> {
        let git = Git::at(Utf8PathBuf::from(root));
        let failed = |error: rehearsal_git::GitError| CliError::of(Exit::Git, &error);
        let Some(first) = end.commits.first() else {
            let before = git.line(&["rev-parse", "HEAD"]).await.map_err(failed)?;
            return Ok(Self { before, each: Vec::new() });
        };
        let parent = format!("{}^", first.id);
        let before = git.line(&["rev-parse", &parent]).await.map_err(failed)?;
        let mut each = Vec::new();
        for commit in &end.commits {
            let message =
                git.line(&["show", "--no-patch", "--format=%B", commit.id.as_str()]).await.map_err(failed)?;
            let from = format!("{}^", commit.id);
            let patch = git.run(&["diff", "--binary", &from, commit.id.as_str()]).await.map_err(failed)?;
            let patch = String::from_utf8(patch).map_err(|_| {
                CliError::usage(format!("commit {:.10} has text that is not UTF-8", commit.id))
            })?;
            each.push((message.trim().to_owned(), patch));
        }
        Ok(Self { before, each })
    }
}

fn scenario(name: &str, task: &Task, run: &Run, end: &RunEnd, commits: &Commits) -> Result<String, CliError> {
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
fn last_action(outcome: &Outcome, is_bare: bool) -> Result<String, CliError> {
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
        Outcome::Crashed { exit: ProcessExit::Code(code) } => format!("        - crash: {{ exit: {code} }}"),
        Outcome::Crashed { exit: ProcessExit::Signal(_) } => "        - crash: { signal: kill }".to_owned(),
        Outcome::TimedOut { .. } => "        - hang".to_owned(),
        other => {
            return Err(CliError::usage(format!(
                "a run that ended with `{}` cannot be promoted",
                other.name()
            ))
            .hint("what it shows is the world around the agent, not the agent"));
        }
    })
}

/// A text on one line: every JSON string is one in YAML.
fn quoted(text: &str) -> Result<String, CliError> {
    Ok(serde_json::to_string(text).map_err(std::io::Error::other)?)
}

/// A text over several lines, where YAML can keep every byte of it so.
fn block(text: &str, indent: usize) -> Result<String, CliError> {
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

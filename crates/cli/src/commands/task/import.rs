//! `task import`.

use std::collections::HashMap;
use std::sync::Arc;

use camino::Utf8PathBuf;
use clap::{Args, ValueEnum};
use rehearsal_core::import::{ImportedTask, json_lines, markdown};
use rehearsal_core::{FlowName, NewTask, SessionName, TaskId};
use rehearsal_store::{Change, Store};
use serde::Serialize;

use super::Done;
use super::add::session_for;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::inside::InsideRun;
use crate::project::read_all;
use crate::words;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  rehearsal task import PLAN.md --session hello
  rehearsal task import tasks.jsonl
  rehearsal task import PLAN.md --flow pull-request
  generate-tasks | rehearsal task import - --format json-lines

Markdown: `- [ ] title` is a task; items below it are its acceptance criteria, indented text is its description, \
the heading above it becomes a label; `- [x]` items are left out.

JSON lines: one object a line; `rehearsal schema import` has the fields.")]
pub(crate) struct ImportArgs {
    /// The file; `-` is standard input
    file: Utf8PathBuf,
    /// Which session; can be left out if there is only one, and for flows that are not for a loop
    #[arg(long, short)]
    session: Option<SessionName>,
    /// The flow that they go through [default: `flow:` of the configuration, else loop]
    #[arg(long, value_name = "NAME")]
    flow: Option<FlowName>,
    /// What the file is; told by its ending otherwise
    #[arg(long, value_enum)]
    format: Option<Format>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Markdown,
    JsonLines,
}

/// `task import --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ImportDocument {
    /// The new tasks, in the order of the file.
    added: Vec<TaskId>,
    /// Items that were done already and left out.
    left_out: usize,
}

/// More than any backlog, less than memory.
const LARGEST_FILE: u64 = 16 << 20;

pub(super) async fn run(args: ImportArgs, context: &Context) -> Done {
    InsideRun::refuse_changes()?;
    let project = context.project()?;
    let format = args.format.or_else(|| format_of(&args.file)).ok_or_else(|| {
        CliError::usage(format!("cannot tell what `{}` is", args.file))
            .hint("say it with `--format markdown` or `--format json-lines`")
    })?;
    let text = read(&args.file, context)?;
    let parsed = match format {
        Format::Markdown => markdown(&text),
        Format::JsonLines => json_lines(&text),
    };
    let tasks = parsed.map_err(|error| CliError::in_file(error, args.file.as_str()))?;
    let store = project.store().await?;
    let flow = Arc::new(project.flow_for_tasks(args.flow.as_ref())?);
    let session = session_for(&*store, args.session, &flow).await?;
    let all = tasks.len();
    let open: Vec<ImportedTask> = tasks.into_iter().filter(|task| !task.done).collect();
    let left_out = all - open.len();
    if open.is_empty() {
        return Err(CliError::usage(format!("`{}` has no open tasks", args.file))
            .hint("in Markdown a task is a line `- [ ] title`; in JSON lines an object with a `title`"));
    }
    let tasks = with_ids(&*store, session.as_ref(), open).await?;
    let added: Vec<TaskId> = tasks.iter().map(|(id, _)| id.clone()).collect();
    context.commit(&*store, vec![Change::AddTasks { tasks, flow }]).await?;
    let ignored = match left_out {
        0 => String::new(),
        1 => ", 1 that is done left out".to_owned(),
        more => format!(", {more} that are done left out"),
    };
    let to = session.map_or_else(String::new, |session| format!(" to session `{session}`"));
    context.ui.say(format!("{} added{to}{ignored}", words::count(added.len() as u64, "task")));
    context.ui.document(ImportDocument { added, left_out });
    Ok(Exit::Ok)
}

fn format_of(file: &camino::Utf8Path) -> Option<Format> {
    match file.extension()? {
        "md" | "markdown" => Some(Format::Markdown),
        "jsonl" | "ndjson" | "json" => Some(Format::JsonLines),
        _ => None,
    }
}

fn read(file: &camino::Utf8Path, context: &Context) -> Result<String, CliError> {
    if file == "-" {
        return read_all(std::io::stdin(), "standard input", LARGEST_FILE);
    }
    let opened = fs_err::File::open(context.directory.join(file))
        .map_err(|error| CliError::usage(error.to_string()))?;
    if opened.metadata()?.is_dir() {
        return Err(CliError::usage(format!("`{file}` is a directory")));
    }
    read_all(opened, file.as_str(), LARGEST_FILE)
}

/// Draws ids, and turns the file's keys into them.
async fn with_ids(
    store: &dyn Store,
    session: Option<&SessionName>,
    imported: Vec<ImportedTask>,
) -> Result<Vec<(TaskId, NewTask)>, CliError> {
    let mut keys: HashMap<String, TaskId> = HashMap::new();
    let ids: Vec<TaskId> =
        imported.iter().map(|_| TaskId::from_random(rehearsal_engine::random_bits())).collect();
    for (task, id) in imported.iter().zip(&ids) {
        if let Some(key) = &task.key
            && keys.insert(key.clone(), id.clone()).is_some()
        {
            return Err(CliError::usage(format!("the key `{key}` is used twice")));
        }
    }
    let mut tasks = Vec::with_capacity(ids.len());
    for (task, id) in imported.into_iter().zip(ids) {
        let mut depends_on = Vec::new();
        for name in &task.depends_on {
            depends_on.push(match keys.get(name) {
                Some(id) => id.clone(),
                None => store.find_task(name).await?.id,
            });
        }
        let new = NewTask {
            session: session.cloned(),
            title: task.title,
            body: task.body,
            criteria: task.criteria,
            priority: task.priority,
            labels: task.labels,
            depends_on,
            budget: task.budget,
            ..NewTask::default()
        };
        tasks.push((id, new));
    }
    Ok(tasks)
}

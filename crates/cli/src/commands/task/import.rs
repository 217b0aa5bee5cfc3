//! `task import`.

use camino::Utf8PathBuf;
use clap::{Args, ValueEnum};
use rehearsal_app::file::read_all;
use rehearsal_app::tasks::{self, ImportRequest};
use rehearsal_core::import::{json_lines, markdown};
use rehearsal_core::{FlowName, SessionName};

use super::Done;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
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

/// More than any backlog, less than memory.
const LARGEST_FILE: u64 = 16 << 20;

pub(super) async fn run(args: ImportArgs, context: &Context) -> Done {
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
    let request =
        ImportRequest { file: args.file.to_string(), tasks, session: args.session, flow: args.flow };
    let document = tasks::import(&project, request).await?;
    let ignored = match document.left_out {
        0 => String::new(),
        1 => ", 1 that is done left out".to_owned(),
        more => format!(", {more} that are done left out"),
    };
    let to = document.session.as_ref().map_or_else(String::new, |name| format!(" to session `{name}`"));
    let count = words::count(document.added.len() as u64, "task");
    context.ui.say(format!("{count} added{to}{ignored}"));
    context.ui.document(document);
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
        return Ok(read_all(std::io::stdin(), "standard input", LARGEST_FILE)?);
    }
    let opened = fs_err::File::open(context.directory.join(file))
        .map_err(|error| CliError::usage(error.to_string()))?;
    if opened.metadata()?.is_dir() {
        return Err(CliError::usage(format!("`{file}` is a directory")));
    }
    Ok(read_all(opened, file.as_str(), LARGEST_FILE)?)
}

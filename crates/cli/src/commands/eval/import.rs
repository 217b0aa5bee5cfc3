//! `eval import`: an eval of what another tool has, or of the project's own history.

mod history;

use camino::Utf8PathBuf;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use rehearsal_app::command_line::quote;
use rehearsal_app::evals::{Evals, ImportDocument, ImportFile, ImportOutput, ImportTo, import};
use rehearsal_app::file::read_all;
use rehearsal_core::config::HumanDuration;
use rehearsal_eval::import::{Format, Note, NoteKind};

use crate::commands::Done;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::harmless;
use crate::words;

/// Data sets are larger than what people write.
const LONGEST_INPUT: u64 = 64 << 20;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  rehearsal eval import promptfooconfig.yaml --as routing
  rehearsal eval import instances.jsonl --repository ~/clones --most 20
  rehearsal eval import --history --last 500 --most 20

Of promptfoo's YAML, prompts, providers, tests, vars and the assertions whose names we share are taken; what has no counterpart here is told \
with its place and left out. Instances of SWE-bench are lines of JSON with instance_id, repo, base_commit, problem_statement, patch, \
test_patch, FAIL_TO_PASS and PASS_TO_PASS. From the history, commits are taken that touch tests and sources, and of which a test was seen to \
fail before and to pass after.")]
pub(crate) struct ImportArgs {
    /// The file; `-` is standard input
    #[arg(conflicts_with = "history")]
    file: Option<Utf8PathBuf>,
    /// How the eval is called [default: as the file]
    #[arg(long = "as", value_name = "NAME")]
    name: Option<String>,
    /// Where it is written; `-` is standard output [default: .rehearsal/evals/NAME.yaml]
    #[arg(long, short, value_name = "FILE")]
    output: Option<Utf8PathBuf>,
    /// What the file is; told by its content otherwise
    #[arg(long, value_parser = format())]
    format: Option<Format>,
    /// Who judges `llm-rubric`, if the file does not say it
    #[arg(long, value_name = "VENDOR:MODEL")]
    judge: Option<String>,
    /// Where the clones are: `DIR/owner__name`, DIR/name, or DIR itself
    #[arg(long, value_name = "DIR")]
    repository: Option<Utf8PathBuf>,
    /// Look for cases in the project's own history
    #[arg(long)]
    history: bool,
    /// So many commits are looked at, the newest first
    #[arg(long, value_name = "N", default_value_t = 500, requires = "history")]
    last: usize,
    /// At most so many cases [default: all of a file, 20 of a history]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    most: Option<u32>,
    /// The longest that trying one commit may take
    #[arg(long, value_name = "TIME", default_value = "10m", requires = "history")]
    timeout: HumanDuration,
}

fn format() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(["promptfoo", "swe-bench"])
        .map(|name| if name == "promptfoo" { Format::Promptfoo } else { Format::SweBench })
}

impl ImportArgs {
    fn target(&self) -> ImportTo {
        let output = match &self.output {
            Some(path) if path == "-" => ImportOutput::Document,
            Some(path) => ImportOutput::File(path.clone()),
            None => ImportOutput::Usual,
        };
        ImportTo { name: self.name.clone(), output }
    }
}

pub(super) async fn run(args: &ImportArgs, evals: &Evals, context: &Context) -> Done {
    if args.history {
        return Box::pin(history::run(args, evals, context)).await;
    }
    let Some(path) = args.file.clone() else {
        return Err(CliError::usage("there is nothing to import")
            .hint("name a file (`-` is standard input), or look for cases in the project's own history with `--history`"));
    };
    let is_input = path == "-";
    let text = is_input.then(|| read_all(std::io::stdin(), "standard input", LONGEST_INPUT)).transpose()?;
    let file = ImportFile {
        text,
        path: if is_input { "standard input".into() } else { path },
        format: args.format,
        judge: args.judge.clone(),
        repository: args.repository.clone(),
        most: args.most.map(|most| most as usize),
    };
    let place = file.path.to_string();
    let document = import(&evals.project, file, args.target())?;
    show_notes(&document.notes, &place, context);
    show(&document, context);
    context.ui.document(document);
    Ok(Exit::Ok)
}

/// Says that it is written, or says the eval itself.
fn show(document: &ImportDocument, context: &Context) {
    let ui = context.ui;
    if let Some(text) = &document.text {
        ui.say(text.trim_end());
    }
    if let Some(file) = &document.file {
        ui.say(format!("{file} is written: {}", words::count(document.cases as u64, "case")));
        ui.say(format!("next: rehearsal eval run {}", quote(&document.eval)));
    }
}

fn show_notes(notes: &[Note], place: &str, context: &Context) {
    let ui = context.ui;
    for note in notes {
        let file = note.file.as_deref().unwrap_or(place);
        let at = match (note.line, note.column) {
            (Some(line), Some(column)) => format!("{file}:{line}:{column}"),
            _ => file.to_owned(),
        };
        ui.aside(harmless(&format!("warning: {at}: {}", note.text)));
    }
    let counted =
        [(NoteKind::Assertion, "assertion"), (NoteKind::Case, "case"), (NoteKind::Setting, "setting")];
    let counts: Vec<String> = counted
        .into_iter()
        .map(|(kind, what)| (notes.iter().filter(|note| note.kind == kind).count(), what))
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| words::count(count as u64, what))
        .collect();
    if !counts.is_empty() {
        ui.aside(format!("left out: {}", counts.join(", ")));
    }
}

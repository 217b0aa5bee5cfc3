//! `eval import`: an eval of what another tool has, or of the project's own history.

mod beside;
mod history;

use camino::{Utf8Path, Utf8PathBuf};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use rehearsal_app::command_line::quote;
use rehearsal_app::evals::Evals;
use rehearsal_app::file::read_all;
use rehearsal_app::project::Project;
use rehearsal_core::config::HumanDuration;
use rehearsal_eval::import::{Format, Imported, Note, NoteKind, Wanted, promptfoo, safe_name, swe_bench};
use rehearsal_eval::mining::MiningStats;
use serde::Serialize;

use crate::commands::Done;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::harmless;
use crate::words;
use beside::{find_clone, read_below};

/// Data sets are larger than what people write.
const LONGEST_IMPORT: u64 = 64 << 20;
/// So much YAML is read: more is not what a person wrote.
const LONGEST_YAML: usize = 4 << 20;

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

/// `eval import --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ImportDocument {
    /// The name of the eval.
    eval: String,
    /// The file that was written; none if it went to standard output.
    file: Option<String>,
    /// The eval itself, if it went to standard output.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// How many cases it has.
    cases: usize,
    /// What was left out, or is another now.
    notes: Vec<Note>,
    /// What was looked at, of a history.
    #[serde(skip_serializing_if = "Option::is_none")]
    history: Option<MiningStats>,
}

pub(super) async fn run(args: &ImportArgs, evals: &Evals, context: &Context) -> Done {
    let project = &evals.project;
    if args.history {
        let target = Target::of(args, "history", project, context)?;
        return Box::pin(history::run(args, &target, evals, context)).await;
    }
    let Some(file) = args.file.as_deref() else {
        return Err(CliError::usage("there is nothing to import")
            .hint("name a file (`-` is standard input), or look for cases in the project's own history with `--history`"));
    };
    let (text, place) = if file == "-" {
        (read_all(std::io::stdin(), "standard input", LONGEST_IMPORT)?, "standard input".to_owned())
    } else {
        (read(&context.directory.join(file))?, file.to_string())
    };
    let target = Target::of(args, file.file_stem().unwrap_or("imported"), project, context)?;
    let path = context.directory.join(file);
    let beside = path.parent().unwrap_or(Utf8Path::new("."));
    let wanted = Wanted {
        name: &target.name,
        judge: args.judge.as_deref(),
        most: args.most.map(|most| most as usize),
        read: &|path| read_below(beside, path),
    };
    let format = args.format.or_else(|| Format::of(&text)).ok_or_else(|| {
        CliError::usage(format!("`{place}` looks like nothing that can be imported"))
            .hint("say what it is: --format promptfoo, or --format swe-bench")
    })?;
    let imported = match format {
        Format::Promptfoo if text.len() > LONGEST_YAML => {
            let most = LONGEST_YAML >> 20;
            return Err(CliError::usage(format!("`{place}` is too large: at most {most} MiB are read")));
        }
        Format::Promptfoo => promptfoo(&text, &wanted),
        Format::SweBench => {
            // Without a directory that was named, beside the eval.
            let beside = || target.directory(&project.directory()).join("repositories");
            let clones = args.repository.as_ref().map_or_else(beside, |given| context.directory.join(given));
            let clones = clones.canonicalize_utf8().unwrap_or(clones);
            swe_bench(&text, &wanted, &|name| find_clone(&clones, name))
        }
    };
    let imported = imported.map_err(|error| CliError::in_file(error, &place))?;
    target.write(&imported.text)?;
    tell(&imported, &target, &place, context);
    Ok(Exit::Ok)
}

fn read(path: &Utf8Path) -> Result<String, CliError> {
    match fs_err::metadata(path) {
        Ok(metadata) if metadata.is_file() => {
            Ok(read_all(fs_err::File::open(path)?, path.as_str(), LONGEST_IMPORT)?)
        }
        Ok(_) => Err(CliError::usage(format!("`{path}` is not a regular file"))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(CliError::usage(format!("there is no file `{path}`")))
        }
        Err(error) => Err(error.into()),
    }
}

/// Where the eval goes, and how it is called.
struct Target {
    name: String,
    /// None is standard output.
    path: Option<Utf8PathBuf>,
    shown: String,
}

impl Target {
    fn of(args: &ImportArgs, like: &str, project: &Project, context: &Context) -> Result<Self, CliError> {
        let name = match &args.name {
            Some(name) if safe_name(name).as_ref() == Some(name) => name.clone(),
            Some(name) => {
                let error = CliError::usage(format!("`{name}` cannot be the name of an eval"));
                return Err(error.hint("up to 60 letters, digits, `-`, `_` and `.`; it names files"));
            }
            None => safe_name(like).unwrap_or_else(|| "imported".to_owned()),
        };
        let path = match &args.output {
            Some(path) if path == "-" => None,
            Some(path) => Some(context.directory.join(path)),
            None => Some(project.directory().join("evals").join(format!("{name}.yaml"))),
        };
        let shown = path.as_ref().map(|path| project.shown(path)).unwrap_or_default();
        if path.as_ref().is_some_and(|path| path.exists()) {
            return Err(CliError::usage(format!("`{shown}` is already there"))
                .hint("give it another name: --as NAME, or write it elsewhere: --output FILE"));
        }
        Ok(Self { name, path, shown })
    }

    /// The directory that paths in the eval are meant from.
    fn directory<'a>(&'a self, otherwise: &'a Utf8Path) -> &'a Utf8Path {
        self.path.as_deref().and_then(Utf8Path::parent).unwrap_or(otherwise)
    }

    fn write(&self, text: &str) -> Result<(), CliError> {
        let Some(path) = &self.path else { return Ok(()) };
        if let Some(parent) = path.parent() {
            fs_err::create_dir_all(parent)?;
        }
        Ok(fs_err::write(path, text)?)
    }

    /// Says that it is written, or says the eval itself.
    fn tell(&self, text: &str, cases: usize, context: &Context) {
        if self.path.is_none() {
            context.ui.say(text.trim_end());
            return;
        }
        let cases = words::count(cases as u64, "case");
        context.ui.say(format!("{} is written: {cases}", self.shown));
        context.ui.say(format!("next: rehearsal eval run {}", quote(&self.name)));
    }

    fn document(&self, text: &str, cases: usize, notes: Vec<Note>) -> ImportDocument {
        ImportDocument {
            eval: self.name.clone(),
            file: self.path.as_ref().map(|_| self.shown.clone()),
            text: self.path.is_none().then(|| text.to_owned()),
            cases,
            notes,
            history: None,
        }
    }
}

fn tell(imported: &Imported, target: &Target, place: &str, context: &Context) {
    let ui = context.ui;
    for note in &imported.notes {
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
        .map(|(kind, what)| (imported.count(kind), what))
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| words::count(count as u64, what))
        .collect();
    if !counts.is_empty() {
        ui.aside(format!("left out: {}", counts.join(", ")));
    }
    target.tell(&imported.text, imported.cases, context);
    ui.document(target.document(&imported.text, imported.cases, imported.notes.clone()));
}

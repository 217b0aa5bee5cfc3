//! `cassette show|diff|lint|redact|doctor`.

mod diff;
mod doctor;
mod lint;
mod redact;
mod show;

use camino::{Utf8Path, Utf8PathBuf};
use clap::Subcommand;
use rehearsal_llm::cassette::{Cassette, Difference, ReadError, Secrets};

use super::Done;
use crate::context::{Context, variables};
use crate::error::CliError;
use crate::exit::Exit;
use crate::project::DIRECTORY;
use crate::ui::harmless;

#[cfg(all(test, feature = "schema"))]
pub(crate) use diff::DiffDocument;
#[cfg(all(test, feature = "schema"))]
pub(crate) use doctor::CassetteDoctorDocument;
#[cfg(all(test, feature = "schema"))]
pub(crate) use lint::LintDocument;
#[cfg(all(test, feature = "schema"))]
pub(crate) use redact::RedactDocument;
#[cfg(all(test, feature = "schema"))]
pub(crate) use show::ShowDocument;

#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  rehearsal cassette show greeting
  rehearsal cassette lint .rehearsal/cassettes/*.jsonl    # before a commit
  rehearsal cassette redact greeting")]
pub(crate) enum CassetteCommand {
    /// Show what was asked and answered
    Show(show::ShowArgs),
    /// Show how one recording differs from another; timing is not compared
    Diff(diff::DiffArgs),
    /// Look for secrets, for what is broken, and for what would not play elsewhere
    Lint(lint::LintArgs),
    /// Write a cassette again without the secrets that are known here
    Redact(redact::RedactArgs),
    /// Run an agent twice, and say what has to be normalised for it
    Doctor(doctor::DoctorArgs),
}

pub(crate) async fn run(command: CassetteCommand, context: &Context) -> Done {
    match &command {
        CassetteCommand::Show(args) => show::run(args, context),
        CassetteCommand::Diff(args) => diff::run(args, context),
        CassetteCommand::Lint(args) => lint::run(args, context),
        CassetteCommand::Redact(args) => redact::run(args, context),
        CassetteCommand::Doctor(args) => doctor::run(args, context).await,
    }
}

/// Where a cassette is: a file by its path, or a name among those of the repository.
pub(crate) fn path_of(context: &Context, name: &Utf8Path) -> Result<Utf8PathBuf, CliError> {
    if name.extension() == Some("jsonl") {
        return Ok(context.directory.join(name));
    }
    if name.as_str().split('/').any(|part| part.is_empty() || part == "..") {
        return Err(CliError::usage(format!("`{name}` is no name of a cassette"))
            .hint("a name is like `greeting` or `agents/greeting`; a file ends in `.jsonl`"));
    }
    Ok(context.project()?.root.join(DIRECTORY).join("cassettes").join(format!("{name}.jsonl")))
}

/// Opens a cassette, or says in words why not.
pub(crate) fn open(context: &Context, name: &Utf8Path) -> Result<Cassette, CliError> {
    let path = path_of(context, name)?;
    Cassette::open(path.as_std_path()).map_err(|error| refused(&path, &error))
}

/// Opens a cassette that is to be played, or says in words why not. One that holds a secret which is known here is not played:
/// what differs from it is shown, and so would the secret be.
pub(crate) fn open_to_play(
    context: &Context,
    name: &Utf8Path,
    secrets: &Secrets,
) -> Result<Cassette, CliError> {
    let path = path_of(context, name)?;
    Cassette::open_without(secrets, path.as_std_path()).map_err(|error| match error {
        ReadError::Secret(_) => CliError::of(Exit::Usage, &error)
            .at(path.as_str())
            .hint(format!("take it out with `rehearsal cassette redact {name}`")),
        error => refused(&path, &error),
    })
}

pub(crate) fn refused(path: &Utf8Path, error: &ReadError) -> CliError {
    let this = match error {
        ReadError::Open { .. } => CliError::of(Exit::Usage, error),
        error => CliError::of(Exit::Usage, error).at(path.as_str()),
    };
    match error {
        ReadError::Open { .. } => this.hint("record it with `rehearsal record NAME -- COMMAND…`"),
        ReadError::Incomplete => {
            this.hint("record it again; a recording that was broken off cannot be played")
        }
        _ => this.hint("record it again, or bring back the file as it was written"),
    }
}

/// The secrets that are known here.
pub(crate) fn secrets() -> Secrets {
    let variables = variables();
    Secrets::of(variables.iter().map(|(name, value)| (name.as_str(), value.as_str())))
}

/// A difference as people read it.
pub(crate) fn told(difference: &Difference) -> String {
    let side = |text: &Option<String>| text.as_deref().map_or_else(|| "(nothing)".to_owned(), one_line_of);
    format!(
        "{}\n  - {}\n  + {}",
        harmless(&difference.place),
        side(&difference.expected),
        side(&difference.got)
    )
}

fn one_line_of(text: &str) -> String {
    harmless(&text.replace('\n', "\\n"))
}

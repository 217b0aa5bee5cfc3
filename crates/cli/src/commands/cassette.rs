//! `cassette show|diff|lint|redact|doctor`.

mod diff;
mod doctor;
mod lint;
mod redact;
mod show;

use clap::Subcommand;
use rehearsal_llm::cassette::Difference;

use super::Done;
use crate::context::Context;
use crate::ui::harmless;

#[cfg(all(test, feature = "schema"))]
pub(crate) use doctor::CassetteDoctorDocument;

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

//! `cassette lint`.

use camino::Utf8PathBuf;
use clap::Args;
use rehearsal_llm::cassette::{Finding, LintError, Severity, lint};
use serde::Serialize;

use super::{Done, path_of, refused, secrets};
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::{BAD, DIM, ODD, harmless, styled};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  rehearsal cassette lint greeting
  rehearsal cassette lint .rehearsal/cassettes/*.jsonl    # before a commit

Ends with 3 if a cassette would be refused, or holds a secret.")]
pub(crate) struct LintArgs {
    /// Names in .rehearsal/cassettes, or files that end in .jsonl
    #[arg(required = true)]
    cassettes: Vec<Utf8PathBuf>,
}

/// `cassette lint --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct LintDocument {
    clean: bool,
    cassettes: Vec<LintedView>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct LintedView {
    cassette: String,
    findings: Vec<Finding>,
}

pub(super) fn run(args: &LintArgs, context: &Context) -> Done {
    let secrets = secrets();
    let mut cassettes = Vec::new();
    for name in &args.cassettes {
        let path = path_of(context, name)?;
        let findings = lint(path.as_std_path(), &secrets).map_err(|error| match error {
            LintError::Read(error) => refused(&path, &error),
            LintError::Pattern(error) => CliError::of(Exit::Internal, &error),
        })?;
        for finding in &findings {
            let (style, word) = match finding.severity {
                Severity::Error => (BAD, "error"),
                Severity::Warning => (ODD, "warning"),
                Severity::Notice => (DIM, "notice"),
            };
            let line = finding.line.map(|line| format!(":{line}")).unwrap_or_default();
            context.ui.say(format!("{name}{line}: {} {}", styled(style, word), harmless(&finding.message)));
        }
        cassettes.push(LintedView { cassette: name.to_string(), findings });
    }
    let all = || cassettes.iter().flat_map(|cassette| &cassette.findings);
    let clean = all().all(|finding| finding.severity != Severity::Error);
    if all().next().is_none() {
        context.ui.say("nothing found");
    }
    context.ui.document(LintDocument { clean, cassettes });
    Ok(if clean { Exit::Ok } else { Exit::Red })
}

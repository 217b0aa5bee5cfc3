//! `cassette lint`.

use camino::Utf8PathBuf;
use clap::Args;
use rehearsal_app::cassettes::{self, LintedView};
use rehearsal_llm::cassette::Severity;

use super::Done;
use crate::context::Context;
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

pub(super) fn run(args: &LintArgs, context: &Context) -> Done {
    let document = cassettes::lint(context, &args.cassettes)?;
    for LintedView { cassette: name, findings } in &document.cassettes {
        for finding in findings {
            let (style, word) = match finding.severity {
                Severity::Error => (BAD, "error"),
                Severity::Warning => (ODD, "warning"),
                Severity::Notice => (DIM, "notice"),
            };
            let line = finding.line.map(|line| format!(":{line}")).unwrap_or_default();
            context.ui.say(format!("{name}{line}: {} {}", styled(style, word), harmless(&finding.message)));
        }
    }
    if document.cassettes.iter().all(|cassette| cassette.findings.is_empty()) {
        context.ui.say("nothing found");
    }
    let exit = if document.clean { Exit::Ok } else { Exit::Red };
    context.ui.document(document);
    Ok(exit)
}

//! `cassette redact`.

use camino::Utf8PathBuf;
use clap::Args;
use rehearsal_llm::cassette::redacted;
use serde::Serialize;

use super::{Done, open, path_of, secrets};
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

#[derive(Debug, Args)]
#[command(after_help = "Example: DEPLOY_TOKEN=… rehearsal cassette redact greeting

Replaced are the values of variables whose names speak of secrets, and texts with the shape of a well-known key.")]
pub(crate) struct RedactArgs {
    /// A name in .rehearsal/cassettes, or a file that ends in .jsonl
    cassette: Utf8PathBuf,
}

/// `cassette redact --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct RedactDocument {
    /// Different secrets that were replaced now.
    replaced: u32,
}

pub(super) fn run(args: &RedactArgs, context: &Context) -> Done {
    let cassette = open(context, &args.cassette)?;
    let path = path_of(context, &args.cassette)?;
    let written = redacted(&cassette, path.as_std_path(), &secrets())
        .map_err(|error| CliError::of(Exit::Internal, &error))?;
    let replaced = written.secrets.saturating_sub(cassette.secrets);
    match replaced {
        0 => context.ui.say("no secret found"),
        1 => context.ui.say("replaced 1 secret"),
        more => context.ui.say(format!("replaced {more} secrets")),
    }
    context.ui.document(RedactDocument { replaced });
    Ok(Exit::Ok)
}

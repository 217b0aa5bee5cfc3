//! `cassette redact`.

use camino::Utf8PathBuf;
use clap::Args;
use rehearsal_app::cassettes;

use super::Done;
use crate::context::Context;
use crate::exit::Exit;

#[derive(Debug, Args)]
#[command(after_help = "Example: DEPLOY_TOKEN=… rehearsal cassette redact greeting

Replaced are the values of variables whose names speak of secrets, and texts with the shape of a well-known key.")]
pub(crate) struct RedactArgs {
    /// A name in .rehearsal/cassettes, or a file that ends in .jsonl
    cassette: Utf8PathBuf,
}

pub(super) fn run(args: &RedactArgs, context: &Context) -> Done {
    let document = cassettes::redact(context, &args.cassette)?;
    match document.replaced {
        0 => context.ui.say("no secret found"),
        1 => context.ui.say("replaced 1 secret"),
        more => context.ui.say(format!("replaced {more} secrets")),
    }
    context.ui.document(document);
    Ok(Exit::Ok)
}

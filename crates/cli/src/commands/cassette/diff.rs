//! `cassette diff`.

use camino::Utf8PathBuf;
use clap::Args;
use rehearsal_app::cassettes;
use rehearsal_llm::cassette::ChangeKind;

use super::{Done, told};
use crate::context::Context;
use crate::exit::Exit;
use crate::ui::{BOLD, styled};

#[derive(Debug, Args)]
#[command(after_help = "Example: rehearsal cassette diff greeting /tmp/again.jsonl

Ends with 3 if they differ.")]
pub(crate) struct DiffArgs {
    /// A name in .rehearsal/cassettes, or a file that ends in .jsonl
    first: Utf8PathBuf,
    /// The other
    second: Utf8PathBuf,
}

pub(super) fn run(args: &DiffArgs, context: &Context) -> Done {
    let document = cassettes::diff(context, &args.first, &args.second)?;
    for change in &document.changes {
        let what = match change.change {
            ChangeKind::Added => "is new",
            ChangeKind::Removed => "is gone",
            ChangeKind::Request => "asks something else",
            ChangeKind::Response => "is answered in another way",
            ChangeKind::Both => "asks something else, and is answered in another way",
        };
        context.ui.say(styled(BOLD, format!("{} {} {what}", change.lane, change.position)));
        for difference in &change.differences {
            context.ui.say(told(difference));
        }
    }
    if document.same {
        context.ui.say("the same requests and answers");
    }
    let exit = if document.same { Exit::Ok } else { Exit::Red };
    context.ui.document(document);
    Ok(exit)
}

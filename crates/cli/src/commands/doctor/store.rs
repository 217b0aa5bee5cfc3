//! `doctor --store`: all that is wrong with the store, one finding a line.

use rehearsal_app::doctor::verify_store;

use crate::commands::Done;
use crate::context::Context;
use crate::exit::Exit;
use crate::ui::{BAD, GOOD, harmless, styled};
use crate::words;

pub(super) async fn verify(context: &Context) -> Done {
    let document = verify_store(&context.project()?).await?;
    for finding in &document.findings {
        context.ui.say(format!("{}  {}", styled(BAD, "bad "), harmless(finding)));
    }
    if document.healthy {
        let events = words::count(document.events.cast_unsigned(), "event");
        context.ui.say(format!("{}  every task is what its events say ({events})", styled(GOOD, "ok  ")));
    } else {
        let count = words::count(document.findings.len() as u64, "finding");
        context.ui.say(format!("{count}; keep a copy of the store and report it"));
    }
    let exit = if document.healthy { Exit::Ok } else { Exit::Red };
    context.ui.document(document);
    Ok(exit)
}

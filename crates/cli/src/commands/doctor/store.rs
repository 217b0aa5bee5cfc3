//! `doctor --store`: all that is wrong with the store, one finding a line.

use serde::Serialize;

use crate::commands::Done;
use crate::context::Context;
use crate::exit::Exit;
use crate::ui::{BAD, GOOD, harmless, styled};
use crate::words;

/// `doctor --store --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct StoreDocument {
    /// Whether nothing was found.
    healthy: bool,
    /// The version of the database's layout.
    schema_version_of_store: i64,
    /// How many events were replayed.
    events: i64,
    /// What is wrong.
    findings: Vec<String>,
}

pub(super) async fn verify(context: &Context) -> Done {
    let store = context.store().await?;
    let findings = store.verify().await?;
    let events = store.last_event().await?;
    for finding in &findings {
        context.ui.say(format!("{}  {}", styled(BAD, "bad "), harmless(finding)));
    }
    let count = words::count(findings.len() as u64, "finding");
    if findings.is_empty() {
        let events = words::count(events.cast_unsigned(), "event");
        context.ui.say(format!("{}  every task is what its events say ({events})", styled(GOOD, "ok  ")));
    } else {
        context.ui.say(format!("{count}; keep a copy of the store and report it"));
    }
    let healthy = findings.is_empty();
    let schema_version_of_store = store.schema_version().await?;
    context.ui.document(StoreDocument { healthy, schema_version_of_store, events, findings });
    Ok(if healthy { Exit::Ok } else { Exit::Red })
}

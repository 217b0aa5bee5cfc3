//! `agent check NAME`: what the installed CLI can do, and whether it behaves. No tokens without `--live`.

use clap::Args;
use rehearsal_app::agents::{CheckDocument, check};
use rehearsal_core::AgentName;

use super::Done;
use crate::context::Context;
use crate::exit::Exit;
use crate::ui::{BAD, GOOD, harmless, styled, table};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  rehearsal agent check implementer
  rehearsal agent check implementer --live     # also asks the model for one word

Ends with 3 if something that is needed does not work.")]
pub(crate) struct CheckArgs {
    /// The agent's name in the configuration
    agent: AgentName,
    /// Also ask the model for one word: this costs tokens
    #[arg(long)]
    live: bool,
}

pub(super) async fn run(args: CheckArgs, context: &Context) -> Done {
    let document = check(&context.project()?, &args.agent, args.live).await?;
    show(&document, context);
    let exit = if document.conforms { Exit::Ok } else { Exit::Red };
    context.ui.document(document);
    Ok(exit)
}

fn show(document: &CheckDocument, context: &Context) {
    let ui = context.ui;
    for row in &document.checks {
        let mark = if row.ok { styled(GOOD, "ok ") } else { styled(BAD, "bad") };
        ui.say(format!("{mark}  {:<20}  {}", row.what, harmless(&row.seen)));
    }
    if !document.capabilities.is_empty() {
        let rows: Vec<Vec<String>> = document
            .capabilities
            .iter()
            .map(|row| {
                vec![
                    row.feature.clone(),
                    row.flag.clone(),
                    if row.supported { "yes" } else { "no" }.to_owned(),
                ]
            })
            .collect();
        ui.say(format!("\n{}", table(&["FEATURE", "FLAG", "SUPPORTED"], &rows)));
    }
    if document.program.is_none() {
        ui.say(format!("hint: install {}, or set `program:` for this agent", document.driver));
    }
}

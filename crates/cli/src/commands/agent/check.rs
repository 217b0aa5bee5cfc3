//! `agent check NAME`: whether the installed CLI can do the whole of what a run needs. No tokens without `--live`.

use clap::Args;
use rehearsal_app::agents::{CheckDocument, CheckRequest, check};
use rehearsal_core::AgentName;
use rehearsal_core::config::HumanDuration;

use super::Done;
use crate::context::Context;
use crate::exit::Exit;
use crate::ui::{BAD, GOOD, harmless, styled, table};
use crate::words;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  rehearsal agent check implementer
  rehearsal agent check implementer --live     # also asks the model for one word

In a scratch repository, and within the same bounds as in a run, the CLI edits a file, runs the test command, commits, reports, reviews a \
change and is killed while a command runs. A fake model on this machine tells it to. It gets a scratch home and no keys.

Ends with 3 if something that is needed does not work.")]
pub(crate) struct CheckArgs {
    /// The agent's name in the configuration
    agent: AgentName,
    /// Also ask the model for one word: this costs tokens
    #[arg(long)]
    live: bool,
    /// The longest that the check may take, without --live
    #[arg(long, value_name = "DURATION", default_value = "20s")]
    timeout: HumanDuration,
}

pub(super) async fn run(args: CheckArgs, context: &Context) -> Done {
    let request = CheckRequest { agent: args.agent, live: args.live, limit: args.timeout.0 };
    let document = check(&context.project()?, request).await?;
    show(&document, context);
    let exit = if document.conforms { Exit::Ok } else { Exit::Red };
    context.ui.document(document);
    Ok(exit)
}

fn show(document: &CheckDocument, context: &Context) {
    let ui = context.ui;
    let mut last: Option<String> = None;
    for row in &document.checks {
        let mark = if row.ok { styled(GOOD, "ok ") } else { styled(BAD, "bad") };
        let seen = words::check::seen(row, document);
        ui.say(format!("{mark}  {:<18}  {}", words::check::ability(row.what), harmless(&seen)));
        // One piece of advice for several rows is given once.
        let remedy = words::check::remedy(row, document);
        if let Some(remedy) = &remedy
            && last.as_ref() != Some(remedy)
        {
            ui.say(format!("     hint: {remedy}"));
        }
        last = remedy.or(last);
    }
    if let Some(bounds) = &document.bounds {
        ui.say(format!("\nin a run: {}", harmless(&words::confined(&bounds.by))));
        for line in words::granted(bounds) {
            ui.say(format!("- {}", harmless(&line)));
        }
    }
    if !document.capabilities.is_empty() {
        let yes_or_no = |supported: bool| if supported { "yes" } else { "no" }.to_owned();
        let rows = document.capabilities.iter();
        let rows = rows.map(|row| vec![row.feature.clone(), row.flag.clone(), yes_or_no(row.supported)]);
        ui.say(format!("\n{}", table(&["FEATURE", "FLAG", "SUPPORTED"], &rows.collect::<Vec<_>>())));
    }
}

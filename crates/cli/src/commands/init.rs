//! `init`: looks at the repository, then writes a commented configuration.

use clap::Args;
use rehearsal_app::init::{Existing, init};

use super::Done;
use crate::context::Context;
use crate::exit::Exit;
use crate::words;

#[derive(Debug, Args)]
#[command(after_help = "Example: rehearsal init")]
pub(crate) struct InitArgs {
    /// Write over a configuration that is there
    #[arg(long)]
    force: bool,
}

pub(crate) async fn run(args: InitArgs, context: &Context) -> Done {
    let existing = if args.force { Existing::Replace } else { Existing::Keep };
    let document = init(&context.project()?, existing).await?;
    let ui = context.ui;
    let found = &document.found;
    let or_none = |value: Option<String>| value.unwrap_or_else(|| "none found".into());
    let agents: Vec<&str> = found.agents.iter().map(|kind| kind.as_str()).collect();
    ui.say(format!("base branch: {}", or_none(found.base_branch.clone())));
    ui.say(format!("tests: {}", or_none(words::tests(&found.tests))));
    ui.say(format!("agents: {}", if agents.is_empty() { "none found".into() } else { agents.join(", ") }));
    for path in &document.scenarios {
        ui.say(format!("{path} is written, a scenario to begin with"));
    }
    ui.say(format!("{} is written; read it, then:", document.config));
    ui.say("next: rehearsal session new NAME");
    ui.say("next: rehearsal doctor");
    ui.say("next: rehearsal rehearse --trace");
    ui.document(document);
    Ok(Exit::Ok)
}

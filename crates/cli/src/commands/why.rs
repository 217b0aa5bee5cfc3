//! `why TASK`.

use clap::Args;
use rehearsal_app::command_line;
use rehearsal_app::runs::{self, WhyAnswer};
use serde::Serialize;

use super::Done;
use crate::context::Context;
use crate::exit::Exit;
use crate::ui::{BOLD, harmless, styled};
use crate::words;

#[derive(Debug, Args)]
#[command(after_help = "Example: rehearsal why k3f

Says who works on it and for how long it is theirs, what it waits for, which step is next and how often it was tried, \
what holds it back (a pause, a limit, another task), and the command that helps.")]
pub(crate) struct WhyArgs {
    /// The task's id, or a unique prefix of it
    task: String,
}

/// `why --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct WhyDocument {
    #[serde(flatten)]
    answer: WhyAnswer,
    /// What to do, as commands.
    next: Vec<String>,
}

pub(crate) async fn run(args: WhyArgs, context: &Context) -> Done {
    let answer = runs::why(&context.project()?, &args.task).await?;
    let why = &answer.why;
    let now = context.now();
    let ui = context.ui;
    ui.say(format!("{}  {} is {}", styled(BOLD, &why.task), harmless(&why.title), why.status));
    for reason in &why.reasons {
        ui.say(format!("- {}", harmless(reason)));
    }
    if let Some(until) = why.lease_until {
        ui.say(if until > now {
            let left = words::duration(until.since(now));
            format!("- its worker holds it for another {left}, and longer with each sign of life")
        } else {
            format!("- its lease was over {}", words::relative(until, now))
        });
    }
    if let Some(until) = why.until {
        let when = if until > now { words::relative(until, now) } else { "now".to_owned() };
        ui.say(format!("- it may go on {when} ({})", words::moment(until)));
    }
    if let Some(decision) = &answer.decision {
        ui.say(format!("- {}", words::decision(decision, now)));
    }
    let next: Vec<String> = why.next.iter().map(command_line::line).collect();
    for command in &next {
        ui.say(format!("next: {command}"));
    }
    ui.document(WhyDocument { answer, next });
    Ok(Exit::Ok)
}

//! `why TASK`.

use clap::Args;
use rehearsal_engine::{LoopLock, why::why};

use super::Done;
use crate::context::Context;
use crate::exit::Exit;
use crate::ui::{BOLD, harmless, styled};
use crate::words;

#[derive(Debug, Args)]
#[command(after_help = "Example: rehearsal why k3f")]
pub(crate) struct WhyArgs {
    /// The task's id, or a unique prefix of it
    task: String,
}

pub(crate) async fn run(args: WhyArgs, context: &Context) -> Done {
    let project = context.project()?;
    let store = project.store().await?;
    let task = store.find_task(&args.task).await?;
    let holder = LoopLock::holder(&project.state_dir());
    let why = why(&*store, &task, context.now(), holder.as_deref()).await?;
    let ui = context.ui;
    ui.say(format!("{}  {} is {}", styled(BOLD, &why.task), harmless(&why.title), why.status));
    for reason in &why.reasons {
        ui.say(format!("- {}", harmless(reason)));
    }
    if let Some(until) = why.until {
        let now = context.now();
        let when = if until > now { words::relative(until, now) } else { "now".to_owned() };
        ui.say(format!("- it may go on {when} ({})", words::moment(until)));
    }
    for command in &why.next {
        ui.say(format!("next: {command}"));
    }
    ui.document(why);
    Ok(Exit::Ok)
}

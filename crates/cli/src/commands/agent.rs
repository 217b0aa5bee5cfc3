//! `agent list|check|explain`.

mod check;
mod explain;

use clap::Subcommand;
use rehearsal_app::agents::{self, AgentView};

use super::Done;
use crate::context::Context;
use crate::exit::Exit;
use crate::ui::table;

#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  rehearsal agent list
  rehearsal agent check implementer")]
pub(crate) enum AgentCommand {
    /// List the agents, and whether their programs are here
    #[command(after_help = "Example: rehearsal agent list")]
    List,
    /// Try out whether an agent's CLI can do all that a run needs, with a fake model
    Check(check::CheckArgs),
    /// Say which outcome a recorded output leads to, and by which evidence
    Explain(explain::ExplainArgs),
}

pub(crate) async fn run(command: AgentCommand, context: &Context) -> Done {
    match command {
        AgentCommand::List => list(context),
        AgentCommand::Check(args) => check::run(args, context).await,
        AgentCommand::Explain(args) => explain::run(&args, context),
    }
}

fn list(context: &Context) -> Done {
    let list = agents::list(&context.project()?)?;
    let row = |agent: &AgentView| {
        vec![
            format!("{}{}", agent.name, if agent.used { " *" } else { "" }),
            match &agent.role {
                Some(role) => format!("{} ({role})", agent.driver),
                None => agent.driver.clone(),
            },
            agent.model.clone().unwrap_or_else(|| "-".into()),
            agent.program.clone().unwrap_or_else(|| "not found".into()),
        ]
    };
    context.ui.say(table(
        &["AGENT", "DRIVER", "MODEL", "PROGRAM"],
        &list.agents.iter().map(row).collect::<Vec<_>>(),
    ));
    context.ui.document(list);
    Ok(Exit::Ok)
}

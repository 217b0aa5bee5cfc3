//! `agent list|check|explain`.

mod check;
mod explain;
mod offline;

use clap::Subcommand;
use rehearsal_core::config::Overrides;
use schemars::JsonSchema;
use serde::Serialize;

use super::Done;
use crate::context::Context;
use crate::exit::Exit;
use crate::ui::table;

#[derive(Debug, Subcommand)]
pub(crate) enum AgentCommand {
    /// List the agents of the configuration, and whether their programs are here
    #[command(after_help = "Example: rehearsal agent list")]
    List,
    /// Run an agent's CLI through a short list of what it must be able to do
    Check(check::CheckArgs),
    /// Say which outcome a recorded output leads to, and by which evidence
    Explain(explain::ExplainArgs),
}

/// `agent list --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AgentList {
    agents: Vec<AgentView>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct AgentView {
    name: String,
    driver: String,
    model: Option<String>,
    /// Where its program is, if it was found.
    program: Option<String>,
    /// Whether `run` uses it.
    used: bool,
}

pub(crate) use check::CheckDocument;

pub(crate) async fn run(command: AgentCommand, context: &Context) -> Done {
    match command {
        AgentCommand::List => list(context),
        AgentCommand::Check(args) => check::run(args, context).await,
        AgentCommand::Explain(args) => explain::run(&args, context),
    }
}

fn list(context: &Context) -> Done {
    let settings = context.project()?.settings(Overrides::default())?;
    let agents: Vec<AgentView> = settings
        .agents
        .iter()
        .map(|(name, profile)| {
            let driver = profile.driver.value;
            let program = profile.program.value.clone().unwrap_or_else(|| driver.as_str().to_owned());
            AgentView {
                name: name.to_string(),
                driver: driver.to_string(),
                model: profile.model.value.clone(),
                program: which::which(&program).ok().map(|path| path.display().to_string()),
                used: *name == settings.agent.value,
            }
        })
        .collect();
    let row = |agent: &AgentView| {
        vec![
            format!("{}{}", agent.name, if agent.used { " *" } else { "" }),
            agent.driver.clone(),
            agent.model.clone().unwrap_or_else(|| "-".into()),
            agent.program.clone().unwrap_or_else(|| "not found".into()),
        ]
    };
    context
        .ui
        .say(table(&["AGENT", "DRIVER", "MODEL", "PROGRAM"], &agents.iter().map(row).collect::<Vec<_>>()));
    context.ui.document(AgentList { agents });
    Ok(Exit::Ok)
}

//! `agent list|check|explain`.

mod check;
mod explain;
mod offline;

use clap::Subcommand;
use rehearsal_core::AgentName;
use rehearsal_core::config::{Overrides, Profile};
use rehearsal_engine::program_of;
use serde::Serialize;

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
    /// Run an agent's CLI through a short list of what it must be able to do
    Check(check::CheckArgs),
    /// Say which outcome a recorded output leads to, and by which evidence
    Explain(explain::ExplainArgs),
}

/// `agent list --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct AgentList {
    agents: Vec<AgentView>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct AgentView {
    name: String,
    driver: String,
    model: Option<String>,
    /// Its role in the crew.
    role: Option<String>,
    /// Where its program is, if it was found.
    program: Option<String>,
    /// Whether it is there without being configured.
    built_in: bool,
    /// Whether `run` uses it.
    used: bool,
}

#[cfg(all(test, feature = "schema"))]
pub(crate) use check::CheckDocument;

pub(crate) async fn run(command: AgentCommand, context: &Context) -> Done {
    match command {
        AgentCommand::List => list(context),
        AgentCommand::Check(args) => check::run(args, context).await,
        AgentCommand::Explain(args) => explain::run(&args, context),
    }
}

fn found_program(profile: &Profile) -> Option<String> {
    let found = which::which(program_of(profile).ok()?).ok()?;
    Some(found.display().to_string())
}

fn list(context: &Context) -> Done {
    let settings = context.project()?.settings(Overrides::default())?;
    let view = |name: &AgentName, profile: &Profile| AgentView {
        name: name.to_string(),
        driver: profile.driver.to_string(),
        model: profile.model.clone(),
        role: profile.role.clone(),
        program: found_program(profile),
        built_in: !settings.agents.contains_key(name),
        used: *name == settings.agent,
    };
    let all = settings.agents.iter().chain(&settings.built_in);
    let agents: Vec<AgentView> = all.map(|(name, profile)| view(name, profile)).collect();
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
    context
        .ui
        .say(table(&["AGENT", "DRIVER", "MODEL", "PROGRAM"], &agents.iter().map(row).collect::<Vec<_>>()));
    context.ui.document(AgentList { agents });
    Ok(Exit::Ok)
}

//! The agents of a project.

mod check;

use rehearsal_core::AgentName;
use rehearsal_core::config::Profile;
use rehearsal_engine::program_of;
use serde::Serialize;

use crate::project::{Project, ProjectError};

pub use check::{Ability, CheckDocument, CheckError, CheckRequest, CheckRow, Seen, check};

/// `agent list --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentList {
    /// The configured ones, then the built-in ones.
    pub agents: Vec<AgentView>,
}

/// An agent in a listing.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentView {
    /// Its name.
    pub name: String,
    /// How it is run.
    pub driver: String,
    /// Its model, if it is set.
    pub model: Option<String>,
    /// Its role in the crew.
    pub role: Option<String>,
    /// Where its program is, if it was found.
    pub program: Option<String>,
    /// Whether it is there without being configured.
    pub built_in: bool,
    /// Whether `run` uses it.
    pub used: bool,
}

/// Lists the agents, and whether their programs are installed.
pub fn list(project: &Project) -> Result<AgentList, ProjectError> {
    let settings = project.settings()?;
    let view = |(name, profile): (&AgentName, &Profile)| AgentView {
        name: name.to_string(),
        driver: profile.driver.to_string(),
        model: profile.model.clone(),
        role: profile.role.clone(),
        program: found_program(profile),
        built_in: !settings.agents.contains_key(name),
        used: *name == settings.agent,
    };
    Ok(AgentList { agents: settings.agents.iter().chain(&settings.built_in).map(view).collect() })
}

fn found_program(profile: &Profile) -> Option<String> {
    let found = which::which(program_of(profile).ok()?).ok()?;
    Some(found.display().to_string())
}

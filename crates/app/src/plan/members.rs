//! Who can be given a task of a plan.

use rehearsal_core::AgentName;
use rehearsal_core::config::{Origin, PermissionMode, Profile};
use rehearsal_crew::Roles;
use rehearsal_crew::plan::Member;

use crate::crew::roles_of;
use crate::project::Project;

use super::PlanningError;

/// These decide on the work of others, and are asked when there is some.
const DECIDERS: [&str; 4] = ["review", "qa", "reviewer", "gatekeeper"];

/// Who can be given a task: the crew, and the agents of the configuration. Those who decide are left out: flows ask them.
pub fn members(project: &Project) -> Result<Vec<Member>, PlanningError> {
    let settings = project.settings()?;
    let roles = roles_of(project)?;
    let configured = settings.agents.iter().filter(|(_, profile)| is_written(profile));
    let all = settings.built_in.iter().chain(configured);
    let members = all
        .filter(|(name, profile)| profile.enabled && !DECIDERS.contains(&name.as_str()))
        .map(|(name, profile)| member(name, profile, &roles));
    Ok(members.collect())
}

/// Whether someone configured this agent. The one that `run` uses exists even if nobody did.
fn is_written(profile: &Profile) -> bool {
    ["driver", "program", "model", "args"].iter().any(|key| *profile.origins.get(key) != Origin::Default)
}

/// An agent with the name of a role is for what the role is for, also if another driver runs it.
fn member(name: &AgentName, profile: &Profile, roles: &Roles) -> Member {
    let role = profile.role.as_deref().unwrap_or(name.as_str());
    let by_permission = profile.permission == PermissionMode::Plan;
    let (about, by_role) = match roles.get(role) {
        Ok(role) => (role.about.clone(), !role.permissions.write),
        Err(_) => (format!("An agent of this project's configuration ({})", profile.driver), false),
    };
    Member { name: name.clone(), about, only_looks: by_permission || by_role }
}

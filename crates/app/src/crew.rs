//! The built-in agents: their roles, and one at work.

mod work;

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_core::config::{DriverKind, HumanDuration, Profile};
use rehearsal_crew::{
    Hooks, Permissions, Role, RoleError, RoleOrigin, Roles, SYSTEM_BUDGET, Surroundings, estimate,
    system_prompt,
};
use serde::Serialize;

use crate::caller::Caller;
use crate::project::{DIRECTORY, Project};

pub use work::{CrewError, Member, MemberRequest, Work};

/// `crew list --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RoleList {
    /// By name.
    pub roles: Vec<RoleView>,
}

/// `crew show --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RoleDocument {
    /// The role.
    pub role: RoleView,
    /// Its system prompt, as it is in this repository.
    pub prompt: String,
    /// The tokens of it, about.
    pub prompt_tokens: usize,
    /// What had no room in it.
    pub left_out: Vec<&'static str>,
}

/// A role as people see it.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RoleView {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub about: String,
    /// What it may do.
    pub permissions: Permissions,
    /// The tools that it has.
    pub tools: Vec<String>,
    /// How long it may work.
    pub timeout: HumanDuration,
    /// How long it may work if asked for.
    pub max_timeout: HumanDuration,
    /// How often it may ask its model.
    pub turns: u64,
    /// Its model, instead of its agent's.
    pub model: Option<String>,
    /// Appended to the model's name at a gateway.
    pub model_suffix: Option<String>,
    /// Whether it is told about the project.
    pub project_context: bool,
    /// The commands before and after each call of a tool.
    pub hooks: Hooks,
    /// The names of the servers whose tools it has.
    pub mcp: Vec<String>,
    /// The file that it is in, or that changes it; none if it is built in.
    pub file: Option<String>,
}

impl RoleView {
    fn new(role: &Role, origin: &RoleOrigin) -> Self {
        let file = match origin {
            RoleOrigin::BuiltIn => None,
            RoleOrigin::Changed(path) | RoleOrigin::Own(path) => Some(path.to_string()),
        };
        Self {
            name: role.name.clone(),
            about: role.about.clone(),
            permissions: role.permissions,
            tools: role.tools.clone(),
            timeout: HumanDuration(role.timeout),
            max_timeout: HumanDuration(role.max_timeout),
            turns: role.turns,
            model: role.model.clone(),
            model_suffix: role.model_suffix.clone(),
            project_context: role.project_context,
            hooks: role.hooks.clone(),
            mcp: role.mcp.keys().cloned().collect(),
            file,
        }
    }
}

/// The roles of the repository around, or only the built-in ones where there is none.
pub fn list(caller: &Caller) -> Result<RoleList, RoleError> {
    let roles = roles_in(&agents_dir_of(caller))?;
    Ok(RoleList { roles: roles.iter().map(|(role, origin)| RoleView::new(role, origin)).collect() })
}

/// A role, and the system prompt that it has in the caller's directory.
pub fn show(caller: &Caller, name: &str) -> Result<RoleDocument, RoleError> {
    let roles = roles_in(&agents_dir_of(caller))?;
    let role = roles.get(name)?;
    let origin = roles.iter().find(|(known, _)| known.name == role.name).map(|(_, origin)| origin);
    let prompt = system_prompt(role, None, &Surroundings::of(&caller.directory), SYSTEM_BUDGET);
    Ok(RoleDocument {
        role: RoleView::new(role, origin.unwrap_or(&RoleOrigin::BuiltIn)),
        prompt_tokens: estimate(&prompt.text),
        prompt: prompt.text,
        left_out: prompt.dropped,
    })
}

/// The built-in roles, and those of a directory.
pub fn roles_in(directory: &Utf8Path) -> Result<Roles, RoleError> {
    Roles::built_in().and_then(|roles| roles.with_those_in(directory))
}

/// The roles of a project.
pub fn roles_of(project: &Project) -> Result<Roles, RoleError> {
    roles_in(&project.directory().join("agents"))
}

/// Where the roles of the repository around are, or would be.
pub fn agents_dir_of(caller: &Caller) -> Utf8PathBuf {
    let root = Project::open(caller).map_or_else(|_| caller.directory.clone(), |project| project.root);
    root.join(DIRECTORY).join("agents")
}

/// Whether the role of a built-in agent exists: a run should not have to find out.
pub fn check_role(profile: &Profile, project: &Project) -> Result<(), RoleError> {
    match &profile.role {
        Some(role) if profile.driver == DriverKind::CREW => roles_of(project)?.get(role).map(drop),
        _ => Ok(()),
    }
}

//! A role's YAML.

use std::collections::BTreeMap;

use rehearsal_core::config::HumanDuration;
use rehearsal_core::nearest;
use rehearsal_core::yaml::{self, Spanned};
use rehearsal_core::{Place, SourceError};
use serde::Deserialize;

use super::Role;
use crate::toolbox::NEEDS;
use crate::{Hooks, McpServer, Permissions, WebSearch};

/// `.rehearsal/agents/NAME.yaml`: a role of your own, or what is different about one that is built in.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct RoleFile {
    /// What it is for, in a line.
    about: Option<String>,
    /// What it is told: its system prompt.
    prompt: Option<String>,
    /// The tools that it has.
    #[cfg_attr(feature = "schema", schemars(with = "Option<Vec<String>>"))]
    tools: Option<Vec<Spanned<String>>>,
    /// What it may do. A tool that needs more than this is an error.
    #[cfg_attr(feature = "schema", schemars(with = "Option<Permissions>"))]
    permissions: Option<Spanned<Permissions>>,
    /// How long it may work.
    timeout: Option<HumanDuration>,
    /// The longest that is sensible; nobody can ask for more than three times this.
    #[cfg_attr(feature = "schema", schemars(with = "Option<HumanDuration>"))]
    max_timeout: Option<Spanned<HumanDuration>>,
    /// How often it may ask its model.
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    turns: Option<Spanned<u64>>,
    /// Its model: `anthropic:NAME`, `openai:NAME`, `responses:NAME` or `gemini:NAME`.
    model: Option<String>,
    /// What is put behind the model's name, for gateways that know it: `:online`.
    model_suffix: Option<String>,
    /// Whether it is told what is known of the project.
    project_context: Option<bool>,
    /// Commands before and after each call of a tool; one before it that ends with 2 refuses the call.
    hooks: Option<Hooks>,
    /// Servers of the Model Context Protocol, by name: it has their tools too.
    mcp: Option<BTreeMap<String, McpServer>>,
    /// Where `web_search` asks; without it there is no such tool.
    web_search: Option<WebSearch>,
}

/// A role that says nothing about time has as much as one that searches.
const TIMEOUT: HumanDuration = HumanDuration(std::time::Duration::from_mins(10));
const MAX_TIMEOUT: HumanDuration = HumanDuration(std::time::Duration::from_mins(30));
const TURNS: u64 = 60;

/// Reads a role, on top of one of the same name if there is one.
pub(super) fn read(name: &str, text: &str, base: Option<&Role>) -> Result<Role, SourceError> {
    check_name(name)?;
    let file: RoleFile = yaml::from_str(text)?;
    let missing = |key: &str| {
        SourceError::at(Some(Place { line: 1, column: 1 }), format!("the new role `{name}` has no `{key}`"))
            .hint("a role that is not built in needs `about`, `prompt`, `tools` and `permissions`")
    };
    let tools = match (&file.tools, base) {
        (Some(tools), _) => tools.iter().map(|tool| tool.value.clone()).collect(),
        (None, Some(base)) => base.tools.clone(),
        (None, None) => return Err(missing("tools")),
    };
    let of = |get: fn(&Role) -> &str| base.map(|base| get(base).to_owned());
    let about = file.about.clone().or_else(|| of(|base| &base.about));
    let prompt = file.prompt.clone().or_else(|| of(|base| &base.prompt));
    let permissions = file.permissions.as_ref().map(|written| written.value);
    let permissions = permissions.or(base.map(|base| base.permissions));
    let max_timeout = file.max_timeout.as_ref().map(|max| max.value.0);
    let role = Role {
        name: name.to_owned(),
        about: about.ok_or_else(|| missing("about"))?.trim().to_owned(),
        prompt: prompt.ok_or_else(|| missing("prompt"))?.trim().to_owned(),
        tools,
        permissions: permissions.ok_or_else(|| missing("permissions"))?,
        timeout: file.timeout.map_or_else(|| base.map_or(TIMEOUT.0, |base| base.timeout), |limit| limit.0),
        max_timeout: max_timeout.unwrap_or_else(|| base.map_or(MAX_TIMEOUT.0, |base| base.max_timeout)),
        turns: file.turns.as_ref().map_or_else(|| base.map_or(TURNS, |base| base.turns), |turns| turns.value),
        model: file.model.clone().or_else(|| base.and_then(|base| base.model.clone())),
        model_suffix: file.model_suffix.clone().or_else(|| base.and_then(|base| base.model_suffix.clone())),
        project_context: file.project_context.unwrap_or_else(|| base.is_none_or(|base| base.project_context)),
        hooks: file.hooks.clone().or_else(|| base.map(|base| base.hooks.clone())).unwrap_or_default(),
        mcp: file.mcp.clone().or_else(|| base.map(|base| base.mcp.clone())).unwrap_or_default(),
        web_search: file.web_search.clone().or_else(|| base.and_then(|base| base.web_search.clone())),
    };
    check(&role, &file)?;
    Ok(role)
}

/// The name goes onto command lines and into file names.
fn check_name(name: &str) -> Result<(), SourceError> {
    rehearsal_core::AgentName::new(name).map(drop).map_err(|error| {
        SourceError::at(None, error.to_string()).hint("a role is called like its file, without `.yaml`")
    })
}

fn check(role: &Role, file: &RoleFile) -> Result<(), SourceError> {
    let written = |tool: &str| file.tools.iter().flatten().find(|written| written.value == tool);
    for tool in &role.tools {
        let place = written(tool)
            .and_then(|tool| tool.place)
            .or_else(|| file.permissions.as_ref().and_then(|permissions| permissions.place));
        check_tool(tool, place, role)?;
    }
    if role.turns == 0 {
        let place = file.turns.as_ref().and_then(|turns| turns.place);
        return Err(SourceError::at(place, "`turns` must be at least 1"));
    }
    if role.max_timeout < role.timeout {
        let place = file.max_timeout.as_ref().and_then(|timeout| timeout.place);
        let (timeout, max) = (HumanDuration(role.timeout), HumanDuration(role.max_timeout));
        let message = format!("`max_timeout` ({max}) is shorter than `timeout` ({timeout})");
        return Err(SourceError::at(place, message));
    }
    Ok(())
}

/// What a tool needs is looked at when the role is loaded, so that no run finds out.
fn check_tool(tool: &str, place: Option<Place>, role: &Role) -> Result<(), SourceError> {
    let Some((_, needed)) = NEEDS.iter().find(|(known, _)| *known == tool) else {
        let error = SourceError::at(place, format!("there is no tool `{tool}`"));
        let names = NEEDS.iter().map(|(name, _)| *name);
        return Err(match nearest(tool, names.clone()) {
            Some(near) => error.hint(format!("did you mean `{near}`?")),
            None => error.hint(format!("there are {}", names.collect::<Vec<_>>().join(", "))),
        });
    };
    match needed.filter(|needed| !role.permissions.allow(*needed)) {
        None => Ok(()),
        Some(needed) => {
            let message = format!(
                "the tool `{tool}` needs the permission `{needed}`, which `{}` does not have",
                role.name
            );
            let hint = format!("write `{needed}: true` under `permissions`, or take the tool away");
            Err(SourceError::at(place, message).hint(hint))
        }
    }
}

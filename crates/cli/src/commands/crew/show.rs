//! `crew list`, `crew show`.

use clap::Args;
use rehearsal_core::config::HumanDuration;
use rehearsal_crew::{
    Hooks, Permission, Permissions, Role, RoleOrigin, SYSTEM_BUDGET, Surroundings, estimate, system_prompt,
};
use serde::Serialize;

use super::{Done, role_error, roles_here};
use crate::context::Context;
use crate::exit::Exit;
use crate::ui::{BOLD, harmless, styled, table};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  rehearsal crew show code
  rehearsal crew show review --prompt    # all that the model is told before its task
  rehearsal crew show qa --json")]
pub(crate) struct ShowArgs {
    /// The role
    role: String,
    /// Print its system prompt as it is in this repository, and nothing else
    #[arg(long)]
    prompt: bool,
}

/// `crew list --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct RoleList {
    roles: Vec<RoleView>,
}

/// `crew show --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct RoleDocument {
    role: RoleView,
    /// Its system prompt, as it is in this repository.
    prompt: String,
    /// The tokens of it, about.
    prompt_tokens: usize,
    /// What had no room in it.
    left_out: Vec<&'static str>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct RoleView {
    name: String,
    about: String,
    permissions: Permissions,
    tools: Vec<String>,
    timeout: HumanDuration,
    max_timeout: HumanDuration,
    turns: u64,
    model: Option<String>,
    model_suffix: Option<String>,
    project_context: bool,
    /// The commands before and after each call of a tool.
    hooks: Hooks,
    /// The names of the servers whose tools it has.
    mcp: Vec<String>,
    /// The file that it is in, or that changes it; none if it is built in.
    file: Option<String>,
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

fn allowed(permissions: Permissions) -> String {
    let words: Vec<&str> = Permission::ALL
        .into_iter()
        .filter(|permission| permissions.allow(*permission))
        .map(Permission::as_str)
        .collect();
    if words.is_empty() { "nothing".to_owned() } else { words.join(", ") }
}

pub(super) fn list(context: &Context) -> Done {
    let roles = roles_here(context)?;
    let views: Vec<RoleView> = roles.iter().map(|(role, origin)| RoleView::new(role, origin)).collect();
    let row = |role: &RoleView| {
        let mark = if role.file.is_some() { " *" } else { "" };
        let may = allowed(role.permissions);
        vec![format!("{}{mark}", harmless(&role.name)), may, role.timeout.to_string(), harmless(&role.about)]
    };
    context.ui.say(table(&["ROLE", "MAY", "TIME", "FOR"], &views.iter().map(row).collect::<Vec<_>>()));
    if views.iter().any(|role| role.file.is_some()) {
        context.ui.say("\n* from `.rehearsal/agents`");
    }
    context.ui.document(RoleList { roles: views });
    Ok(Exit::Ok)
}

pub(super) fn show(args: &ShowArgs, context: &Context) -> Done {
    let roles = roles_here(context)?;
    let role = roles.get(&args.role).map_err(role_error)?;
    let origin = roles.iter().find(|(known, _)| known.name == role.name).map(|(_, origin)| origin.clone());
    let view = RoleView::new(role, &origin.unwrap_or(RoleOrigin::BuiltIn));
    let prompt = system_prompt(role, None, &Surroundings::of(&context.directory), SYSTEM_BUDGET);
    if args.prompt {
        context.ui.say(harmless(prompt.text.trim_end()));
    } else {
        describe(&view, context);
        let tokens = estimate(&prompt.text);
        context.ui.say(format!("prompt     about {tokens} tokens; `--prompt` prints it"));
    }
    let prompt_tokens = estimate(&prompt.text);
    context.ui.document(RoleDocument {
        role: view,
        prompt: prompt.text,
        prompt_tokens,
        left_out: prompt.dropped,
    });
    Ok(Exit::Ok)
}

fn describe(role: &RoleView, context: &Context) {
    let ui = context.ui;
    ui.say(format!("{}: {}", styled(BOLD, harmless(&role.name)), harmless(&role.about)));
    let line = |name: &str, value: String| ui.say(format!("{name:<10} {}", harmless(&value)));
    line("may", allowed(role.permissions));
    line("tools", role.tools.join(", "));
    let longest = HumanDuration(role.max_timeout.0.saturating_mul(3));
    line("time", format!("{}, up to {longest} if asked for", role.timeout));
    line("turns", role.turns.to_string());
    let suffix = role.model_suffix.as_deref().map(|suffix| format!(", with `{suffix}` at a gateway"));
    let model = role.model.as_deref().unwrap_or("that of its agent, or the vendor's usual one");
    line("model", format!("{model}{}", suffix.unwrap_or_default()));
    if !role.mcp.is_empty() {
        line("mcp", role.mcp.join(", "));
    }

    for hook in role.hooks.pre_tool.iter().chain(&role.hooks.post_tool) {
        line("hook", hook.command.clone());
    }
    line(
        "project",
        if role.project_context { "it is told of it" } else { "it finds out by itself" }.to_owned(),
    );
    line("from", role.file.clone().unwrap_or_else(|| "built in".to_owned()));
}

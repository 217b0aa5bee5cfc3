//! `crew list`, `crew show`.

use clap::Args;
use rehearsal_app::crew::{self, RoleView};
use rehearsal_core::config::HumanDuration;
use rehearsal_crew::{Permission, Permissions};

use super::Done;
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

fn allowed(permissions: Permissions) -> String {
    let words: Vec<&str> = Permission::ALL
        .into_iter()
        .filter(|permission| permissions.allow(*permission))
        .map(Permission::as_str)
        .collect();
    if words.is_empty() { "nothing".to_owned() } else { words.join(", ") }
}

pub(super) fn list(context: &Context) -> Done {
    let list = crew::list(context)?;
    let row = |role: &RoleView| {
        let mark = if role.file.is_some() { " *" } else { "" };
        let may = allowed(role.permissions);
        vec![format!("{}{mark}", harmless(&role.name)), may, role.timeout.to_string(), harmless(&role.about)]
    };
    context.ui.say(table(&["ROLE", "MAY", "TIME", "FOR"], &list.roles.iter().map(row).collect::<Vec<_>>()));
    if list.roles.iter().any(|role| role.file.is_some()) {
        context.ui.say("\n* from `.rehearsal/agents`");
    }
    context.ui.document(list);
    Ok(Exit::Ok)
}

pub(super) fn show(args: &ShowArgs, context: &Context) -> Done {
    let document = crew::show(context, &args.role)?;
    if args.prompt {
        context.ui.say(harmless(document.prompt.trim_end()));
    } else {
        describe(&document.role, context);
        let tokens = document.prompt_tokens;
        context.ui.say(format!("prompt     about {tokens} tokens; `--prompt` prints it"));
    }
    context.ui.document(document);
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

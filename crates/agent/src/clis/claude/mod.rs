//! Claude Code.

use rehearsal_core::{Bounds, Keep, ModelClient, Rewrite};

use super::stage::KEY;
use super::{AgentCli, Endpoint, Retries, Sessions, StageSetup, VendorApi};
use crate::driver::check::{Need, Requirement, needed, optional};
use crate::driver::{CommandLine, JsonLines, Offer};
use crate::environment::Variables;
use crate::mock::wire::MockCli;
use crate::{OwnPlaces, Permission, RunRequest};

mod end;
mod message;
mod mock;
mod wire;

pub(super) static CLI: AgentCli = AgentCli {
    name: "claude",
    install: Some("npm install -g @anthropic-ai/claude-code"),
    native_binaries: &[
        "@anthropic-ai/claude-code-linux-{node}/claude",
        "@anthropic-ai/claude-code-linux-{node}-musl/claude",
    ],
    subcommand: &[],
    flags: &[
        needed("--print", "running without a terminal"),
        needed("--output-format", "structured output"),
        needed("--verbose", "structured output as it comes"),
        needed("--permission-mode", "permissions"),
        needed("--dangerously-skip-permissions", "running in our sandbox, or with `--trust`"),
        needed("--allowedTools", "committing, testing and reporting without our sandbox"),
        needed("--add-dir", "reporting without our sandbox"),
        optional("--model", "choosing the model"),
        optional("--append-system-prompt", "a system prompt of its own"),
        optional("--setting-sources", "independence of the machine's settings"),
        optional("--disable-slash-commands", "prompts that are taken literally"),
        optional("--max-budget-usd", "the cost limit"),
        // Not in the help since 2.1, and still obeyed.
        Requirement { flag: "--max-turns", feature: "the turn limit", need: Need::Optional, hidden: true },
        optional("--resume", "going on with a session"),
    ],
    command,
    parser: |here| Box::new(JsonLines::new(wire::ClaudeFormat::new(here.clone()), here)),
    sessions: Sessions { can_resume: true, reports_whole_session: true },
    variables: &[
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "ANTHROPIC_BASE_URL",
        "CLAUDE_CODE_OAUTH_TOKEN",
        "CLAUDE_CONFIG_DIR",
    ],
    places,
    vendor: Some(VendorApi::Anthropic),
    stage,
    keys: &[
        ("ANTHROPIC_API_KEY", "ANTHROPIC_API_KEY"),
        ("ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_AUTH_TOKEN"),
        ("CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"),
    ],
    requests: Some(ModelClient {
        working_directory: &[("orking directory: ", '\n')],
        // Its compaction offers tools that it forbids to use.
        side_requests: &["CRITICAL: Respond with TEXT ONLY"],
        subagent_header: Some("x-claude-code-agent-id"),
        // `{"user_id": …}`: a device, an account and a session.
        varying_fields: &[("metadata", "⟦metadata⟧")],
        rewrites: &[
            // Three digits that depend on the prompt.
            Rewrite {
                find: r"cc_version=\d+\.\d+\.\d+\.[0-9a-f]{3}",
                bounds: Bounds::Word,
                keep: Keep::UpToLast("."),
                put: "⟦hex⟧",
            },
            Rewrite {
                find: r"OS Version: [^\n\\]+",
                bounds: Bounds::Any,
                keep: Keep::UpToFirst(": "),
                put: "⟦os⟧",
            },
        ],
        ..ModelClient::new("claude", &["claude-cli", "claude-code"])
    }),
    confines_itself: false,
    try_own_sandbox: None,
    mock: MockCli {
        version: "2.1.325 (Claude Code)",
        usage: "claude [options] [command] [prompt]",
        options: &[
            "--add-dir <directories...>",
            "--allowedTools, --allowed-tools <tools...>",
            "--append-system-prompt <prompt>",
            "-c, --continue",
            "--dangerously-skip-permissions",
            "--disable-slash-commands",
            "--disallowedTools, --disallowed-tools <tools...>",
            "--fallback-model <model>",
            "--fork-session",
            "-h, --help",
            "--include-partial-messages",
            "--input-format <format>",
            "--json-schema <schema>",
            "--max-budget-usd <amount>",
            "--mcp-config <configs...>",
            "--model <model>",
            "--no-session-persistence",
            "--output-format <format>",
            "--permission-mode <mode>",
            "-p, --print",
            "-r, --resume [value]",
            "--session-id <uuid>",
            "--setting-sources <sources>",
            "--settings <file-or-json>",
            "--strict-mcp-config",
            "--system-prompt <prompt>",
            "--tools <tools...>",
            "--verbose",
            "-v, --version",
        ],
        wire: |scene| Box::new(mock::Claude::new(scene)),
    },
};

fn command(mut offer: Offer<'_>, request: &RunRequest) -> CommandLine {
    offer.flag("--print", &[]);
    offer.flag("--output-format", &["stream-json"]);
    offer.flag("--verbose", &[]);
    permissions(&mut offer, request);
    offer.flag("--setting-sources", &[""]);
    offer.flag("--disable-slash-commands", &[]);
    offer.option("--model", request.model.as_deref());
    offer.option("--append-system-prompt", request.system_prompt.as_deref());
    offer.option("--max-budget-usd", request.budget.usd.map(|usd| usd.to_string()).as_deref());
    offer.option("--max-turns", request.budget.turns.map(|turns| turns.to_string()).as_deref());
    offer.option("--resume", request.resume.as_deref());
    // The first alone keeps it from all side requests; the others are for older versions.
    for name in [
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
        "DISABLE_AUTOUPDATER",
        "DISABLE_TELEMETRY",
        "DISABLE_ERROR_REPORTING",
    ] {
        offer.env(name, "1");
    }
    offer.finish(request)
}

fn permissions(offer: &mut Offer<'_>, request: &RunRequest) {
    match request.permission {
        Permission::Plan => offer.flag("--permission-mode", &["plan"]),
        Permission::AcceptEdits => {
            offer.flag("--permission-mode", &["acceptEdits"]);
            if !request.allow.is_empty() {
                let rules: Vec<String> =
                    request.allow.iter().map(|start| format!("Bash({start}:*)")).collect();
                offer.flag("--allowedTools", &[&rules.join(",")]);
            }
            offer.flag("--add-dir", &[request.run_dir.as_str()]);
        }
        Permission::Trust => {
            offer.flag("--dangerously-skip-permissions", &[]);
            if offer.is_root {
                // It refuses to skip permissions for root outside of what it believes to be a sandbox.
                offer.env("IS_SANDBOX", "1");
            }
        }
    }
}

fn places(env: &Variables) -> OwnPlaces {
    let home = OwnPlaces::directory(env, "CLAUDE_CONFIG_DIR", ".claude");
    let settings = ["settings.json", "settings.local.json", "plugins", "hooks", "agents", "commands"];
    let mut obeyed: Vec<_> = settings.iter().map(|name| home.join(name)).collect();
    obeyed.push(".claude.json".into());
    OwnPlaces { kept: vec![home], known: vec![".claude.json".into()], obeyed, ..OwnPlaces::default() }
}

fn stage(endpoint: &Endpoint<'_>) -> StageSetup {
    let mut variables = vec![
        ("ANTHROPIC_BASE_URL", endpoint.url),
        ("ANTHROPIC_API_KEY", KEY),
        // Without it there are requests in the background, also to the vendor's own address.
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
    ];
    if endpoint.retries == Retries::None {
        variables.push(("CLAUDE_CODE_MAX_RETRIES", "0"));
    }
    StageSetup::with_variables(variables)
}

//! Codex.

use rehearsal_core::{Bounds, Feature, Keep, ModelClient, Rewrite};

use super::stage::KEY;
use super::{AgentCli, Endpoint, Retries, Sessions, StageModel, StageSetup, VendorApi};
use crate::driver::check::{needed, optional};
use crate::driver::{CommandLine, JsonLines, Offer};
use crate::environment::Variables;
use crate::mock::wire::MockCli;
use crate::{OwnPlaces, Permission, RunRequest};

mod mock;
mod wire;

pub(super) static CLI: AgentCli = AgentCli {
    name: "codex",
    install: Some("npm install -g @openai/codex"),
    native_binaries: &[
        "@openai/codex-linux-{node}/vendor/{rust}-unknown-linux-musl/bin/codex",
        "@openai/codex-linux-{node}/vendor/{rust}-unknown-linux-musl/codex/codex",
    ],
    subcommand: &["exec"],
    flags: &[
        needed("--json", "structured output"),
        needed("--sandbox", "permissions"),
        needed("--config", "permissions of resumed sessions, no telemetry, no updates"),
        needed("--dangerously-bypass-approvals-and-sandbox", "running in our sandbox, or with `--trust`"),
        optional("--model", "choosing the model"),
        optional("--disable", "turning plugins off"),
        optional("resume", "going on with a session"),
    ],
    command,
    parser: |here| Box::new(JsonLines::new(wire::CodexFormat::new(here.clone()), here)),
    sessions: Sessions { can_resume: true, reports_whole_session: true },
    variables: &["OPENAI_API_KEY", "OPENAI_BASE_URL", "CODEX_API_KEY", "CODEX_HOME"],
    places,
    vendor: Some(VendorApi::OpenAi),
    stage,
    keys: &[("OPENAI_API_KEY", STAGE_KEY), ("CODEX_API_KEY", STAGE_KEY)],
    requests: Some(ModelClient {
        working_directory: &[("<cwd>", '<')],
        // Ids of everything, the time, and facts of the git repository that appear or not.
        varying_fields: &[("client_metadata", "⟦client⟧")],
        rewrites: &[
            Rewrite {
                find: r"Chunk ID: [0-9a-f]{6}",
                bounds: Bounds::Word,
                keep: Keep::UpToFirst(": "),
                put: "⟦chunk⟧",
            },
            // It counts the letters of paths, too.
            Rewrite {
                find: r"Original token count: \d+",
                bounds: Bounds::Word,
                keep: Keep::UpToFirst(": "),
                put: "⟦count⟧",
            },
            Rewrite {
                find: "<timezone>[^<]{1,64}",
                bounds: Bounds::Any,
                keep: Keep::UpToFirst(">"),
                put: "⟦timezone⟧",
            },
        ],
        ..ModelClient::new("codex", &["codex"])
    }),
    confines_itself: false,
    try_own_sandbox: Some(&["sandbox", "sh", "-c", ":"]),
    mock: MockCli {
        version: "codex-cli 0.166.0",
        usage: "codex exec [OPTIONS] [PROMPT] [COMMAND]",
        options: &[
            "-c, --config <key=value>",
            "--enable <FEATURE>",
            "--disable <FEATURE>",
            "-m, --model <MODEL>",
            "-s, --sandbox <SANDBOX_MODE>",
            "--dangerously-bypass-approvals-and-sandbox",
            "-C, --cd <DIR>",
            "--add-dir <DIR>",
            "--skip-git-repo-check",
            "--ephemeral",
            "--output-schema <FILE>",
            "--json",
            "-o, --output-last-message <FILE>",
            "-h, --help",
            "-V, --version",
        ],
        wire: |scene| Box::new(mock::Codex::new(&scene)),
    },
};

/// The variable that has the key on a stage.
const STAGE_KEY: &str = "REHEARSAL_STAGE_KEY";

fn command(mut offer: Offer<'_>, request: &RunRequest) -> CommandLine {
    offer.args(&["exec"]);
    let resumed = request.resume.as_deref().filter(|_| offer.has("resume"));
    if let Some(thread) = resumed {
        offer.args(&["resume", thread]);
    }
    offer.flag("--json", &[]);
    permissions(&mut offer, request, resumed.is_some());
    // Without the second it waits for a lost network for ever; waiting is our business.
    for feature in ["plugins", "unbounded_connection_retries"] {
        offer.flag("--disable", &[feature]);
    }
    for setting in ["analytics.enabled=false", "check_for_update_on_startup=false"] {
        offer.flag("--config", &[setting]);
    }
    offer.option("--model", request.model.as_deref());
    offer.lost(request.budget.usd.is_some(), Feature::CostLimit);
    offer.lost(request.budget.turns.is_some(), Feature::TurnLimit);
    offer.lost(request.budget.tokens.is_some(), Feature::TokensMeanwhile);
    offer.args(&["-"]);
    offer.finish_with_system_prompt_in_prompt(request)
}

/// `exec` never asks; the sandbox is all there is to set. `resume` has no `--sandbox`, but takes every setting.
fn permissions(offer: &mut Offer<'_>, request: &RunRequest, resumed: bool) {
    let mode = match request.permission {
        Permission::Trust => return offer.flag("--dangerously-bypass-approvals-and-sandbox", &[]),
        Permission::Plan => "read-only",
        Permission::AcceptEdits => {
            let directory = toml_text(request.run_dir.as_str());
            offer.flag("--config", &[&format!("sandbox_workspace_write.writable_roots=[{directory}]")]);
            "workspace-write"
        }
    };
    if resumed {
        offer.flag("--config", &[&format!("sandbox_mode=\"{mode}\"")]);
    } else {
        offer.flag("--sandbox", &[mode]);
    }
}

/// A text as the value of a setting. TOML reads the escapes of JSON.
fn toml_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn places(env: &Variables) -> OwnPlaces {
    let home = OwnPlaces::directory(env, "CODEX_HOME", ".codex");
    let obeyed = vec![home.join("config.toml"), home.join("prompts")];
    OwnPlaces { obeyed, kept: vec![home], ..OwnPlaces::default() }
}

/// It takes no address from the environment.
fn stage(endpoint: &Endpoint<'_>) -> StageSetup {
    let url = endpoint.url;
    let retries = match endpoint.retries {
        Retries::Default => "",
        Retries::None => ",request_max_retries=0,stream_max_retries=0",
    };
    let provider = format!(
        "model_providers.rehearsal={{name=\"rehearsal\",base_url=\"{url}/v1\",env_key=\"{STAGE_KEY}\",wire_api=\"responses\"{retries}}}"
    );
    let mut options =
        vec!["analytics.enabled=false", "check_for_update_on_startup=false", "model_provider=\"rehearsal\""];
    if endpoint.model == StageModel::Any {
        options.push("model=\"rehearsal\"");
    }
    options.push(&provider);
    let mut arguments: Vec<String> =
        ["--disable", "plugins", "--disable", "unbounded_connection_retries"].map(str::to_owned).into();
    arguments.extend(options.iter().flat_map(|option| ["-c".to_owned(), (*option).to_owned()]));
    StageSetup { arguments, ..StageSetup::with_variables([(STAGE_KEY, KEY)]) }
}

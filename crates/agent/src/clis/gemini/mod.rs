//! Gemini CLI.

use camino::Utf8PathBuf;
use rehearsal_core::{Bounds, Feature, Keep, ModelClient, Rewrite};

use super::stage::KEY;
use super::{AgentCli, Endpoint, Retries, StageSetup, VendorApi};
use crate::driver::check::{needed, optional};
use crate::driver::{CommandLine, JsonLines, Offer};
use crate::environment::Variables;
use crate::mock::wire::MockCli;
use crate::{OwnPlaces, Permission, RunRequest};

mod document;
mod failure;
mod mock;
mod wire;

pub(super) static CLI: AgentCli = AgentCli {
    name: "gemini",
    install: Some("npm install -g @google/gemini-cli"),
    flags: &[
        needed("--output-format", "structured output"),
        needed("--approval-mode", "permissions"),
        optional("--allowed-tools", "committing, testing and reporting without our sandbox"),
        optional("--include-directories", "reporting without our sandbox"),
        optional("--model", "choosing the model"),
        optional("--resume", "going on with a session"),
    ],
    command,
    parser: |here| Box::new(JsonLines::new(wire::GeminiFormat::new(here.clone()), here)),
    variables: &[
        "GEMINI_API_KEY",
        "GOOGLE_API_KEY",
        "GOOGLE_GEMINI_BASE_URL",
        "GOOGLE_CLOUD_PROJECT",
        "GOOGLE_CLOUD_LOCATION",
        "GOOGLE_GENAI_USE_VERTEXAI",
        "GOOGLE_APPLICATION_CREDENTIALS",
    ],
    places,
    vendor: Some(VendorApi::Gemini),
    stage,
    keys: &[("GEMINI_API_KEY", "GEMINI_API_KEY")],
    requests: Some(ModelClient {
        working_directory: &[
            ("working in the directory: ", '\n'),
            ("**Workspace Directories:**\n  - ", '\n'),
        ],
        rewrites: &[
            Rewrite {
                find: r"Process Group PGID: \d+",
                bounds: Bounds::Word,
                keep: Keep::UpToFirst(": "),
                put: "⟦pgid⟧",
            },
            Rewrite {
                find: r"\.gemini/tmp/[A-Za-z0-9_-]+",
                bounds: Bounds::Any,
                keep: Keep::UpToLast("/"),
                put: "⟦project⟧",
            },
        ],
        ..ModelClient::new("gemini", &["geminicli"])
    }),
    mock: MockCli {
        version: "0.61.0",
        usage: "gemini [options] [command]",
        options: &[
            "-m, --model",
            "-p, --prompt",
            "-s, --sandbox",
            "-y, --yolo",
            "--approval-mode",
            "--allowed-tools",
            "--skip-trust",
            "-r, --resume",
            "--include-directories",
            "-o, --output-format",
            "-v, --version",
            "-h, --help",
        ],
        wire: |scene| Box::new(mock::Gemini::new(scene)),
    },
    ..AgentCli::PLAIN
};

fn command(mut offer: Offer<'_>, request: &RunRequest) -> CommandLine {
    offer.flag("--output-format", &["stream-json"]);
    let mode = match request.permission {
        Permission::Plan => "plan",
        Permission::AcceptEdits => "auto_edit",
        Permission::Trust => "yolo",
    };
    offer.flag("--approval-mode", &[mode]);
    if request.permission == Permission::AcceptEdits {
        let rules: Vec<String> =
            request.allow.iter().map(|start| format!("run_shell_command({start})")).collect();
        if !rules.is_empty() {
            offer.flag("--allowed-tools", &[&rules.join(",")]);
        }
        offer.flag("--include-directories", &[request.run_dir.as_str()]);
    }
    offer.option("--model", request.model.as_deref());
    offer.option("--resume", request.resume.as_deref());
    offer.lost(request.budget.usd.is_some(), Feature::CostLimit);
    offer.lost(request.budget.turns.is_some(), Feature::TurnLimit);
    offer.lost(request.budget.tokens.is_some(), Feature::TokensMeanwhile);
    // Otherwise it starts itself again, and the first process ignores signals.
    offer.env("GEMINI_CLI_NO_RELAUNCH", "1");
    offer.env("GEMINI_CLI_TRUST_WORKSPACE", "true");
    offer.finish_with_system_prompt_in_prompt(request)
}

fn places(_: &Variables) -> OwnPlaces {
    let home = Utf8PathBuf::from(".gemini");
    let obeyed = ["settings.json", "extensions", "commands"].iter().map(|name| home.join(name)).collect();
    OwnPlaces { obeyed, kept: vec![home], ..OwnPlaces::default() }
}

/// With another address it refuses to guess how to log in, so a file has to say it.
const SETTINGS: &str = r#"{"security":{"auth":{"selectedType":"gemini-api-key"}},"privacy":{"usageStatisticsEnabled":false},"general":{"enableAutoUpdate":false},"telemetry":{"enabled":false}}"#;

/// What makes it fail at once: by default it asks ten times.
const NO_RETRIES: &str = r#""enableAutoUpdate":false,"maxAttempts":1,"retryFetchErrors":false"#;

fn stage(endpoint: &Endpoint<'_>) -> StageSetup {
    let setup = StageSetup::with_variables([
        ("GOOGLE_GEMINI_BASE_URL", endpoint.url),
        ("GEMINI_API_KEY", KEY),
        ("GEMINI_CLI_TRUST_WORKSPACE", "true"),
        ("GEMINI_CLI_NO_RELAUNCH", "1"),
    ]);
    let settings = match endpoint.retries {
        Retries::Default => SETTINGS.to_owned(),
        Retries::None => SETTINGS.replace(r#""enableAutoUpdate":false"#, NO_RETRIES),
    };
    StageSetup { files: vec![(".gemini/settings.json", settings)], ..setup }
}

//! opencode.

use camino::Utf8PathBuf;
use rehearsal_core::{Feature, ModelClient};
use serde_json::{Value, json};

use super::stage::KEY;
use super::{AgentCli, Endpoint, Sessions, StageModel, StageSetup, VendorApi};
use crate::driver::check::{needed, optional};
use crate::driver::{CommandLine, JsonLines, Offer};
use crate::environment::Variables;
use crate::mock::wire::MockCli;
use crate::{OwnPlaces, Permission, RunRequest};

mod mock;
mod wire;

pub(super) static CLI: AgentCli = AgentCli {
    name: "opencode",
    install: Some("npm install -g opencode-ai"),
    native_binaries: &[
        "opencode-linux-{node}/bin/opencode",
        "opencode-linux-{node}-baseline/bin/opencode",
        "opencode-linux-{node}-musl/bin/opencode",
        "opencode-linux-{node}-baseline-musl/bin/opencode",
    ],
    subcommand: &["run"],
    flags: &[
        needed("--format", "structured output"),
        needed("--agent", "looking without changing"),
        optional("--auto", "running with `--trust`"),
        optional("--model", "choosing the model"),
        optional("--session", "going on with a session"),
        optional("--title", "no extra request for a title"),
        optional("--print-logs", "failed requests as they happen"),
        optional("--log-level", "no other logs"),
    ],
    command,
    parser: |here| Box::new(JsonLines::new(wire::OpencodeFormat::new(here.clone()), here)),
    sessions: Sessions { can_resume: true, reports_whole_session: false },
    // It asks any vendor.
    variables: &[
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "ANTHROPIC_BASE_URL",
        "CLAUDE_CODE_OAUTH_TOKEN",
        "CLAUDE_CONFIG_DIR",
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        "CODEX_API_KEY",
        "CODEX_HOME",
        "GEMINI_API_KEY",
        "GOOGLE_API_KEY",
        "GOOGLE_GEMINI_BASE_URL",
        "GOOGLE_CLOUD_PROJECT",
        "GOOGLE_CLOUD_LOCATION",
        "GOOGLE_GENAI_USE_VERTEXAI",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "OPENCODE_CONFIG",
        "OPENCODE_CONFIG_DIR",
    ],
    places,
    vendor: Some(VendorApi::OpenAi),
    stage,
    // Its key on a stage is in its settings.
    keys: &[],
    requests: Some(ModelClient::new("opencode", &["opencode"])),
    confines_itself: false,
    try_own_sandbox: None,
    mock: MockCli {
        version: "1.18.33",
        usage: "opencode run [message..]",
        options: &[
            "-h, --help",
            "-v, --version",
            "--print-logs",
            "--log-level",
            "--pure",
            "-c, --continue",
            "-s, --session",
            "--fork",
            "-m, --model",
            "--agent",
            "--format",
            "-f, --file",
            "--title",
            "--dir",
            "--variant",
        ],
        wire: |scene| Box::new(mock::Opencode::new(scene)),
    },
};

fn command(mut offer: Offer<'_>, request: &RunRequest) -> CommandLine {
    offer.args(&["run"]);
    offer.flag("--format", &["json"]);
    match request.permission {
        Permission::Plan => offer.flag("--agent", &["plan"]),
        // Its own rules allow edits unless its configuration says otherwise.
        Permission::AcceptEdits => {}
        Permission::Trust => offer.flag("--auto", &[]),
    }
    offer.option("--model", request.model.as_deref());
    offer.option("--session", request.resume.as_deref());
    // With a title it asks no second model for one.
    offer.flag("--title", &[&format!("rehearsal {}", request.run)]);
    // Without its log nobody sees that it tries a request again.
    offer.flag("--print-logs", &[]);
    offer.flag("--log-level", &["ERROR"]);
    offer.lost(request.budget.turns.is_some(), Feature::TurnLimit);
    for name in ["OPENCODE_DISABLE_AUTOUPDATE", "OPENCODE_DISABLE_LSP_DOWNLOAD", "OPENCODE_DISABLE_SHARE"] {
        offer.env(name, "1");
    }
    offer.finish_with_system_prompt_in_prompt(request)
}

fn places(env: &Variables) -> OwnPlaces {
    let below = |variable, default| OwnPlaces::directory(env, variable, default).join("opencode");
    let settings: Utf8PathBuf = below("XDG_CONFIG_HOME", ".config");
    let kept = vec![below("XDG_DATA_HOME", ".local/share")];
    let ignored = "node_modules\npackage.json\npackage-lock.json\nbun.lock\n.gitignore";
    OwnPlaces {
        kept,
        known: vec![settings.clone()],
        written_at_first_start: vec![(settings.join(".gitignore"), ignored)],
        obeyed: vec![settings],
    }
}

fn stage(endpoint: &Endpoint<'_>) -> StageSetup {
    let mut listed = String::new();
    let mut known_as = None;
    if let StageModel::OfVendor(Some(named)) = endpoint.model {
        // It takes only models that its settings list, under the provider that leads to the stage.
        let model = named.strip_prefix("openai/").unwrap_or(named);
        listed = format!(",{}:{}", Value::from(model), json!({ "name": model, "tool_call": true }));
        known_as = Some(format!("rehearsal/{model}"));
    }
    let config = format!(
        r#"{{"autoupdate":false,"share":"disabled","model":"rehearsal/rehearsal","small_model":"rehearsal/small","provider":{{"rehearsal":{{"npm":"@ai-sdk/openai-compatible","name":"rehearsal","options":{{"baseURL":"{}/v1","apiKey":"{KEY}"}},"models":{{"rehearsal":{{"name":"rehearsal","tool_call":true,"limit":{{"context":200000,"output":8192}}}},"small":{{"name":"small","limit":{{"context":200000,"output":8192}}}}{listed}}}}}}},"enabled_providers":["rehearsal"],"permission":{{"*":"allow"}}}}"#,
        endpoint.url
    );
    let setup = StageSetup::with_variables([
        ("OPENCODE_CONFIG_CONTENT", config.as_str()),
        ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
        ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
        ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1"),
        ("OPENCODE_DISABLE_SHARE", "1"),
    ]);
    StageSetup { model: known_as, ..setup }
}

//! What each agent CLI has to be told, so that it asks this stage and nobody else.

use std::net::SocketAddr;

/// How a CLI is made to ask the stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setup {
    /// The CLI.
    pub name: &'static str,
    /// Variables to set.
    pub variables: Vec<(&'static str, String)>,
    /// Arguments to give, before all others.
    pub arguments: Vec<String>,
    /// Files to write below its home directory.
    pub files: Vec<(&'static str, String)>,
}

/// A key that opens nothing.
const KEY: &str = "not-a-key";

/// Every CLI that we know, in the order of their names.
pub fn setups(address: SocketAddr) -> Vec<Setup> {
    let base = format!("http://{address}");
    vec![claude(&base), codex(&base), crew(&base), gemini(&base), opencode(&base)]
}

fn claude(base: &str) -> Setup {
    Setup {
        name: "claude",
        variables: vec![
            ("ANTHROPIC_BASE_URL", base.to_owned()),
            ("ANTHROPIC_API_KEY", KEY.to_owned()),
            // Without it there are requests in the background, also to the vendor's own address.
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
        ],
        arguments: Vec::new(),
        files: Vec::new(),
    }
}

/// It takes no address from the environment.
fn codex(base: &str) -> Setup {
    let provider = format!(
        "model_providers.rehearsal={{name=\"rehearsal\",base_url=\"{base}/v1\",env_key=\"REHEARSAL_STAGE_KEY\",wire_api=\"responses\"}}"
    );
    let options = [
        "analytics.enabled=false",
        "check_for_update_on_startup=false",
        "model_provider=\"rehearsal\"",
        "model=\"rehearsal\"",
        &provider,
    ];
    let mut arguments: Vec<String> =
        ["--disable", "plugins", "--disable", "unbounded_connection_retries"].map(str::to_owned).into();
    arguments.extend(options.iter().flat_map(|option| ["-c".to_owned(), (*option).to_owned()]));
    Setup {
        name: "codex",
        variables: vec![("REHEARSAL_STAGE_KEY", KEY.to_owned())],
        arguments,
        files: Vec::new(),
    }
}

/// Our own asks any vendor; its model says which.
fn crew(base: &str) -> Setup {
    let address = |name, path: &str| (name, format!("{base}{path}"));
    Setup {
        name: "crew",
        variables: vec![
            address("ANTHROPIC_BASE_URL", ""),
            ("ANTHROPIC_API_KEY", KEY.to_owned()),
            address("OPENAI_BASE_URL", "/v1"),
            ("OPENAI_API_KEY", KEY.to_owned()),
            address("GOOGLE_GEMINI_BASE_URL", ""),
            ("GEMINI_API_KEY", KEY.to_owned()),
        ],
        arguments: Vec::new(),
        files: Vec::new(),
    }
}

/// With an address of its own it refuses to guess how it is to log in, so a file has to say it.
fn gemini(base: &str) -> Setup {
    let settings = r#"{"security":{"auth":{"selectedType":"gemini-api-key"}},"privacy":{"usageStatisticsEnabled":false},"general":{"enableAutoUpdate":false},"telemetry":{"enabled":false}}"#;
    Setup {
        name: "gemini",
        variables: vec![
            ("GOOGLE_GEMINI_BASE_URL", base.to_owned()),
            ("GEMINI_API_KEY", KEY.to_owned()),
            ("GEMINI_CLI_TRUST_WORKSPACE", "true".to_owned()),
            ("GEMINI_CLI_NO_RELAUNCH", "1".to_owned()),
        ],
        arguments: Vec::new(),
        files: vec![(".gemini/settings.json", settings.to_owned())],
    }
}

fn opencode(base: &str) -> Setup {
    let config = format!(
        r#"{{"autoupdate":false,"share":"disabled","model":"rehearsal/rehearsal","small_model":"rehearsal/small","provider":{{"rehearsal":{{"npm":"@ai-sdk/openai-compatible","name":"rehearsal","options":{{"baseURL":"{base}/v1","apiKey":"{KEY}"}},"models":{{"rehearsal":{{"name":"rehearsal","tool_call":true,"limit":{{"context":200000,"output":8192}}}},"small":{{"name":"small","limit":{{"context":200000,"output":8192}}}}}}}}}},"enabled_providers":["rehearsal"],"permission":{{"*":"allow"}}}}"#
    );
    Setup {
        name: "opencode",
        variables: vec![
            ("OPENCODE_CONFIG_CONTENT", config),
            ("OPENCODE_DISABLE_AUTOUPDATE", "1".to_owned()),
            ("OPENCODE_DISABLE_MODELS_FETCH", "1".to_owned()),
            ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1".to_owned()),
            ("OPENCODE_DISABLE_SHARE", "1".to_owned()),
        ],
        arguments: Vec::new(),
        files: Vec::new(),
    }
}

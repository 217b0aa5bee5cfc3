//! Surroundings in which an agent's CLI cannot reach any model: no key, no login, an address on loopback.

use std::collections::BTreeMap;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_agent::driver::DriverKind;
use tokio::net::{TcpListener, TcpStream};

use crate::error::CliError;

/// What a CLI is given so that it stays offline.
pub(super) struct Offline {
    pub(super) env: BTreeMap<String, String>,
    pub(super) args: Vec<String>,
    /// A model of the vendor that is played, where the agent's own may be of another.
    pub(super) model: Option<&'static str>,
    pub(super) home: Option<Utf8PathBuf>,
}

/// The discard port: nobody listens there.
const NOBODY: u16 = 9;

impl Offline {
    /// Where a connection is refused.
    pub(super) fn nowhere(kind: DriverKind, scratch: &Utf8Path) -> Result<Self, CliError> {
        Self::at(kind, NOBODY, scratch)
    }

    /// Where a port of loopback plays the model.
    pub(super) fn at(kind: DriverKind, port: u16, scratch: &Utf8Path) -> Result<Self, CliError> {
        let home = scratch.join("home");
        fs_err::create_dir_all(&home)?;
        let base = format!("http://127.0.0.1:{port}");
        let mut env = BTreeMap::new();
        let mut set = |name: &str, value: String| env.insert(name.to_owned(), value);
        let mut args = Vec::new();
        match kind {
            DriverKind::Claude => {
                set("ANTHROPIC_API_KEY", "not-a-key".into());
                set("ANTHROPIC_BASE_URL", base);
                set("CLAUDE_CODE_MAX_RETRIES", "0".into());
            }
            DriverKind::Codex => {
                set("REHEARSAL_CHECK_KEY", "not-a-key".into());
                args.extend(codex_provider(&base));
            }
            DriverKind::Gemini => {
                set("GEMINI_API_KEY", "not-a-key".into());
                set("GOOGLE_GEMINI_BASE_URL", base);
                fs_err::create_dir_all(home.join(".gemini"))?;
                fs_err::write(home.join(".gemini/settings.json"), GEMINI_SETTINGS)?;
            }
            DriverKind::Opencode => {
                set("OPENCODE_CONFIG_CONTENT", opencode_config(&base));
                set("OPENCODE_DISABLE_MODELS_FETCH", "1".into());
            }
            DriverKind::Crew => {
                set("ANTHROPIC_API_KEY", "not-a-key".into());
                set("ANTHROPIC_BASE_URL", base);
            }
            DriverKind::Command => {}
        }
        let model = (kind == DriverKind::Crew).then_some("anthropic:check");
        Ok(Self { env, args, model, home: Some(home) })
    }
}

/// With an address of its own gemini wants to be told how it authenticates.
const GEMINI_SETTINGS: &str = r#"{"security":{"auth":{"selectedType":"gemini-api-key"}},"privacy":{"usageStatisticsEnabled":false},"general":{"enableAutoUpdate":false},"telemetry":{"enabled":false}}"#;

fn codex_provider(base: &str) -> Vec<String> {
    let provider = format!(
        "model_providers.check={{name=\"check\",base_url=\"{base}/v1\",env_key=\"REHEARSAL_CHECK_KEY\",wire_api=\"responses\",request_max_retries=0,stream_max_retries=0}}"
    );
    ["-c", "model_provider=\"check\"", "-c", &provider].map(ToOwned::to_owned).to_vec()
}

fn opencode_config(base: &str) -> String {
    format!(
        r#"{{"autoupdate":false,"share":"disabled","model":"check/check","small_model":"check/check","provider":{{"check":{{"npm":"@ai-sdk/openai-compatible","name":"check","options":{{"baseURL":"{base}/v1","apiKey":"not-a-key"}},"models":{{"check":{{"name":"check"}}}}}}}},"enabled_providers":["check"]}}"#
    )
}

/// A server that accepts and never answers.
pub(super) struct SilentServer {
    listener: TcpListener,
    port: u16,
}

pub(super) async fn silent_server() -> Result<SilentServer, CliError> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let port = listener.local_addr()?.port();
    Ok(SilentServer { listener, port })
}

impl SilentServer {
    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Returns once someone has connected, or patience is at its end: the connection, to be held.
    pub(super) async fn connected(self, patience: Duration) -> Option<TcpStream> {
        let accepted = tokio::time::timeout(patience, self.listener.accept()).await;
        accepted.ok().and_then(Result::ok).map(|(stream, _)| stream)
    }
}

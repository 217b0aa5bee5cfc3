//! Connects an agent to a stage instead of its vendor.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;

use serde_json::{Value, json};

use crate::recording::Upstreams;
use crate::setup::setups;

type Variables = BTreeMap<String, String>;

/// What makes an agent send its requests to a stage.
#[derive(Debug)]
pub struct OnStage {
    /// Environment variables to set.
    pub variables: Variables,
    /// Arguments that go before all others.
    pub arguments: Vec<String>,
    /// Below its home.
    files: Vec<(&'static str, String)>,
}

impl OnStage {
    /// For an agent by name. Any other program gets the variables that the vendors' own client libraries read.
    pub fn of(agent: &str, address: SocketAddr) -> Self {
        let Some(setup) = setups(address).into_iter().find(|setup| setup.name == agent) else {
            return Self { variables: for_any_client(address), arguments: Vec::new(), files: Vec::new() };
        };
        let variables = setup.variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Self { variables, arguments: setup.arguments, files: setup.files }
    }

    /// Passes the user's API keys to the agent, for a recording from the real vendor. The cassette never contains them.
    pub fn give_keys(&mut self, agent: &str, ours: &Variables) {
        let keys: &[(&str, &str)] = match agent {
            "claude" => &[
                ("ANTHROPIC_API_KEY", "ANTHROPIC_API_KEY"),
                ("ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_AUTH_TOKEN"),
                ("CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"),
            ],
            "codex" => &[("OPENAI_API_KEY", "REHEARSAL_STAGE_KEY"), ("CODEX_API_KEY", "REHEARSAL_STAGE_KEY")],
            "gemini" => &[("GEMINI_API_KEY", "GEMINI_API_KEY")],
            _ => &[
                ("ANTHROPIC_API_KEY", "ANTHROPIC_API_KEY"),
                ("OPENAI_API_KEY", "OPENAI_API_KEY"),
                ("GEMINI_API_KEY", "GEMINI_API_KEY"),
            ],
        };
        let given: Vec<(&str, &String)> = keys
            .iter()
            .filter_map(|(from, to)| Some((*to, ours.get(*from).filter(|key| !key.is_empty())?)))
            .collect();
        if !given.is_empty() && agent == "claude" {
            // It prefers a key that opens nothing to a token that does.
            self.variables.remove("ANTHROPIC_API_KEY");
        }
        self.variables.extend(given.into_iter().map(|(name, key)| (name.to_owned(), key.clone())));
    }

    /// Requests the agent's real model (`named`, or its default), because a vendor does not know the stage's model name.
    /// Returns the name to pass to the agent.
    pub fn keep_model(&mut self, named: Option<&str>) -> Option<String> {
        if let Some(at) = self.arguments.iter().position(|argument| argument.starts_with("model=")) {
            // The flag before it, and it.
            self.arguments.drain(at.saturating_sub(1)..=at);
        }
        let named = named?;
        let Some(config) = self.variables.get_mut("OPENCODE_CONFIG_CONTENT") else {
            return Some(named.to_owned());
        };
        // It takes only models that its settings list, under the provider that leads to the stage.
        let model = named.strip_prefix("openai/").unwrap_or(named);
        let mut settings: Value = serde_json::from_str(config).ok()?;
        let listed = settings.pointer_mut("/provider/rehearsal/models")?.as_object_mut()?;
        listed.insert(model.to_owned(), json!({ "name": model, "tool_call": true }));
        *config = settings.to_string();
        Some(format!("rehearsal/{model}"))
    }

    /// Writes the agent's settings files into its home directory.
    pub fn write_files(&self, home: &Path) -> std::io::Result<()> {
        for (path, content) in &self.files {
            let path = home.join(path);
            if let Some(parent) = path.parent() {
                fs_err::create_dir_all(parent)?;
            }
            fs_err::write(path, content)?;
        }
        Ok(())
    }
}

/// The variables that the vendors' own client libraries read.
fn for_any_client(address: SocketAddr) -> Variables {
    let base = format!("http://{address}");
    let openai = format!("{base}/v1");
    let pairs = [
        ("ANTHROPIC_BASE_URL", base.as_str()),
        ("ANTHROPIC_API_KEY", "not-a-key"),
        ("OPENAI_BASE_URL", openai.as_str()),
        ("OPENAI_API_KEY", "not-a-key"),
        ("GOOGLE_GEMINI_BASE_URL", base.as_str()),
        ("GEMINI_API_KEY", "not-a-key"),
    ];
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// The endpoints an agent would use by itself: those in its environment, or its vendor's defaults.
pub fn upstreams_of(agent: &str, variables: &Variables) -> Upstreams {
    let set = |name: &str| variables.get(name).map(String::as_str).filter(|value| !value.is_empty());
    let anthropic = set("ANTHROPIC_BASE_URL").unwrap_or("https://api.anthropic.com");
    let openai = set("OPENAI_BASE_URL").unwrap_or("https://api.openai.com/v1");
    let gemini = set("GOOGLE_GEMINI_BASE_URL").unwrap_or("https://generativelanguage.googleapis.com");
    match agent {
        "claude" => Upstreams::one(anthropic),
        "codex" | "opencode" => Upstreams::each(openai, openai, openai),
        "gemini" => Upstreams::one(gemini),
        _ => Upstreams::each(anthropic, openai, gemini),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address() -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], 4711))
    }

    #[test]
    fn an_agent_asks_where_it_is_told_to_and_its_vendor_otherwise() {
        let own = [
            ("ANTHROPIC_BASE_URL".to_owned(), "http://127.0.0.1:1/".to_owned()),
            ("OPENAI_BASE_URL".to_owned(), "http://127.0.0.1:2/v1".to_owned()),
            ("GOOGLE_GEMINI_BASE_URL".to_owned(), String::new()),
        ];
        let own: Variables = own.into_iter().collect();
        assert_eq!(upstreams_of("claude", &own), Upstreams::one("http://127.0.0.1:1"));
        let openai = "http://127.0.0.1:2/v1";
        assert_eq!(upstreams_of("codex", &own), Upstreams::each(openai, openai, openai));
        let vendor = "https://generativelanguage.googleapis.com";
        assert_eq!(upstreams_of("gemini", &own), Upstreams::one(vendor));
        assert_eq!(upstreams_of("crew", &own), Upstreams::each("http://127.0.0.1:1", openai, vendor));
        assert_eq!(upstreams_of("claude", &Variables::new()), Upstreams::one("https://api.anthropic.com"));
    }

    #[test]
    fn a_vendor_is_asked_for_a_model_that_it_knows() {
        let mut codex = OnStage::of("codex", address());
        let before = codex.arguments.len();
        assert_eq!(codex.keep_model(None), None);
        assert_eq!(codex.arguments.len(), before - 2);
        assert!(!codex.arguments.iter().any(|argument| argument.starts_with("model=")));
        assert!(codex.arguments.iter().any(|argument| argument.starts_with("model_provider=")));
        assert_eq!(codex.keep_model(Some("gpt-x")).as_deref(), Some("gpt-x"));
        let mut opencode = OnStage::of("opencode", address());
        assert_eq!(opencode.keep_model(Some("openai/gpt-x")).as_deref(), Some("rehearsal/gpt-x"));
        assert!(opencode.variables["OPENCODE_CONFIG_CONTENT"].contains(r#""gpt-x":{"name":"gpt-x""#));
    }

    #[test]
    fn only_keys_that_the_user_has_are_given() {
        let ours: Variables = [("ANTHROPIC_AUTH_TOKEN".to_owned(), "a-token".to_owned())].into();
        let mut claude = OnStage::of("claude", address());
        claude.give_keys("claude", &ours);
        assert_eq!(claude.variables.get("ANTHROPIC_AUTH_TOKEN").map(String::as_str), Some("a-token"));
        assert!(!claude.variables.contains_key("ANTHROPIC_API_KEY"));
        let mut crew = OnStage::of("crew", address());
        crew.give_keys("crew", &ours);
        assert_eq!(crew.variables["ANTHROPIC_API_KEY"], "not-a-key");
    }
}

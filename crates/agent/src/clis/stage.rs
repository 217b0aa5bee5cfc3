//! How a CLI is made to ask a stage instead of its vendor.

use camino::Utf8Path;

use super::AgentCli;
use crate::environment::Variables;

/// The stage that a CLI is to ask.
#[derive(Debug, Clone, Copy)]
pub struct Endpoint<'a> {
    /// `http://127.0.0.1:PORT`.
    pub url: &'a str,
    /// The model to ask for.
    pub model: StageModel<'a>,
    /// What the CLI does when the stage does not answer.
    pub retries: Retries,
}

/// The model that a CLI asks a stage for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StageModel<'a> {
    /// Any: a script answers them all.
    Any,
    /// One that the vendor behind the stage knows: this one, or the CLI's own choice.
    OfVendor(Option<&'a str>),
}

/// What a CLI does when its model does not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retries {
    /// It tries again, as it does by default.
    Default,
    /// It fails at once, if it can be told to.
    None,
}

/// What a CLI is given, so that it asks a stage and nobody else.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StageSetup {
    /// Variables to set; the last of a name counts.
    pub variables: Vec<(&'static str, String)>,
    /// Arguments to give, before all others.
    pub arguments: Vec<String>,
    /// Files to write below its home directory.
    pub files: Vec<(&'static str, String)>,
    /// The model to name to it, if not the one of the user.
    pub model: Option<String>,
}

/// A vendor whose interface a CLI speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VendorApi {
    /// Messages.
    Anthropic,
    /// Chat Completions and Responses.
    OpenAi,
    /// Gemini.
    Gemini,
}

/// A key that opens nothing.
pub(super) const KEY: &str = "not-a-key";

impl VendorApi {
    /// Its own address, and the variable with which users name another.
    const fn addresses(self) -> (&'static str, &'static str) {
        match self {
            Self::Anthropic => ("https://api.anthropic.com", "ANTHROPIC_BASE_URL"),
            Self::OpenAi => ("https://api.openai.com/v1", "OPENAI_BASE_URL"),
            Self::Gemini => ("https://generativelanguage.googleapis.com", "GOOGLE_GEMINI_BASE_URL"),
        }
    }

    /// Its own address.
    pub const fn own_address(self) -> &'static str {
        self.addresses().0
    }

    /// Where it is asked in this environment.
    pub fn address(self, variables: &Variables) -> &str {
        let (own, variable) = self.addresses();
        variables.get(variable).map(String::as_str).filter(|value| !value.is_empty()).unwrap_or(own)
    }
}

impl AgentCli {
    /// What it is given to ask this stage, with a key that opens nothing.
    pub fn on_stage(&self, endpoint: Endpoint<'_>) -> StageSetup {
        let mut setup = (self.stage)(&endpoint);
        if let StageModel::OfVendor(named) = endpoint.model {
            setup.model = setup.model.or_else(|| named.map(str::to_owned));
        }
        setup
    }

    /// The same for a recording: a vendor wants to be paid, so the CLI gets the user's keys. The cassette does not.
    pub fn give_keys(&self, setup: &mut StageSetup, ours: &Variables) {
        let given: Vec<(&'static str, String)> = self
            .keys
            .iter()
            .filter_map(|(from, to)| Some((*to, ours.get(*from).filter(|key| !key.is_empty())?.clone())))
            .collect();
        // A CLI with several kinds of keys prefers one that opens nothing to another that does.
        if self.vendor.is_some() && !given.is_empty() {
            setup.variables.retain(|(name, _)| !self.keys.iter().any(|(_, to)| to == name));
        }
        setup.variables.extend(given);
    }
}

impl StageSetup {
    /// With these variables.
    pub fn with_variables<'a>(variables: impl IntoIterator<Item = (&'static str, &'a str)>) -> Self {
        let owned = |(name, value): (&'static str, &str)| (name, value.to_owned());
        Self { variables: variables.into_iter().map(owned).collect(), ..Self::default() }
    }

    /// Its variables.
    pub fn environment(&self) -> Variables {
        self.variables.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
    }

    /// For a client of the vendors' own libraries, which ask any of them.
    pub(super) fn for_any_vendor(endpoint: &Endpoint<'_>) -> Self {
        let url = endpoint.url;
        Self::with_variables([
            ("ANTHROPIC_BASE_URL", url),
            ("ANTHROPIC_API_KEY", KEY),
            ("OPENAI_BASE_URL", &format!("{url}/v1")),
            ("OPENAI_API_KEY", KEY),
            ("GOOGLE_GEMINI_BASE_URL", url),
            ("GEMINI_API_KEY", KEY),
        ])
    }

    /// Writes its files.
    pub fn write_files(&self, home: &Utf8Path) -> std::io::Result<()> {
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

/// The keys of a client that asks any vendor.
pub(super) const KEYS_OF_ALL: &[(&str, &str)] = &[
    ("ANTHROPIC_API_KEY", "ANTHROPIC_API_KEY"),
    ("OPENAI_API_KEY", "OPENAI_API_KEY"),
    ("GEMINI_API_KEY", "GEMINI_API_KEY"),
];

#[cfg(test)]
mod tests {
    use super::super::KNOWN;
    use super::*;

    fn on_stage(cli: &str, model: StageModel<'_>) -> StageSetup {
        let endpoint = Endpoint { url: "http://127.0.0.1:4711", model, retries: Retries::Default };
        KNOWN.of_program(cli).on_stage(endpoint)
    }

    #[test]
    fn a_vendor_is_asked_for_a_model_that_it_knows() {
        let is_named =
            |setup: &StageSetup| setup.arguments.iter().any(|argument| argument.starts_with("model="));
        assert!(is_named(&on_stage("codex", StageModel::Any)));
        let codex = on_stage("codex", StageModel::OfVendor(None));
        assert!(!is_named(&codex) && codex.model.is_none());
        assert!(codex.arguments.iter().any(|argument| argument.starts_with("model_provider=")));
        let codex = on_stage("codex", StageModel::OfVendor(Some("gpt-x")));
        assert_eq!(codex.model.as_deref(), Some("gpt-x"));
        let opencode = on_stage("opencode", StageModel::OfVendor(Some("openai/gpt-x")));
        assert_eq!(opencode.model.as_deref(), Some("rehearsal/gpt-x"));
        assert!(opencode.environment()["OPENCODE_CONFIG_CONTENT"].contains(r#""gpt-x":{"name":"gpt-x""#));
    }

    #[test]
    fn only_keys_that_the_user_has_are_given() {
        let ours: Variables = [("ANTHROPIC_AUTH_TOKEN".to_owned(), "a-token".to_owned())].into();
        let with_keys = |name: &str| {
            let mut setup = on_stage(name, StageModel::Any);
            KNOWN.of_program(name).give_keys(&mut setup, &ours);
            setup.environment()
        };
        let claude = with_keys("claude");
        assert_eq!(claude.get("ANTHROPIC_AUTH_TOKEN").map(String::as_str), Some("a-token"));
        assert!(!claude.contains_key("ANTHROPIC_API_KEY"));
        assert_eq!(with_keys("crew")["ANTHROPIC_API_KEY"], KEY);
    }
}

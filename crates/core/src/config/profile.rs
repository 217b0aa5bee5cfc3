//! The settings of an agent.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::definition::settings;
use super::{DriverKind, HumanDuration, Origins, SandboxSettings};
use crate::{AgentName, Budget};

settings! {
    /// An agent: a role, and how it is run.
    Profile {
        /// What kind of agent it is.
        driver: DriverKind = DriverKind::CLAUDE;
        /// With `driver: crew`: its role, one of the eight that are built in (`rehearsal crew list`) or one of your own in
        /// `.rehearsal/agents`. Without it: the agent's own name; `implementer` is `code`, `reviewer` and `gatekeeper` are `review`.
        role: Option<String> = None;
        /// The program, if it is not on the PATH under its usual name. For `command`: the program to run.
        program: Option<String> = None;
        /// Arguments put before those that the driver adds.
        args: Vec<String> = Vec::new();
        /// The model.
        model: Option<String> = None;
        /// What it may do without being asked.
        permission: PermissionMode = PermissionMode::AcceptEdits;
        /// Text appended to its system prompt.
        system_prompt: Option<String> = None;
        /// The longest a run may take.
        // A task that takes an agent more than an hour is too big for one run.
        timeout: HumanDuration = HumanDuration::from_secs(3600);
        /// The longest it may be silent.
        // Agents are silent while a long test suite runs inside a tool call.
        idle_timeout: HumanDuration = HumanDuration::from_secs(15 * 60);
        /// Maximum identical tool calls (same tool, same input) in a row before the run ends; 0 means no limit.
        // An agent that waits asks the same a few times. After 25 the next answer tells it nothing new.
        repeated_calls: u32 = 25;
        /// Maximum tool calls before the run ends; 0 means no limit.
        // An hour of hard work has a few hundred.
        tool_calls: u32 = 2000;
        /// What one run may use.
        budget: Budget = Budget::default();
        /// Variables of your environment that it may see: names, or `PREFIX_*`.
        pass_env: Vec<String> = Vec::new();
        /// Variables set for it. Not for secrets: this file is committed.
        env: BTreeMap<String, String> = BTreeMap::new();
        /// Whether it works at all.
        enabled: bool = true;
        /// Agents that take its runs while it cannot work: its quota is used up, its vendor limits it or is down, or its login or its
        /// program is missing. The first one that can work does.
        fallback: Vec<AgentName> = Vec::new();
        /// Several logins or keys of its vendor. It works with the first; the others take over like fallbacks, before those.
        accounts: Vec<Account> = Vec::new();
        /// At most so many of its runs at once.
        at_once: Option<u32> = None;
        /// The least time between the starts of two of its runs.
        interval: HumanDuration = HumanDuration::from_secs(0);
        /// How it is confined: `auto`, `required`, `best_effort` or `off`. Confined, it can write its working tree, its repository (not
        /// its hooks and configuration) and its own login and sessions, and see toolchains of your home; it reaches the network unless
        /// you say `allow_network: false`, and has no limits but those that you set. In a full sandbox its CLI asks for nothing.
        sandbox: SandboxSettings = SandboxSettings::of_agent();
        /// Variables that it sees under another name: its name for each, and yours.
        #[serde(skip)]
        renamed_env: BTreeMap<String, String> = BTreeMap::new();
        /// Which layer set what.
        #[serde(skip)]
        origins: Origins = Origins::default();
    }
}

/// A login or a key of an agent's vendor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Account {
    /// Its name; runs with it are listed under `AGENT.NAME`.
    pub name: String,
    /// Variables set for it, such as `CLAUDE_CONFIG_DIR` or `CODEX_HOME`. Not for secrets: this file is committed.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Keys: the agent's variable, and the variable of your environment that has the value, as in
    /// `ANTHROPIC_API_KEY: WORK_ANTHROPIC_KEY`.
    #[serde(default)]
    pub keys: BTreeMap<String, String>,
}

/// What an agent may do without being asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PermissionMode {
    /// Only look.
    Plan,
    /// Edit files; other tools by the agent's own rules.
    #[default]
    AcceptEdits,
    /// Everything. Only on the user's word (`--trust`).
    Trust,
}

impl std::fmt::Display for PermissionMode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Plan => "plan",
            Self::AcceptEdits => "accept_edits",
            Self::Trust => "trust",
        })
    }
}

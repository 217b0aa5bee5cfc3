//! A configuration file as people write it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    CheckConfig, DriverKind, ForgeConfig, HumanDuration, QualityConfig, SandboxConfig, TestingConfig,
    WorkConfig, WorktreesConfig,
};
use crate::{AgentName, Budget, SourceError, yaml};

/// `.rehearsal/config.yaml`. Everything is optional.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct ConfigFile {
    /// Where editors find the schema of this file.
    #[serde(rename = "$schema")]
    pub schema: Option<String>,
    /// The branch that work starts from.
    pub base_branch: Option<String>,
    /// The agent that `run` uses.
    pub agent: Option<AgentName>,
    /// The agents, by name.
    pub agents: BTreeMap<AgentName, AgentConfig>,
    /// Where tasks live: `postgres://…` for many machines; without it, a file in the repository.
    pub store: Option<String>,
    /// The flow of new tasks.
    pub flow: Option<String>,
    /// How workers work.
    pub work: WorkConfig,
    /// Where worktrees are, and how they are made ready.
    pub worktrees: WorktreesConfig,
    /// Where pull requests live.
    pub forge: ForgeConfig,
    /// How the loop runs.
    #[serde(rename = "loop")]
    pub loop_: LoopConfig,
    /// How the repository's tests run.
    pub testing: TestingConfig,
    /// How the repository is built and linted.
    pub check: CheckConfig,
    /// Which changes need a review, in flows with the step `assess`.
    pub quality: QualityConfig,
}

/// An agent: a role, and how it is run.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct AgentConfig {
    /// What kind of agent it is.
    pub driver: Option<DriverKind>,
    /// With `driver: crew`: its role, one of the eight that are built in (`rehearsal crew list`) or one of your own in
    /// `.rehearsal/agents`. Without it: the agent's own name; `implementer` is `code`, `reviewer` and `gatekeeper` are `review`.
    pub role: Option<String>,
    /// The program, if it is not on the PATH under its usual name. For `command`: the program to run.
    pub program: Option<String>,
    /// Arguments put before those that the driver adds.
    pub args: Option<Vec<String>>,
    /// The model.
    pub model: Option<String>,
    /// What it may do without being asked.
    pub permission: Option<PermissionMode>,
    /// Text appended to its system prompt.
    pub system_prompt: Option<String>,
    /// The longest a run may take.
    pub timeout: Option<HumanDuration>,
    /// The longest it may be silent.
    pub idle_timeout: Option<HumanDuration>,
    /// What one run may use.
    pub budget: Option<Budget>,
    /// Variables of your environment that it may see: names, or `PREFIX_*`.
    pub pass_env: Option<Vec<String>>,
    /// Variables set for it. Not for secrets: this file is committed.
    pub env: Option<BTreeMap<String, String>>,
    /// Whether it works at all.
    pub enabled: Option<bool>,
    /// At most so many of its runs at once.
    pub at_once: Option<u32>,
    /// The least time between the starts of two of its runs.
    pub interval: Option<HumanDuration>,
    /// How it is confined. Without it, not at all: agents have rules of their own. It can then write its working tree, its
    /// repository (not its hooks and configuration) and its own login and sessions, and see toolchains of your home; it reaches the
    /// network unless you say `allow_network: false`, and has no limits but those that you set.
    pub sandbox: Option<SandboxConfig>,
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

/// How the loop runs.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct LoopConfig {
    /// At most this many iterations.
    pub iterations: Option<u32>,
    /// Stop after this many failed runs in a row.
    pub max_failures: Option<u32>,
    /// Stop when the runs of one loop have cost this many dollars.
    pub max_cost: Option<f64>,
    /// The longest wait for a rate limit or a quota; beyond it the loop ends.
    pub max_wait: Option<HumanDuration>,
    /// Take the agent's word that all is complete.
    pub accept_complete: Option<bool>,
}

/// Reads a configuration file.
pub fn parse(text: &str) -> Result<ConfigFile, SourceError> {
    // An empty file, or one with nothing but comments, is a configuration that changes nothing.
    if text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
        return Ok(ConfigFile::default());
    }
    yaml::from_str(text)
}

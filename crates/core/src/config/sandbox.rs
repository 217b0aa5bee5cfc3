//! How a process is confined.

use serde::{Deserialize, Serialize};

use super::HumanSize;
use super::definition::settings;

settings! {
    /// How a process is confined: a word (`required`), or details. The defaults are those of a test run, which needs nothing but itself.
    #[cfg_attr(feature = "schema", schemars(transform = or_a_word))]
    SandboxSettings {
        /// How much of it must be there.
        level: SandboxLevel = SandboxLevel::BestEffort;
        /// What may happen to the project's files; without it, what the process needs.
        project: Option<ProjectAccess> = None;
        /// Whether the network can be reached; loopback and unix sockets always work.
        allow_network: bool = false;
        /// The most memory.
        max_memory: Option<HumanSize> = Some(HumanSize(2 << 30));
        /// The most processors.
        max_cpus: Option<f64> = Some(2.0);
        /// The most processes.
        // Test runners start many workers with many threads; a fork bomb passes this in a blink.
        max_processes: Option<u32> = Some(1024);
        /// More files and directories that it may read. A relative path is below your home.
        read: Vec<String> = Vec::new();
        /// More directories that it may write: what it writes there stays. A relative path is below your home.
        write: Vec<String> = Vec::new();
    }
}

impl SandboxSettings {
    /// The defaults for an agent: it edits the project, reaches its model, and builds as its user would.
    pub(super) fn of_agent() -> Self {
        Self {
            level: SandboxLevel::Auto,
            project: Some(ProjectAccess::Writable),
            allow_network: true,
            max_memory: None,
            max_cpus: None,
            max_processes: None,
            read: Vec::new(),
            write: Vec::new(),
        }
    }
}

/// How much of the sandbox must be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SandboxLevel {
    /// All of it where the system has it. Where it does not, tests take what there is, and agents run without it, under the
    /// permission rules of their own CLI.
    Auto,
    /// None of it.
    Off,
    /// Whatever the system gives; the report says what it did not.
    #[default]
    BestEffort,
    /// All of it, or nothing runs.
    Required,
}

/// What may happen to the project's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ProjectAccess {
    /// Writes are allowed and forgotten afterwards; the files written are listed.
    Overlay,
    /// No writes.
    ReadOnly,
    /// Writes stay.
    Writable,
}

/// `sandbox: required` stands for `sandbox: { level: required }`.
#[cfg(feature = "schema")]
fn or_a_word(schema: &mut schemars::Schema) {
    let details = std::mem::take(schema);
    *schema = schemars::json_schema!({ "anyOf": [{ "$ref": "#/$defs/SandboxLevel" }, details] });
}

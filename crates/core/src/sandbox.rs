//! What a sandbox confines, by what, and what it does not and why.

use serde::{Deserialize, Serialize};

/// What holds for everything that one sandbox runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SandboxReport {
    /// What was asked for.
    pub requested: Demand,
    /// How far up the ladder it came.
    pub rung: Rung,
    /// What happens to writes in the project.
    pub project: ProjectMode,
    /// Each layer.
    pub layers: Layers,
}

impl SandboxReport {
    /// The layers that do not hold fully although they were asked for.
    pub fn missing(&self) -> Vec<(Layer, &LayerReport)> {
        let is_missing = |report: &LayerReport| matches!(report.state, State::Partial | State::Unavailable);
        self.layers.all().into_iter().filter(|(_, report)| is_missing(report)).collect()
    }
}

/// The ladder, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Rung {
    /// Namespaces with a `/proc` of their own, Landlock and seccomp as far as the kernel has them.
    Full,
    /// The same with the machine's `/proc`, read-only: containers often forbid a fresh one.
    NoProc,
    /// Namespaces made by the program `bwrap`, where only that may make them.
    Bwrap,
    /// No namespaces: Landlock and seccomp.
    Lsm,
    /// Only limits per process.
    Rlimits,
    /// Nothing.
    Off,
}

impl std::fmt::Display for Rung {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Full => "full",
            Self::NoProc => "no-proc",
            Self::Bwrap => "bwrap",
            Self::Lsm => "lsm",
            Self::Rlimits => "rlimits",
            Self::Off => "off",
        })
    }
}

/// Each layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Layers {
    /// What can be read and written.
    pub files: LayerReport,
    /// What can be reached.
    pub network: LayerReport,
    /// How much memory can be used.
    pub memory: LayerReport,
    /// How many processes can be started.
    pub processes: LayerReport,
    /// How much of the CPUs can be used.
    pub cpu: LayerReport,
    /// That nothing outlives the run.
    pub kill: LayerReport,
    /// Which system calls are refused.
    pub syscalls: LayerReport,
    /// That no privilege is held or gained.
    pub privileges: LayerReport,
}

impl Layers {
    /// All of them with their names.
    pub fn all(&self) -> [(Layer, &LayerReport); 8] {
        [
            (Layer::Files, &self.files),
            (Layer::Network, &self.network),
            (Layer::Memory, &self.memory),
            (Layer::Processes, &self.processes),
            (Layer::Cpu, &self.cpu),
            (Layer::Kill, &self.kill),
            (Layer::Syscalls, &self.syscalls),
            (Layer::Privileges, &self.privileges),
        ]
    }
}

/// The name of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the fields of `Layers` say what each is")]
pub enum Layer {
    Files,
    Network,
    Memory,
    Processes,
    Cpu,
    Kill,
    Syscalls,
    Privileges,
}

impl std::fmt::Display for Layer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Files => "files",
            Self::Network => "network",
            Self::Memory => "memory",
            Self::Processes => "processes",
            Self::Cpu => "cpu",
            Self::Kill => "kill",
            Self::Syscalls => "syscalls",
            Self::Privileges => "privileges",
        })
    }
}

/// How one layer stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LayerReport {
    /// Whether it holds.
    pub state: State,
    /// What makes it hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by: Vec<String>,
    /// Why it does not hold, or not fully.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl LayerReport {
    /// A layer that holds.
    pub fn enforced<const N: usize>(by: [&str; N]) -> Self {
        Self { state: State::Enforced, by: by.map(String::from).into(), why: None }
    }

    /// A layer that holds with an exception.
    pub fn partial<const N: usize>(by: [&str; N], why: impl Into<String>) -> Self {
        Self { state: State::Partial, by: by.map(String::from).into(), why: Some(why.into()) }
    }

    /// A layer that was asked for and cannot be had.
    pub fn unavailable(why: impl Into<String>) -> Self {
        Self { state: State::Unavailable, by: Vec::new(), why: Some(why.into()) }
    }

    /// A layer that was not asked for.
    pub fn off() -> Self {
        Self { state: State::Off, by: Vec::new(), why: None }
    }

    /// Notes something that also makes it hold, where it is there.
    pub fn also(mut self, by: Option<&str>) -> Self {
        self.by.extend(by.map(String::from));
        self
    }
}

/// Whether a layer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// It holds.
    Enforced,
    /// It holds with an exception.
    Partial,
    /// It was asked for and is not to be had.
    Unavailable,
    /// It was not asked for.
    Off,
}

/// What happens to writes in the project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ProjectMode {
    /// They succeed, are listed afterwards, and are thrown away. They are kept in memory and count against the limit of private
    /// files; large build directories belong into the writable ones.
    Overlay,
    /// They fail.
    ReadOnly,
    /// They change the project.
    Writable,
}

/// What to do when a layer is not to be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Demand {
    /// Confine nothing; the processes are still ended together.
    Off,
    /// Run with what there is, and report what there is not.
    BestEffort,
    /// Refuse to run unless everything holds.
    Required,
}

/// A limit that can be run into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// Of memory: a process was killed.
    Memory,
    /// Of processes: a fork was refused.
    Processes,
    /// Of private files: nothing more could be written when it ended.
    Files,
}

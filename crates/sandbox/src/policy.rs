//! What a confined process may see, write and use.

use camino::Utf8PathBuf;
use rehearsal_core::sandbox::{Demand, ProjectMode};
use serde::{Deserialize, Serialize};

use crate::home;

/// What a confined process may see, write and use. Paths are absolute.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Policy {
    /// The directory that the work is about.
    pub project: Utf8PathBuf,
    /// What happens to writes in the project.
    pub mode: ProjectMode,
    /// Whether the outside can be reached.
    pub network: Network,
    /// The user's home, which is replaced by an empty one.
    pub home: Option<Utf8PathBuf>,
    /// What stays readable although a home directory or a temporary one hides it; a relative path is below the home. What
    /// does not exist is passed over. Known places of secrets below it stay hidden.
    pub readable: Vec<Utf8PathBuf>,
    /// Directories that can be written, such as caches: they are the machine's own, and what is written stays.
    pub writable: Vec<Utf8PathBuf>,
    /// What the confined program keeps of its own, readable and writable for it even if it is a known place of secrets; a
    /// relative path is below the home. What does not exist is passed over.
    pub own: Vec<Utf8PathBuf>,
    /// What stays read-only below something that can be written, because others obey it, such as the hooks of a repository; a
    /// relative path is below the home. What does not exist is passed over. Needs namespaces.
    pub protected: Vec<Utf8PathBuf>,
    /// How much of the machine may be used.
    pub limits: Limits,
    /// What to do when a layer is not to be had.
    pub demand: Demand,
}

impl Policy {
    /// The usual one: tests may write into the project without changing it, no network, toolchains of the home readable.
    pub fn new(project: impl Into<Utf8PathBuf>) -> Self {
        Self {
            project: project.into(),
            mode: ProjectMode::Overlay,
            network: Network::Private,
            home: None,
            readable: home::READABLE_IN_HOME.iter().map(Utf8PathBuf::from).collect(),
            writable: Vec::new(),
            own: Vec::new(),
            protected: Vec::new(),
            limits: Limits::default(),
            demand: Demand::BestEffort,
        }
    }
}

/// Whether the outside can be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Network {
    /// A loopback of its own (IPv4 and IPv6) and unix sockets; neither the outside nor the machine's own loopback.
    Private,
    /// The machine's network as it is.
    Allowed,
}

/// How much of the machine may be used. `None` is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Bytes of memory, private files included.
    pub memory: Option<u64>,
    /// CPUs, as in `1.5`.
    pub cpus: Option<f64>,
    /// Processes and threads at one time.
    pub processes: Option<u64>,
    /// File descriptors of one process.
    pub open_files: Option<u64>,
    /// Bytes of private files: the temporary directories, the home, and what is written over the project in overlay mode.
    pub files: u64,
}

impl Default for Limits {
    /// Enough for the test suites of ordinary projects: a JVM or a Node with workers starts several hundred threads.
    fn default() -> Self {
        Self {
            memory: Some(2 << 30),
            cpus: Some(2.0),
            processes: Some(1024),
            open_files: Some(8192),
            files: 1 << 30,
        }
    }
}

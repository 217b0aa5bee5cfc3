//! The configuration: what people write, in which layers, and what it comes to.
//!
//! Flag > environment > project file > user file > default. Each resolved [`Setting`] remembers which of them
//! won, so that `config show --origin` can say so.

mod check;
mod driver;
mod duration;
mod environment;
mod file;
mod quality;
mod resolve;
mod sandbox;
mod size;
mod testing;
mod work;

pub use check::{CheckConfig, CheckSettings};
pub use driver::DriverKind;
pub use duration::HumanDuration;
pub use environment::VARIABLES;
pub use file::{AgentConfig, ConfigFile, LoopConfig, PermissionMode, parse};
pub use quality::{QualityConfig, QualitySettings};
pub use resolve::{Layer, Origin, Overrides, Profile, Setting, Settings, resolve};
pub use sandbox::{ProjectAccess, SandboxConfig, SandboxLevel, SandboxSettings};
pub use size::HumanSize;
pub use testing::{TestingConfig, TestingFile, TestingSettings, Written, check_timeout, parse_testing};
pub use work::{ForgeConfig, ForgeKind, WorkConfig, WorkSettings, WorktreesConfig, without_password};

#[cfg(test)]
mod tests;

//! The configuration: what people write, in which layers, and what it comes to.
//!
//! Flag > environment > project file > user file > default. Each resolved [`Setting`] remembers which of them
//! won, so that `config show --origin` can say so.

mod duration;
mod environment;
mod file;
mod resolve;

pub use duration::HumanDuration;
pub use environment::VARIABLES;
pub use file::{AgentConfig, ConfigFile, DriverKind, LoopConfig, PermissionMode, TestingConfig, parse};
pub use resolve::{Layer, Origin, Overrides, Profile, Setting, Settings, resolve};

#[cfg(test)]
mod tests;

//! The settings: what people write, in which layers, and what results from it.
//!
//! Flag > environment > project file > user file > default. Each layer is a tree. The trees are merged, and the result is read into
//! [`Settings`] once. A setting is one field there, with its default and its documentation; [`Origins`] knows which layer set it.

mod definition;
mod driver;
mod duration;
mod layer;
mod merge;
mod origin;
mod overrides;
mod profile;
mod resolve;
mod sandbox;
mod settings;
mod show;
mod size;
mod testing;

pub use driver::DriverKind;
pub use duration::HumanDuration;
pub use layer::Layer;
pub use origin::{Origin, Origins};
pub use overrides::Overrides;
pub use profile::{Account, PermissionMode, Profile};
pub use resolve::resolve;
pub use sandbox::{ProjectAccess, SandboxLevel, SandboxSettings};
pub use settings::{
    CheckSettings, ForgeKind, ForgeSettings, LoopSettings, QualitySettings, Settings, WorkSettings,
    WorktreesSettings,
};
pub use show::without_password;
pub use size::HumanSize;
pub use testing::{TestingFile, TestingSettings, check_timeout};

#[cfg(test)]
mod tests;

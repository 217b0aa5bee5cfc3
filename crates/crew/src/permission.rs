//! What a role may do.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One kind of thing that a tool does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Permission {
    /// Look at files.
    Read,
    /// Change files.
    Write,
    /// Run programs.
    Execute,
    /// Ask the web.
    Web,
}

impl Permission {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Execute, Self::Web];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Execute => "execute",
            Self::Web => "web",
        }
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// All that a role may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each permission is given or not, whatever the others are")]
pub struct Permissions {
    /// Look at files.
    pub read: bool,
    /// Change files.
    pub write: bool,
    /// Run programs.
    pub execute: bool,
    /// Ask the web.
    pub web: bool,
}

impl Permissions {
    /// Whether this is among it.
    pub fn allow(self, permission: Permission) -> bool {
        match permission {
            Permission::Read => self.read,
            Permission::Write => self.write,
            Permission::Execute => self.execute,
            Permission::Web => self.web,
        }
    }
}

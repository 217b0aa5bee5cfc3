//! The names of the drivers that a configuration may use.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::source::nearest;

/// A kind of agent, by the name that files write. What the name stands for is described in the crate `agent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DriverKind(&'static str);

/// Every driver, and what it runs.
const DRIVERS: [(&str, &str); 6] = [
    ("claude", "Claude Code."),
    ("codex", "Codex."),
    ("gemini", "Gemini CLI."),
    ("opencode", "opencode."),
    ("crew", "Our own, which needs nothing but a model's address."),
    ("command", "Any program that keeps the process contract."),
];

const NAMES: [&str; DRIVERS.len()] = {
    let mut names = [""; DRIVERS.len()];
    let mut at = 0;
    while at < DRIVERS.len() {
        names[at] = DRIVERS[at].0;
        at += 1;
    }
    names
};

impl DriverKind {
    /// The one that is used where nothing else is configured.
    pub const CLAUDE: Self = Self("claude");
    /// Our own.
    pub const CREW: Self = Self("crew");
    /// Any program.
    pub const COMMAND: Self = Self("command");

    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        NAMES.into_iter().map(Self)
    }

    /// The name as files write it.
    pub fn as_str(self) -> &'static str {
        self.0
    }

    fn named(name: &str) -> Option<Self> {
        Self::all().find(|kind| kind.0 == name)
    }
}

impl std::fmt::Display for DriverKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.0)
    }
}

impl std::str::FromStr for DriverKind {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        Self::named(text).ok_or_else(|| {
            let hint =
                nearest(text, NAMES).map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            let [others @ .., last] = NAMES;
            format!("unknown driver `{text}`: there are {} and {last}{hint}", others.join(", "))
        })
    }
}

impl Serialize for DriverKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0)
    }
}

impl<'de> Deserialize<'de> for DriverKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = Cow::<str>::deserialize(deserializer)?;
        Self::named(&name).ok_or_else(|| serde::de::Error::unknown_variant(&name, &NAMES))
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for DriverKind {
    fn schema_name() -> Cow<'static, str> {
        "DriverKind".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let one = |(name, what): (&str, &str)| schemars::json_schema!({ "description": what, "type": "string", "const": name });
        schemars::json_schema!({ "description": "The kinds of agents.", "oneOf": DRIVERS.map(one) })
    }
}

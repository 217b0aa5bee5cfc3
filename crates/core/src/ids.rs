//! Names and identifiers. Each is its own type, so that one is never taken for another.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why a text cannot be a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a valid {what}: {why}")]
pub struct IdError {
    what: &'static str,
    text: String,
    why: &'static str,
}

/// The letters of generated ids: no `i`, `l`, `o`, `u`, which people misread.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const GENERATED_LENGTH: usize = 8;
const LONGEST_NAME: usize = 64;

/// Makes a short id out of 40 random bits.
fn short_id(random: u64) -> String {
    let letter = |i: usize| {
        let index = u8::try_from((random >> (5 * i)) & 31).unwrap_or_default();
        char::from(ALPHABET[usize::from(index)])
    };
    (0..GENERATED_LENGTH).map(letter).collect()
}

fn check(what: &'static str, text: &str) -> Result<(), IdError> {
    let why = if text.is_empty() {
        "it is empty"
    } else if text.len() > LONGEST_NAME {
        "it is longer than 64 characters"
    } else if !text.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        "it must begin with a letter or a digit"
    } else if !text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')) {
        "only letters, digits, `-`, `_` and `.` are allowed"
    } else {
        return Ok(());
    };
    Err(IdError { what, text: text.chars().take(80).collect(), why })
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(try_from = "String", into = "String")]
        #[cfg_attr(feature = "schema", schemars(with = "String"))]
        pub struct $name(String);

        impl $name {
            /// Checks the text: it ends up in file names, on command lines and in YAML.
            pub fn new(text: impl Into<String>) -> Result<Self, IdError> {
                let text = text.into();
                check($what, &text)?;
                Ok(Self(text))
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdError;
            fn try_from(text: String) -> Result<Self, IdError> {
                Self::new(text)
            }
        }

        impl std::str::FromStr for $name {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                Self::new(text)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.0
            }
        }
    };
}

macro_rules! generated {
    ($name:ident) => {
        impl $name {
            /// A short id of 8 characters out of random bits; the caller brings the randomness.
            pub fn from_random(random: u64) -> Self {
                Self(short_id(random))
            }
        }
    };
}

name!(/// A task's short id; commands accept any unique prefix of it.
    TaskId, "task id");
name!(/// A run's short id; commands accept any unique prefix of it.
    RunId, "run id");
name!(/// A session's name, chosen by its user.
    SessionName, "session name");
name!(/// An agent's name: a role in the configuration.
    AgentName, "agent name");
name!(/// A flow's name.
    FlowName, "flow name");
name!(/// A state of a flow.
    StateName, "state name");
name!(/// One start of one process that works on tasks; never a host name, which two machines may share.
    WorkerId, "worker id");
generated!(TaskId);
generated!(RunId);

/// A number that grows with every take-over of a task. A write that names an older one is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Fence(pub i64);

impl Fence {
    /// The fence after the next take-over.
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_why_it_is_refused() {
        let error = SessionName::new("../etc").unwrap_err();
        assert_eq!(
            error.to_string(),
            "`../etc` is not a valid session name: it must begin with a letter or a digit"
        );
        let error = TaskId::new("a b").unwrap_err();
        assert_eq!(
            error.to_string(),
            "`a b` is not a valid task id: only letters, digits, `-`, `_` and `.` are allowed"
        );
    }

    #[test]
    fn generated_ids_are_short_and_valid() {
        let id = TaskId::from_random(u64::MAX);
        assert_eq!(id.as_str(), "zzzzzzzz");
        assert!(TaskId::new(RunId::from_random(7).as_str()).is_ok());
    }
}

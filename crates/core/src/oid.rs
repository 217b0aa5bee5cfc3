//! The id of a git object.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The full id of a commit, a tree or a blob.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(feature = "schema", schemars(with = "String"))]
pub struct Oid(String);

/// A text that is not an object's id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the full name of a git object")]
pub struct NotAnOid(String);

impl Oid {
    /// Checks the text: 40 or 64 hexadecimal digits, and not all zero, which git uses for no object.
    pub fn new(text: &str) -> Result<Self, NotAnOid> {
        let hex = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let zero = text.bytes().all(|byte| byte == b'0');
        if matches!(text.len(), 40 | 64) && hex && !zero {
            return Ok(Self(text.to_owned()));
        }
        Err(NotAnOid(text.chars().take(80).collect()))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl TryFrom<String> for Oid {
    type Error = NotAnOid;
    fn try_from(text: String) -> Result<Self, NotAnOid> {
        Self::new(&text)
    }
}

impl From<Oid> for String {
    fn from(oid: Oid) -> String {
        oid.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_full_names_of_objects_are_taken() {
        assert!(Oid::new(&"a1".repeat(20)).is_ok());
        assert!(Oid::new(&"a1".repeat(32)).is_ok());
        for wrong in ["", "abc", &"0".repeat(40), &"A1".repeat(20), "--upload-pack=touch x"] {
            assert_eq!(
                Oid::new(wrong).unwrap_err().to_string(),
                format!("`{wrong}` is not the full name of a git object")
            );
        }
    }
}

//! Keys of vendors: used, and never told.

use std::borrow::Cow;
use std::fmt;

use rehearsal_core::secret::MIN_SECRET;

/// A vendor's key. Nothing shows it: not `Debug`, not an error, not a log.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

/// What cannot be a key. It is not shown, because it may be one with a slip of the hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Nothing.
    #[error("the key is empty")]
    Empty,
    /// It cannot stand in a header.
    #[error("the key holds a line break or another character that no key has")]
    Unprintable,
}

/// Stands where a key stood.
const HIDDEN: &str = "⟦key⟧";

impl ApiKey {
    /// From a text; space around it is no part of it.
    pub fn new(text: &str) -> Result<Self, KeyError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(KeyError::Empty);
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(KeyError::Unprintable);
        }
        Ok(Self(text.to_owned()))
    }

    /// To be sent, and for nothing else.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ApiKey({HIDDEN})")
    }
}

/// A text without the key. What is too short to be a secret (`x`, for a server that wants none) is left.
pub(crate) fn hidden<'a>(key: Option<&ApiKey>, text: &'a str) -> Cow<'a, str> {
    match key {
        Some(ApiKey(key)) if key.len() >= MIN_SECRET && text.contains(key.as_str()) => {
            Cow::Owned(text.replace(key.as_str(), HIDDEN))
        }
        _ => Cow::Borrowed(text),
    }
}

//! Content-addressed pieces of requests.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

/// The hash of a piece. Files show its first 16 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Digest([u8; 32]);

impl Digest {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    pub(crate) fn short(&self) -> BlobName {
        BlobName(self.0.iter().take(8).fold(0, |name, byte| name << 8 | u64::from(*byte)))
    }

    pub(crate) fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.short())
    }
}

/// A piece's name in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct BlobName(u64);

impl fmt::Display for BlobName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:016x}", self.0)
    }
}

impl Serialize for BlobName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for BlobName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let is_name = text.len() == 16
            && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
        let number = u64::from_str_radix(&text, 16).ok().filter(|_| is_name);
        number.map(Self).ok_or_else(|| {
            serde::de::Error::custom(format!("`{}` is no name of a blob", text.escape_debug()))
        })
    }
}

/// A piece: canonical JSON (sorted keys, no spaces), and its hash.
#[derive(Debug, Clone)]
pub(crate) struct Piece {
    pub(crate) digest: Digest,
    pub(crate) json: Arc<str>,
}

impl Piece {
    pub(crate) fn new(json: String) -> Self {
        Self { digest: Digest::of(json.as_bytes()), json: json.into() }
    }
}

impl From<Sha256> for Digest {
    fn from(hash: Sha256) -> Self {
        Self(hash.finalize().into())
    }
}

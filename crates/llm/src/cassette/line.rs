//! The lines of a file. The name of a line is the one key of its object: `{"blob":{…}}`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::blob::BlobName;
use super::exchange::{Ended, Headers};
use super::lane::LaneName;
use super::normalise::RuleName;

/// The version of the format. It grows when an older reader would misread a file.
pub(crate) const VERSION: u32 = 1;

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Line<'a> {
    Cassette(Header),
    #[serde(borrow)]
    Blob(BlobLine<'a>),
    #[serde(borrow)]
    Request(RequestLine<'a>),
    #[serde(borrow)]
    Response(ResponseLine<'a>),
    #[serde(borrow)]
    Frame(FrameLine<'a>),
    End(EndLine),
}

/// The first line of a cassette.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// Of the format.
    pub version: u32,
    /// Who asked: `claude`, `codex`, …
    pub agent: String,
    /// Its version, if it was known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_version: Option<String>,
    /// What was normalised, by which version of each rule.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub normalisers: Vec<RuleName>,
    /// The rules for secrets by which it was written: `secrets@1`.
    pub redaction: String,
    /// For what a player may choose by chance.
    pub seed: u64,
}

/// A piece that requests refer to.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BlobLine<'a> {
    pub(crate) id: BlobName,
    #[serde(borrow)]
    pub(crate) json: &'a RawValue,
}

/// A request: its small fields as they are, its long ones and the elements of its lists as references.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RequestLine<'a> {
    pub(crate) number: u32,
    pub(crate) lane: LaneName,
    pub(crate) method: String,
    pub(crate) target: String,
    #[serde(default, skip_serializing_if = "Headers::is_empty")]
    pub(crate) headers: Headers,
    #[serde(borrow, default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) fields: BTreeMap<String, &'a RawValue>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) blobs: BTreeMap<String, BlobName>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) lists: BTreeMap<String, Vec<Reference>>,
    /// A body that is no JSON object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
}

/// What stands in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reference {
    /// The first so many elements of the same list in the request before, in the same lane.
    AsBefore(usize),
    Blob(BlobName),
}

/// The answer to the request above it. Its frames follow.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResponseLine<'a> {
    pub(crate) number: u32,
    pub(crate) status: u16,
    #[serde(default, skip_serializing_if = "Headers::is_empty")]
    pub(crate) headers: Headers,
    /// From the request to the first byte.
    pub(crate) at_ms: u64,
    pub(crate) ended: Ended,
    /// How many frames follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) frames: Option<u32>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(crate) json: Option<&'a RawValue>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
}

/// A frame of a stream: `event:` and `data:` if it has just that form, else its text as it came.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FrameLine<'a> {
    /// From the request on.
    pub(crate) at_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) event: Option<String>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(crate) data: Option<&'a RawValue>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
}

/// The last line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EndLine {
    pub(crate) requests: u32,
    pub(crate) blobs: u32,
    pub(crate) frames: u32,
    /// How many different secrets became placeholders.
    pub(crate) secrets: u32,
    /// Of every byte before this line, in hexadecimal.
    pub(crate) sha256: String,
}

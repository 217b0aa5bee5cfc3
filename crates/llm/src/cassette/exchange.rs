//! One request and what is kept of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::policy::{REQUEST_HEADERS, RESPONSE_HEADER_FAMILIES, RESPONSE_HEADERS};

/// A request as it came over HTTP.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// `POST`.
    pub method: &'a str,
    /// Path and query.
    pub target: &'a str,
    /// All headers; names in any case.
    pub headers: &'a [(String, String)],
    /// The body, uncompressed.
    pub body: &'a [u8],
}

impl<'a> Asked<'a> {
    /// The path without its query.
    pub fn path(&self) -> &'a str {
        self.target.split_once('?').map_or(self.target, |(path, _)| path)
    }

    pub(crate) fn header(&self, name: &str) -> Option<&'a str> {
        self.headers
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }
}

/// How an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// All of it came.
    Whole,
    /// It broke off: a player breaks off as well.
    Cut,
}

pub(crate) type Headers = BTreeMap<String, String>;

/// The headers of a request that are part of its key.
pub(crate) fn kept_request_headers(headers: &[(String, String)]) -> Headers {
    kept(headers, |name| REQUEST_HEADERS.contains(&name))
}

/// The headers of a response that a player gives back.
pub(crate) fn kept_response_headers(headers: &[(String, String)]) -> Headers {
    kept(headers, |name| {
        RESPONSE_HEADERS.contains(&name)
            || RESPONSE_HEADER_FAMILIES.iter().any(|family| name.starts_with(family))
    })
}

fn kept(headers: &[(String, String)], keep: impl Fn(&str) -> bool) -> Headers {
    headers
        .iter()
        .map(|(name, value)| (name.to_ascii_lowercase(), value.clone()))
        .filter(|(name, _)| keep(name))
        .collect()
}

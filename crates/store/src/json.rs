//! Back and forth between documents and types.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::StoreError;

pub(crate) fn to_json<T: Serialize>(value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| StoreError::Other(Box::new(error)))
}

/// Reads a document; `what` says whose it is.
pub(crate) fn from_json<T: DeserializeOwned>(what: &str, doc: &str) -> Result<T, StoreError> {
    serde_json::from_str(doc)
        .map_err(|error| StoreError::Corrupt { what: format!("{what} cannot be read: {error}") })
}

//! From what SQLite says to what it means, and back and forth between documents and types.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{CommitError, FindError, StoreError};

// <https://www.sqlite.org/rescode.html>; the low byte of an extended code is the primary one.
const SQLITE_BUSY: i32 = 5;
const SQLITE_LOCKED: i32 = 6;
const SQLITE_CORRUPT: i32 = 11;
const SQLITE_FULL: i32 = 13;
const SQLITE_NOTADB: i32 = 26;
/// An extended code: the index of the write-ahead log cannot grow, for which there is one cause.
const SQLITE_IOERR_SHMSIZE: i32 = 4874;

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        if code(&error) == Some(SQLITE_IOERR_SHMSIZE) {
            return Self::DiskFull;
        }
        match primary_code(&error) {
            Some(SQLITE_BUSY | SQLITE_LOCKED) => Self::Busy,
            Some(SQLITE_FULL) => Self::DiskFull,
            Some(SQLITE_CORRUPT | SQLITE_NOTADB) => Self::Corrupt { what: message(&error) },
            _ if matches!(error, sqlx::Error::PoolTimedOut) => Self::Busy,
            _ => Self::Other(Box::new(error)),
        }
    }
}

impl From<sqlx::Error> for CommitError {
    fn from(error: sqlx::Error) -> Self {
        Self::Store(error.into())
    }
}

impl From<sqlx::Error> for FindError {
    fn from(error: sqlx::Error) -> Self {
        Self::Store(error.into())
    }
}

/// Whether the file is no SQLite database at all.
pub(super) fn is_no_database(error: &sqlx::Error) -> bool {
    primary_code(error) == Some(SQLITE_NOTADB)
}

fn primary_code(error: &sqlx::Error) -> Option<i32> {
    code(error).map(|code| code & 0xff)
}

fn code(error: &sqlx::Error) -> Option<i32> {
    error.as_database_error()?.code()?.parse().ok()
}

fn message(error: &sqlx::Error) -> String {
    error.as_database_error().map_or_else(|| error.to_string(), |error| error.message().to_owned())
}

pub(super) fn to_json<T: Serialize>(value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| StoreError::Other(Box::new(error)))
}

/// Reads a document; `what` says whose it is.
pub(super) fn from_json<T: DeserializeOwned>(what: &str, doc: &str) -> Result<T, StoreError> {
    serde_json::from_str(doc)
        .map_err(|error| StoreError::Corrupt { what: format!("{what} cannot be read: {error}") })
}

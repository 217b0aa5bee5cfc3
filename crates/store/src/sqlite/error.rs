//! From what SQLite says to what it means.

use sqlx::error::DatabaseError;
use sqlx::sqlite::SqliteError;

use crate::StoreError;

// <https://www.sqlite.org/rescode.html>; the low byte of an extended code is the primary one.
const SQLITE_BUSY: i32 = 5;
const SQLITE_LOCKED: i32 = 6;
const SQLITE_READONLY: i32 = 8;
const SQLITE_CORRUPT: i32 = 11;
const SQLITE_FULL: i32 = 13;
const SQLITE_NOTADB: i32 = 26;
/// An extended code: the index of the write-ahead log cannot grow, for which there is one cause.
const SQLITE_IOERR_SHMSIZE: i32 = 4874;

/// What is known about an error of SQLite.
pub(crate) fn meaning(error: &SqliteError) -> Option<StoreError> {
    let code: i32 = error.code()?.parse().ok()?;
    match code & 0xff {
        _ if code == SQLITE_IOERR_SHMSIZE => Some(StoreError::DiskFull),
        SQLITE_BUSY | SQLITE_LOCKED => Some(StoreError::Busy),
        SQLITE_FULL => Some(StoreError::DiskFull),
        SQLITE_READONLY => Some(StoreError::ReadOnly),
        SQLITE_CORRUPT | SQLITE_NOTADB => Some(StoreError::Corrupt { what: error.message().to_owned() }),
        _ => None,
    }
}

/// Whether the file is no SQLite database at all.
pub(super) fn is_no_database(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(DatabaseError::code);
    code.and_then(|code| code.parse::<i32>().ok()).is_some_and(|code| code & 0xff == SQLITE_NOTADB)
}

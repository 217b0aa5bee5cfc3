//! The layout of the file and its versions.

use std::path::Path;

use sqlx::sqlite::SqliteConnection;
use sqlx::{query, query_scalar, raw_sql};

use super::open::not_ours_or;
use crate::OpenError;

/// Each version and the step that leads to it; the first begins with nothing.
const MIGRATIONS: [(i64, &str); 1] = [(1, include_str!("../../migrations/sqlite/0001_init.sql"))];
const KNOWN: i64 = MIGRATIONS[MIGRATIONS.len() - 1].0;

pub(super) const VERSION: &str = "SELECT user_version FROM pragma_user_version";

/// `RHRS`, at byte 68 of the file: tells our database from any other with a version.
const APPLICATION_ID: i64 = 0x5248_5253;

/// What a look at a file shows.
pub(super) struct Found {
    version: i64,
    application: i64,
    tables: i64,
    is_wal: bool,
}

impl Found {
    /// Whether it is ready to be used. Not ours, or from the future, is an error.
    pub(super) fn check(&self, path: &Path) -> Result<bool, OpenError> {
        let is_empty = self.version == 0 && self.application == 0 && self.tables == 0;
        if !is_empty && self.application != APPLICATION_ID {
            return Err(OpenError::NotOurs { place: path.display().to_string() });
        }
        if self.version > KNOWN {
            let place = path.display().to_string();
            return Err(OpenError::Newer { place, found: self.version, known: KNOWN });
        }
        Ok(self.version == KNOWN && self.is_wal)
    }
}

pub(super) async fn look(connection: &mut SqliteConnection) -> Result<Found, sqlx::Error> {
    let (version, application, tables) = sqlx::query_as(
        "SELECT (SELECT user_version FROM pragma_user_version),
                (SELECT application_id FROM pragma_application_id),
                (SELECT count(*) FROM sqlite_schema)",
    )
    .fetch_one(&mut *connection)
    .await?;
    let mode: String = query_scalar("PRAGMA journal_mode").fetch_one(&mut *connection).await?;
    Ok(Found { version, application, tables, is_wal: mode == "wal" })
}

/// Brings the file to the newest version, in one transaction. The caller holds the lock of the directory; the
/// transaction keeps out what does not know that lock.
pub(super) async fn migrate(connection: &mut SqliteConnection, path: &Path) -> Result<(), OpenError> {
    migrate_file(connection, path).await.map_err(|error| match error {
        MigrateError::Refused(error) => error,
        MigrateError::Sqlite(error) => not_ours_or(error, path),
    })
}

enum MigrateError {
    Refused(OpenError),
    Sqlite(sqlx::Error),
}

impl From<sqlx::Error> for MigrateError {
    fn from(error: sqlx::Error) -> Self {
        Self::Sqlite(error)
    }
}

async fn migrate_file(connection: &mut SqliteConnection, path: &Path) -> Result<(), MigrateError> {
    if look(connection).await?.check(path).map_err(MigrateError::Refused)? {
        return Ok(());
    }
    query("PRAGMA journal_mode = WAL").execute(&mut *connection).await?;
    query("BEGIN IMMEDIATE").execute(&mut *connection).await?;
    let found = look(connection).await?;
    for (number, migration) in MIGRATIONS {
        if number > found.version {
            raw_sql(migration).execute(&mut *connection).await?;
        }
    }
    // Pragmas take no parameters.
    let stamp = format!("PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {KNOWN};");
    raw_sql(sqlx::AssertSqlSafe(stamp)).execute(&mut *connection).await?;
    query("COMMIT").execute(connection).await?;
    Ok(())
}

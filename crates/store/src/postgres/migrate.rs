//! The layout of the database and its versions.

use sqlx::raw_sql;

use super::server::{Server, Turn};
use crate::link::values;
use crate::{OpenError, StoreError};

/// Each version and the step that leads to it; the first begins with nothing.
const MIGRATIONS: [(i64, &str); 1] = [(1, include_str!("../../migrations/postgres/0001_init.sql"))];
const KNOWN: i64 = MIGRATIONS[MIGRATIONS.len() - 1].0;

pub(super) const VERSION: &str = "SELECT coalesce(max(version), 0) FROM schema_version";

/// The lock of whoever migrates: `schema` in letters.
const MIGRATING: i64 = 0x7363_6865_6d61;

/// What a look at a database shows.
enum Found {
    Nothing,
    Version(i64),
    /// A schema of our name that is not ours.
    SomethingElse,
}

/// Brings the database to the newest version, in one transaction. Of several that start at once one does it.
///
/// The lock is taken before the transaction begins: within one, PostgreSQL may go on believing that there are no tables
/// after someone else has made them. Whoever fails closes the connection, and the lock falls with it.
pub(super) async fn migrate(server: &Server) -> Result<(), OpenError> {
    let mut turn = server.turn().await?;
    if !is_current(&look(&mut turn).await?, server)? {
        turn.link().on_postgres("SELECT pg_advisory_lock($1)", values![MIGRATING]).await?;
        let found = look(&mut turn).await?;
        if !is_current(&found, server)? {
            turn.run("BEGIN").await?;
            apply(&mut turn, &found).await?;
            turn.run("COMMIT").await?;
        }
        turn.link().on_postgres("SELECT pg_advisory_unlock($1)", values![MIGRATING]).await?;
    }
    turn.keep();
    Ok(())
}

fn is_current(found: &Found, server: &Server) -> Result<bool, OpenError> {
    match found {
        Found::Nothing => Ok(false),
        Found::Version(version) if *version > KNOWN => {
            Err(OpenError::Newer { place: server.place(), found: *version, known: KNOWN })
        }
        Found::Version(version) => Ok(*version == KNOWN),
        Found::SomethingElse => Err(OpenError::NotOurs { place: server.place() }),
    }
}

async fn look(turn: &mut Turn<'_>) -> Result<Found, StoreError> {
    let (has_schema, has_version): (bool, bool) = turn
        .link()
        .one(
            "SELECT to_regnamespace('rehearsal') IS NOT NULL,
                    to_regclass('rehearsal.schema_version') IS NOT NULL",
            &[],
        )
        .await?;
    match (has_schema, has_version) {
        (_, true) => {
            let (version,) = turn.link().one(VERSION, &[]).await?;
            Ok(Found::Version(version))
        }
        (true, false) => Ok(Found::SomethingElse),
        (false, false) => Ok(Found::Nothing),
    }
}

async fn apply(turn: &mut Turn<'_>, found: &Found) -> Result<(), StoreError> {
    let from = match found {
        Found::Version(version) => *version,
        Found::Nothing | Found::SomethingElse => {
            turn.run("CREATE SCHEMA rehearsal").await?;
            0
        }
    };
    for (number, migration) in MIGRATIONS {
        if number > from {
            raw_sql(migration).execute(&mut turn.connection).await?;
        }
    }
    turn.run("DELETE FROM schema_version").await?;
    turn.link().execute("INSERT INTO schema_version (version) VALUES ($1)", values![KNOWN]).await?;
    Ok(())
}

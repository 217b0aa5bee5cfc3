//! Reading runs and what they cost.

use rehearsal_core::{Run, Tokens};
use sqlx::query_as;
use sqlx::sqlite::SqliteConnection;

use super::error::from_json;
use super::tasks::limit;
use crate::{Cost, RunQuery, Scope, StoreError};

/// `start_doc, end_doc`.
pub(super) type RunRow = (String, Option<String>);

pub(super) fn read_run((start, end): &RunRow) -> Result<Run, StoreError> {
    let end = end.as_ref().map(|end| from_json("the end of a run", end)).transpose()?;
    Ok(Run { start: from_json("the start of a run", start)?, end })
}

/// The same three scopes for a listing and for a sum: each has its index.
macro_rules! scoped {
    ($scope:expr, $before:literal, $after:literal) => {
        match $scope {
            Scope::All => concat!($before, "?1 IS NULL", $after),
            Scope::Session(_) => concat!($before, "session = ?1", $after),
            Scope::Task(_) => concat!($before, "task = ?1", $after),
        }
    };
}

fn scope_value(scope: &Scope) -> Option<&str> {
    match scope {
        Scope::All => None,
        Scope::Session(name) => Some(name.as_str()),
        Scope::Task(id) => Some(id.as_str()),
    }
}

pub(super) async fn runs(connection: &mut SqliteConnection, runs: &RunQuery) -> Result<Vec<Run>, StoreError> {
    let sql =
        scoped!(&runs.scope, "SELECT start_doc, end_doc FROM runs WHERE ", " ORDER BY num DESC LIMIT ?2");
    let rows: Vec<RunRow> =
        query_as(sql).bind(scope_value(&runs.scope)).bind(limit(runs.limit)).fetch_all(connection).await?;
    rows.iter().map(read_run).collect()
}

pub(super) async fn unfinished(connection: &mut SqliteConnection) -> Result<Vec<Run>, StoreError> {
    let rows: Vec<RunRow> =
        query_as("SELECT start_doc, end_doc FROM runs WHERE end_doc IS NULL ORDER BY num")
            .fetch_all(connection)
            .await?;
    rows.iter().map(read_run).collect()
}

pub(super) async fn cost(connection: &mut SqliteConnection, scope: &Scope) -> Result<Cost, StoreError> {
    let sql = scoped!(
        scope,
        "SELECT count(*), total(cost_usd), count(*) - count(cost_usd),
                coalesce(sum(tokens_input), 0), coalesce(sum(tokens_cached), 0), coalesce(sum(tokens_output), 0),
                count(*) - count(tokens_input), coalesce(sum(turns), 0)
         FROM runs WHERE end_doc IS NOT NULL AND ",
        ""
    );
    let (runs, usd, without_usd, input, cached, output, without_tokens, turns): (
        i64,
        f64,
        i64,
        i64,
        i64,
        i64,
        i64,
        i64,
    ) = query_as(sql).bind(scope_value(scope)).fetch_one(connection).await?;
    Ok(Cost {
        runs: runs.cast_unsigned(),
        usd,
        without_usd: without_usd.cast_unsigned(),
        tokens: Tokens {
            input: input.cast_unsigned(),
            cached: cached.cast_unsigned(),
            output: output.cast_unsigned(),
        },
        without_tokens: without_tokens.cast_unsigned(),
        turns: turns.cast_unsigned(),
    })
}

//! Reading runs and what they cost.

use rehearsal_core::{Run, Tokens};

use super::tasks::limit;
use crate::json::from_json;
use crate::link::{Link, values};
use crate::{Cost, RunQuery, Scope, StoreError};

/// `start_doc, end_doc`.
pub(crate) type RunRow = (String, Option<String>);

pub(crate) fn read_run((start, end): &RunRow) -> Result<Run, StoreError> {
    let end = end.as_ref().map(|end| from_json("the end of a run", end)).transpose()?;
    Ok(Run { start: from_json("the start of a run", start)?, end })
}

/// The same three scopes for a listing and for a sum: each has its index.
macro_rules! scoped {
    ($scope:expr, $before:literal, $after:literal) => {
        match $scope {
            Scope::All => concat!($before, "$1 IS NULL", $after),
            Scope::Session(_) => concat!($before, "session = $1", $after),
            Scope::Task(_) => concat!($before, "task = $1", $after),
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

pub(crate) async fn runs(link: &mut Link<'_>, runs: &RunQuery) -> Result<Vec<Run>, StoreError> {
    let sql =
        scoped!(&runs.scope, "SELECT start_doc, end_doc FROM runs WHERE ", " ORDER BY num DESC LIMIT $2 + 0");
    let rows: Vec<RunRow> = link.all(sql, values![scope_value(&runs.scope), limit(runs.limit)]).await?;
    rows.iter().map(read_run).collect()
}

pub(crate) async fn unfinished(link: &mut Link<'_>) -> Result<Vec<Run>, StoreError> {
    let rows: Vec<RunRow> =
        link.all("SELECT start_doc, end_doc FROM runs WHERE end_doc IS NULL ORDER BY num", &[]).await?;
    rows.iter().map(read_run).collect()
}

/// Runs, dollars, runs without; tokens in, from the cache, out, runs without; turns.
type CostRow = (i64, f64, i64, i64, i64, i64, i64, i64);

pub(crate) async fn cost(link: &mut Link<'_>, scope: &Scope) -> Result<Cost, StoreError> {
    let sql = scoped!(
        scope,
        "SELECT count(*), coalesce(sum(cost_usd), 0.0), count(*) - count(cost_usd),
                CAST(coalesce(sum(tokens_input), 0) AS BIGINT), CAST(coalesce(sum(tokens_cached), 0) AS BIGINT),
                CAST(coalesce(sum(tokens_output), 0) AS BIGINT), count(*) - count(tokens_input),
                CAST(coalesce(sum(turns), 0) AS BIGINT)
         FROM runs WHERE end_doc IS NOT NULL AND ",
        ""
    );
    let (runs, usd, without_usd, input, cached, output, without_tokens, turns): CostRow =
        link.one(sql, values![scope_value(scope)]).await?;
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

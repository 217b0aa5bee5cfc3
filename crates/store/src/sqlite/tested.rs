//! Reading runs of the repository's tests.

use sqlx::query_as;
use sqlx::sqlite::SqliteConnection;

use super::error::from_json;
use super::tasks::limit;
use crate::{StoreError, TestQuery, Tested};

pub(super) async fn test_runs(
    connection: &mut SqliteConnection,
    tests: &TestQuery,
) -> Result<Vec<Tested>, StoreError> {
    let rows: Vec<(String, String)> = query_as(
        "SELECT doc, results FROM test_runs
         WHERE (?1 IS NULL OR root = ?1) AND (?2 IS NULL OR framework = ?2) AND (?3 IS NULL OR tree = ?3)
         ORDER BY num DESC LIMIT ?4",
    )
    .bind(&tests.root)
    .bind(&tests.framework)
    .bind(&tests.tree)
    .bind(limit(tests.limit))
    .fetch_all(connection)
    .await?;
    rows.iter()
        .map(|(run, results)| {
            Ok(Tested {
                run: from_json("a run of the tests", run)?,
                results: from_json("the results of a run of the tests", results)?,
            })
        })
        .collect()
}

//! Reading runs of the repository's tests.

use super::tasks::limit;
use crate::json::from_json;
use crate::link::{Link, values};
use crate::{StoreError, TestQuery, Tested};

pub(crate) async fn test_runs(link: &mut Link<'_>, tests: &TestQuery) -> Result<Vec<Tested>, StoreError> {
    let rows: Vec<(String, String)> = link
        .all(
            "SELECT doc, results FROM test_runs
             WHERE ($1 IS NULL OR root = $1) AND ($2 IS NULL OR framework = $2) AND ($3 IS NULL OR tree = $3)
             ORDER BY num DESC LIMIT $4 + 0",
            values![
                tests.root.as_deref(),
                tests.framework.as_deref(),
                tests.tree.as_deref(),
                limit(tests.limit)
            ],
        )
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

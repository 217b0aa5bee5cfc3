//! Writing runs of the repository's tests.

use rehearsal_core::{EventKind, TestResult, TestRun};
use sqlx::query;

use super::Writing;
use crate::CommitError;
use crate::policy::{TEST_HISTORY_BYTES, TEST_HISTORY_RUNS};
use crate::sqlite::error::to_json;
use crate::sqlite::log::About;

impl Writing<'_> {
    pub(super) async fn add_test_run(
        &mut self,
        run: Box<TestRun>,
        results: &[TestResult],
    ) -> Result<(), CommitError> {
        query(
            "INSERT INTO test_runs (id, at, root, framework, tree, doc, results)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )
        .bind(run.id.as_str())
        .bind(run.at.0)
        .bind(&run.root)
        .bind(&run.framework)
        .bind(&run.tree)
        .bind(to_json(&*run)?)
        .bind(to_json(&results)?)
        .execute(&mut *self.connection)
        .await?;
        self.forget_old_test_runs(&run).await?;
        self.append(About::default(), &EventKind::TestsRan { run }).await?;
        Ok(())
    }

    /// What history costs does not grow with its length.
    async fn forget_old_test_runs(&mut self, run: &TestRun) -> Result<(), CommitError> {
        query(
            "DELETE FROM test_runs WHERE num IN (
                 SELECT num FROM (
                     SELECT num, row_number() OVER newest AS place, sum(length(results)) OVER newest AS bytes
                     FROM test_runs WHERE root = ?1 AND framework = ?2
                     WINDOW newest AS (ORDER BY num DESC)
                 ) WHERE place > 1 AND (place > ?3 OR bytes > ?4))",
        )
        .bind(&run.root)
        .bind(&run.framework)
        .bind(TEST_HISTORY_RUNS)
        .bind(TEST_HISTORY_BYTES)
        .execute(&mut *self.connection)
        .await?;
        Ok(())
    }
}

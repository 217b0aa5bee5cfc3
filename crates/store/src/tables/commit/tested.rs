//! Writing runs of the repository's tests.

use rehearsal_core::{EventKind, TestResult, TestRun};

use super::Writing;
use crate::CommitError;
use crate::json::to_json;
use crate::link::values;
use crate::policy::{TEST_HISTORY_BYTES, TEST_HISTORY_RUNS};
use crate::tables::log::About;

impl Writing<'_> {
    pub(super) async fn add_test_run(
        &mut self,
        run: Box<TestRun>,
        results: &[TestResult],
    ) -> Result<(), CommitError> {
        let values = values![
            run.id.as_str(),
            run.at.0,
            &run.root,
            &run.framework,
            run.tree.as_deref(),
            to_json(&*run)?,
            to_json(&results)?,
        ];
        self.link
            .execute(
                "INSERT INTO test_runs (id, at, root, framework, tree, doc, results)
                 VALUES ($1, $2, $3, $4, $5, $6, $7)",
                values,
            )
            .await?;
        self.forget_old_test_runs(&run).await?;
        self.append(About::default(), &EventKind::TestsRan { run }).await?;
        Ok(())
    }

    /// What history costs does not grow with its length.
    async fn forget_old_test_runs(&mut self, run: &TestRun) -> Result<(), CommitError> {
        self.link
            .execute(
                "DELETE FROM test_runs WHERE num IN (
                     SELECT num FROM (
                         SELECT num, row_number() OVER newest AS place, sum(length(results)) OVER newest AS bytes
                         FROM test_runs WHERE root = $1 AND framework = $2
                         WINDOW newest AS (ORDER BY num DESC)
                     ) AS history WHERE place > 1 AND (place > $3 OR bytes > $4))",
                values![&run.root, &run.framework, TEST_HISTORY_RUNS, TEST_HISTORY_BYTES],
            )
            .await?;
        Ok(())
    }
}

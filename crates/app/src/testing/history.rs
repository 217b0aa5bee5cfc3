//! What earlier runs of the tests say.

use std::cmp::Reverse;

use rehearsal_core::TestRun;
use rehearsal_store::TestQuery;
use rehearsal_testing::{Standing, TestHistory, TestRecord, histories};
use serde::Serialize;

use crate::project::{Project, ProjectError};

/// `test history --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HistoryDocument {
    /// Newest first.
    pub runs: Vec<TestRun>,
}

/// `test flaky --json` and `test slow --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TestsDocument {
    /// The worst first.
    pub tests: Vec<TestHistory>,
}

/// What the MCP tool `test_history` answers.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TestHistoryDocument {
    /// Newest first.
    pub runs: Vec<TestRun>,
    /// Tests that gave different results on the same files, those that failed most often first.
    pub flaky: Vec<TestHistory>,
    /// Tests that fail now, with the first run in which they did.
    pub failing: Vec<TestHistory>,
    /// Tests that take longer than they used to, and the slowest.
    pub slow: Vec<TestHistory>,
    /// With `test`: all that fit it, whatever there is to say of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tests: Vec<TestHistory>,
}

/// A list is read no further than this.
const LISTED: usize = 20;

/// The last runs of the tests, newest first.
pub async fn runs(project: &Project, last: u32) -> Result<HistoryDocument, ProjectError> {
    let query = TestQuery { limit: Some(last), ..TestQuery::default() };
    let tested = project.store().await?.test_runs(&query).await?;
    Ok(HistoryDocument { runs: tested.into_iter().map(|tested| tested.run).collect() })
}

/// Tests that gave different results on the same files.
pub async fn flaky(project: &Project) -> Result<TestsDocument, ProjectError> {
    let (_, mut tests) = all(project).await?;
    tests.retain(|test| test.standing == Standing::Flaky);
    tests.sort_by_key(|test| Reverse(test.failures));
    Ok(TestsDocument { tests })
}

/// Tests that take longer than they used to, and the slowest ones.
pub async fn slow(project: &Project) -> Result<TestsDocument, ProjectError> {
    let (_, mut tests) = all(project).await?;
    tests.retain(|test| test.median_ms.is_some());
    tests.sort_by_key(|test| (test.slower.is_none(), Reverse(test.median_ms)));
    tests.truncate(LISTED);
    Ok(TestsDocument { tests })
}

/// The last runs, and the tests that stand out; with a part of a name only of tests that have it.
pub async fn history(
    project: &Project,
    last: u32,
    name: Option<&str>,
) -> Result<TestHistoryDocument, ProjectError> {
    let (mut runs, mut tests) = all(project).await?;
    runs.truncate(usize::try_from(last).unwrap_or(usize::MAX));
    if let Some(part) = name {
        tests.retain(|history| history.test.name.contains(part) || history.test.package.contains(part));
    }
    let chosen = |fits: &dyn Fn(&TestHistory) -> bool, first: &dyn Fn(&TestHistory) -> u64| {
        let mut chosen: Vec<TestHistory> = tests.iter().filter(|test| fits(test)).cloned().collect();
        chosen.sort_by_key(|test| Reverse(first(test)));
        chosen.truncate(LISTED);
        chosen
    };
    let failing = [Standing::Failing, Standing::NewlyFailing];
    // Those that became slow come before those that always were.
    let slowness = |test: &TestHistory| {
        test.slower.map_or_else(|| test.median_ms.unwrap_or(0), |slower| (1 << 62) + slower.now_ms)
    };
    Ok(TestHistoryDocument {
        flaky: chosen(&|test| test.standing == Standing::Flaky, &|test| test.failures),
        failing: chosen(&|test| failing.contains(&test.standing), &|test| test.failures),
        slow: chosen(&|test| test.median_ms.is_some_and(|ms| ms > 0), &slowness),
        tests: if name.is_some() { chosen(&|_| true, &|_| 0) } else { Vec::new() },
        runs,
    })
}

async fn all(project: &Project) -> Result<(Vec<TestRun>, Vec<TestHistory>), ProjectError> {
    let (mut runs, mut records) = (Vec::new(), Vec::new());
    for tested in project.store().await?.test_runs(&TestQuery::default()).await? {
        records.extend(TestRecord::of_run(&tested.run, &tested.results));
        runs.push(tested.run);
    }
    Ok((runs, histories(&records)))
}

//! `test history|flaky|slow`: what earlier runs tell.

use rehearsal_core::TestRun;
use rehearsal_core::config::Overrides;
use rehearsal_store::TestQuery;
use rehearsal_testing::{Standing, TestHistory, TestRecord, histories};
use serde::Serialize;

use crate::commands::Done;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::{one_line, table};
use crate::words;

/// `test history --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct HistoryDocument {
    /// Newest first.
    runs: Vec<TestRun>,
}

/// `test flaky --json` and `test slow --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct TestsDocument {
    tests: Vec<TestHistory>,
}

pub(super) async fn runs(last: u32, context: &Context) -> Done {
    let store = context.store().await?;
    let query = TestQuery { limit: Some(last), ..TestQuery::default() };
    let runs: Vec<TestRun> = store.test_runs(&query).await?.into_iter().map(|tested| tested.run).collect();
    if runs.is_empty() {
        context.ui.say("no runs are remembered yet; `rehearsal test` makes one");
    } else {
        let row = |run: &TestRun| {
            vec![
                run.id.to_string(),
                words::relative(run.at, context.now()),
                run.framework.clone(),
                if run.root.is_empty() { ".".to_owned() } else { one_line(&run.root, 30) },
                run.verdict.clone(),
                format!("{}/{}", run.total - run.failed, run.total),
            ]
        };
        let rows: Vec<Vec<String>> = runs.iter().map(row).collect();
        context.ui.say(table(&["RUN", "WHEN", "RUNNER", "PROJECT", "VERDICT", "GOOD"], &rows));
    }
    context.ui.document(HistoryDocument { runs });
    Ok(Exit::Ok)
}

pub(super) async fn flaky(context: &Context) -> Done {
    let mut tests = all(context).await?;
    tests.retain(|test| test.standing == Standing::Flaky);
    tests.sort_by_key(|test| std::cmp::Reverse(test.failures));
    Ok(list(tests, "no test gave different results on the same files", context))
}

pub(super) async fn slow(context: &Context) -> Done {
    const SHOWN: usize = 20;
    let mut tests = all(context).await?;
    tests.retain(|test| test.median_ms.is_some());
    tests.sort_by_key(|test| (test.slower.is_none(), std::cmp::Reverse(test.median_ms)));
    tests.truncate(SHOWN);
    Ok(list(tests, "no runs are remembered yet; `rehearsal test` makes one", context))
}

async fn all(context: &Context) -> Result<Vec<TestHistory>, CliError> {
    // A broken configuration is told before an empty answer is given.
    context.project()?.settings(Overrides::default())?;
    let store = context.store().await?;
    let mut records = Vec::new();
    for tested in store.test_runs(&TestQuery::default()).await? {
        records.extend(TestRecord::of_run(&tested.run, &tested.results));
    }
    Ok(histories(&records))
}

fn list(tests: Vec<TestHistory>, none: &str, context: &Context) -> Exit {
    if tests.is_empty() {
        context.ui.say(none);
    }
    for test in &tests {
        context.ui.say(format!("{}  {}", one_line(&test.test.name, 80), test.words()));
    }
    context.ui.document(TestsDocument { tests });
    Exit::Ok
}

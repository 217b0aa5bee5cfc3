//! The tool `test_history`.

use std::fmt::Write;

use rehearsal_core::TestRun;
use rehearsal_store::TestQuery;
use rehearsal_testing::{Standing, TestHistory, TestRecord, histories};
use rmcp::model::{CallToolResult, JsonObject, Tool, ToolAnnotations};
use serde::{Deserialize, Serialize};

use super::answer::{answer, arguments, schema};
use super::server::Server;
use crate::error::CliError;
use crate::ui::one_line;

pub(super) const NAME: &str = "test_history";

const DESCRIPTION: &str = "What earlier runs of this repository's tests tell: the last runs, which tests are flaky (other \
results on the same files), which are failing and since which run, which became slow. Runs nothing. Ask it whether a \
failure is older than your change.";

/// Everything may be left out.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    /// Only tests whose name, package or file has this in it.
    test: Option<String>,
    /// How many runs are listed; 10 if left out.
    last: Option<u32>,
}

/// What the MCP tool `test_history` answers.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct TestHistoryDocument {
    /// Newest first.
    runs: Vec<TestRun>,
    /// Tests that gave different results on the same files, those that failed most often first.
    flaky: Vec<TestHistory>,
    /// Tests that fail now, with the first run in which they did.
    failing: Vec<TestHistory>,
    /// Tests that take longer than they used to, and the slowest.
    slow: Vec<TestHistory>,
    /// With `test`: all that fit it, whatever there is to say of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tests: Vec<TestHistory>,
}

/// A model reads a list no further than this.
const LISTED: usize = 20;
const LAST: u32 = 10;

pub(super) fn tool() -> Tool {
    let hints = ToolAnnotations::with_title("Test history").read_only(true).open_world(false);
    Tool::new(NAME, DESCRIPTION, schema("mcp-test_history"))
        .with_raw_output_schema(schema("test-history-tool").into())
        .with_annotations(hints)
}

pub(super) async fn call(server: &Server, given: Option<JsonObject>) -> Result<CallToolResult, CliError> {
    let asked: Arguments = arguments(NAME, given)?;
    let store = server.context().store().await?;
    let mut records = Vec::new();
    let mut runs = Vec::new();
    let shown = usize::try_from(asked.last.unwrap_or(LAST)).unwrap_or(usize::MAX);
    for tested in store.test_runs(&TestQuery::default()).await? {
        records.extend(TestRecord::of_run(&tested.run, &tested.results));
        if runs.len() < shown {
            runs.push(tested.run);
        }
    }
    let mut tests = histories(&records);
    if let Some(part) = &asked.test {
        tests.retain(|history| history.test.name.contains(part) || history.test.package.contains(part));
    }
    let document = TestHistoryDocument::of(runs, &tests, asked.test.is_some());
    let text = document.words();
    answer(document, text)
}

impl TestHistoryDocument {
    fn of(runs: Vec<TestRun>, tests: &[TestHistory], with_all: bool) -> Self {
        let chosen = |fits: &dyn Fn(&TestHistory) -> bool, first: &dyn Fn(&TestHistory) -> u64| {
            let mut chosen: Vec<TestHistory> = tests.iter().filter(|test| fits(test)).cloned().collect();
            chosen.sort_by_key(|test| std::cmp::Reverse(first(test)));
            chosen.truncate(LISTED);
            chosen
        };
        let failing = [Standing::Failing, Standing::NewlyFailing];
        // Those that became slow are before those that always were.
        let slowness = |test: &TestHistory| {
            test.slower.map_or_else(|| test.median_ms.unwrap_or(0), |slower| (1 << 62) + slower.now_ms)
        };
        Self {
            flaky: chosen(&|test| test.standing == Standing::Flaky, &|test| test.failures),
            failing: chosen(&|test| failing.contains(&test.standing), &|test| test.failures),
            slow: chosen(&|test| test.median_ms.is_some_and(|ms| ms > 0), &slowness),
            tests: if with_all { chosen(&|_| true, &|_| 0) } else { Vec::new() },
            runs,
        }
    }

    fn words(&self) -> String {
        if self.runs.is_empty() {
            return "No runs are remembered yet; `run_tests` makes one.".to_owned();
        }
        let mut text = String::from("Last runs, newest first:\n");
        for run in &self.runs {
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "{}  {}: {} ({}/{} good)",
                run.id,
                run.framework,
                run.verdict,
                run.total.saturating_sub(run.failed),
                run.total
            );
        }
        for (title, tests) in [("Flaky", &self.flaky), ("Failing", &self.failing), ("Asked for", &self.tests)]
        {
            if !tests.is_empty() {
                let _ = write!(text, "\n{title}:\n");
            }
            for test in tests {
                let _ = writeln!(text, "{}  {}", one_line(&test.test.name, 120), test.words());
            }
        }
        let slower = self.slow.iter().filter_map(|test| Some((test, test.slower?)));
        for (test, slower) in slower {
            let _ = writeln!(text, "\n{} {}", one_line(&test.test.name, 120), slower.words());
        }
        text.truncate(text.trim_end().len());
        text
    }
}

//! The tool `test_history`.

use std::fmt::Write;

use rehearsal_app::testing::{self, TestHistoryDocument};
use rmcp::model::{CallToolResult, JsonObject, Tool, ToolAnnotations};
use serde::Deserialize;

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

const LAST: u32 = 10;

pub(super) fn tool() -> Tool {
    let hints = ToolAnnotations::with_title("Test history").read_only(true).open_world(false);
    Tool::new(NAME, DESCRIPTION, schema("mcp-test_history"))
        .with_raw_output_schema(schema("test-history-tool").into())
        .with_annotations(hints)
}

pub(super) async fn call(server: &Server, given: Option<JsonObject>) -> Result<CallToolResult, CliError> {
    let asked: Arguments = arguments(NAME, given)?;
    let last = asked.last.unwrap_or(LAST);
    let document = testing::history(&server.context().project()?, last, asked.test.as_deref()).await?;
    let text = words(&document);
    answer(document, text)
}

fn words(document: &TestHistoryDocument) -> String {
    if document.runs.is_empty() {
        return "No runs are remembered yet; `run_tests` makes one.".to_owned();
    }
    let mut text = String::from("Last runs, newest first:\n");
    for run in &document.runs {
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
    for (title, tests) in
        [("Flaky", &document.flaky), ("Failing", &document.failing), ("Asked for", &document.tests)]
    {
        if !tests.is_empty() {
            let _ = write!(text, "\n{title}:\n");
        }
        for test in tests {
            let _ = writeln!(text, "{}  {}", one_line(&test.test.name, 120), test.words());
        }
    }
    let slower = document.slow.iter().filter_map(|test| Some((test, test.slower?)));
    for (test, slower) in slower {
        let _ = writeln!(text, "\n{} {}", one_line(&test.test.name, 120), slower.words());
    }
    text.truncate(text.trim_end().len());
    text
}

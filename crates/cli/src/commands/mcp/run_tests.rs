//! The tool `run_tests`.

use std::time::Duration;

use rehearsal_app::testing::{self, Choices};
use rehearsal_core::config::HumanDuration;
use rehearsal_engine::{TesterError, Wanted};
use rehearsal_testing::{AgentBudget, Framework};
use rmcp::model::{CallToolResult, JsonObject, Tool, ToolAnnotations};
use rmcp::service::{RequestContext, RoleServer};
use serde::Deserialize;

use super::answer::{answer, arguments, cancelled, schema};
use super::progress::watched;
use super::server::Server;
use crate::commands::test::{DEFAULT_BUDGET, TestDocument, for_agent};
use crate::error::CliError;

pub(super) const NAME: &str = "run_tests";

const DESCRIPTION: &str = "Run this repository's tests (any mainstream runner, found by itself) in a sandbox without \
network. Answers with the verdict and the failures first, each once, with file, line, expected and actual values, \
what is behind them, and how to run the failed ones again. Only the verdict `passed` is good: a run without tests, \
or one that crashed or was cut off, is not.";

/// Everything may be left out.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    /// Only tests that fit: a part of a name, `Test*`, or a file.
    test_pattern: Option<String>,
    /// The runner, if it is not to be found out.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(schema_with = "frameworks"))]
    framework: Option<String>,
    /// How long the run may take, at most 900.
    timeout_seconds: Option<u64>,
    /// How often failed tests are run again; one that then passes is flaky.
    retries: Option<u32>,
    /// How many tokens the report may have; 2000 if left out.
    budget: Option<u32>,
}

/// Names only: a model pays for every word of a schema.
#[cfg(feature = "schema")]
fn frameworks(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": ["string", "null"], "enum": Framework::ALL.map(Framework::name) })
}

fn framework(name: String) -> Result<Framework, TesterError> {
    Framework::named(&name).ok_or(TesterError::UnknownFramework { name, place: None })
}

pub(super) fn tool() -> Tool {
    // Tests may do anything, but in the sandbox what they write to the project is caught.
    let hints =
        ToolAnnotations::with_title("Run tests").read_only(false).destructive(false).open_world(false);
    Tool::new(NAME, DESCRIPTION, schema("mcp-run_tests"))
        .with_raw_output_schema(schema("test").into())
        .with_annotations(hints)
}

pub(super) async fn call(
    server: &Server,
    given: Option<JsonObject>,
    request: &RequestContext<RoleServer>,
) -> Result<CallToolResult, CliError> {
    let asked: Arguments = arguments(NAME, given)?;
    let choices = Choices {
        framework: asked.framework.map(framework).transpose()?,
        timeout: asked.timeout_seconds.map(|seconds| HumanDuration(Duration::from_secs(seconds))),
        retries: asked.retries,
        ..Choices::default()
    };
    let tester = testing::tester(&server.context().project()?, choices).await?;
    let wanted = Wanted { patterns: asked.test_pattern.into_iter().collect(), ..Wanted::default() };
    let _turn = server.my_turn(&request.ct).await?;
    let tested = watched(request, |watcher| {
        let (tester, wanted) = (&tester, &wanted);
        async move { testing::test(tester, wanted, &watcher, &request.ct).await }
    })
    .await?;
    if request.ct.is_cancelled() {
        return Err(cancelled());
    }
    // The model has not seen what the runner printed: the report of a terse one may be longer than that.
    let budget = AgentBudget { tokens: asked.budget.unwrap_or(DEFAULT_BUDGET), runner_text: None };
    let text = for_agent(&tested.projects, &tested.notes, |_| budget);
    answer(TestDocument::for_model(tested, text.clone()), text)
}

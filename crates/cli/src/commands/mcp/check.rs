//! The tool `check`.

use rehearsal_app::testing::{self, Choices};
use rehearsal_engine::{CheckWanted, Wanted};
use rehearsal_testing::{CheckReport, Stage, check_page_for_agents};
use rmcp::model::{CallToolResult, JsonObject, Tool, ToolAnnotations};
use rmcp::service::{RequestContext, RoleServer};
use serde::{Deserialize, Serialize};

use super::answer::{answer, arguments, cancelled, schema};
use super::progress::watched;
use super::server::Server;
use crate::commands::test::{DEFAULT_BUDGET, LISTED_FOR_MODEL, shorten};
use crate::error::CliError;
use crate::ui::harmless;

pub(super) const NAME: &str = "check";

const DESCRIPTION: &str = "Build and lint this repository with the compilers and linters that it is set up for, then run its \
tests; a build that fails is the end of it. Answers with what is to be mended: file, line and message, errors first. \
With `build` or `lint` true, only what is named runs.";

/// Everything may be left out.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    /// Build; false leaves it out.
    build: Option<bool>,
    /// Lint; false leaves it out.
    lint: Option<bool>,
}

/// The report of `check --json`, and the words for the model.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct CheckAnswer {
    /// What is to be mended, in few words.
    agent_report: String,
    #[serde(flatten)]
    report: CheckReport,
}

pub(super) fn tool() -> Tool {
    let hints = ToolAnnotations::with_title("Build, lint and test")
        .read_only(false)
        .destructive(false)
        .open_world(false);
    Tool::new(NAME, DESCRIPTION, schema("mcp-check"))
        .with_raw_output_schema(schema("mcp-check-answer").into())
        .with_annotations(hints)
}

pub(super) async fn call(
    server: &Server,
    given: Option<JsonObject>,
    request: &RequestContext<RoleServer>,
) -> Result<CallToolResult, CliError> {
    let asked: Arguments = arguments(NAME, given)?;
    let wanted = CheckWanted { stages: asked.stages(), tests: Wanted::default() };
    let checker = testing::checker(&server.context().project()?, Choices::default()).await?;
    let _turn = server.my_turn(&request.ct).await?;
    let mut report = watched(request, |watcher| {
        let (checker, wanted) = (&checker, &wanted);
        async move { testing::check(checker, wanted, &watcher, &request.ct).await }
    })
    .await?;
    if request.ct.is_cancelled() {
        return Err(cancelled());
    }
    let text = harmless(check_page_for_agents(&report, DEFAULT_BUDGET).trim_end());
    bound(&mut report);
    answer(CheckAnswer { agent_report: text.clone(), report }, text)
}

impl Arguments {
    /// Those that are named; if none is, all but those that are left out.
    fn stages(&self) -> Vec<Stage> {
        let named = self.build == Some(true) || self.lint == Some(true);
        let wanted = |stage: &Stage| match stage {
            Stage::Build => self.build.unwrap_or(!named),
            Stage::Lint => self.lint.unwrap_or(!named),
            Stage::Test => !named,
        };
        Stage::ALL.into_iter().filter(wanted).collect()
    }
}

/// What a model can use; the rest is counted, and is in the files that are named.
fn bound(report: &mut CheckReport) {
    for stage in &mut report.stages {
        let too_many = stage.diagnostics.len().saturating_sub(LISTED_FOR_MODEL);
        stage.diagnostics.truncate(LISTED_FOR_MODEL);
        stage.left_out += too_many as u64;
        stage.diagnostics.iter_mut().for_each(|diagnostic| shorten(&mut diagnostic.message));
        shorten(&mut stage.output);
    }
}

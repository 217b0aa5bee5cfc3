//! `run_tests`: the action of the same name, with its request and its answer.

use std::sync::Arc;

use async_trait::async_trait;
use rehearsal_testing::{RunTestsAnswer, RunTestsParameters};
use tokio_util::sync::CancellationToken;

use super::tool::{BuiltIn, ToolError};
use crate::Permission;

/// Who can run the tests of the worktree: the port of the tool `run_tests`.
#[async_trait]
pub trait TestRunner: Send + Sync {
    /// Runs them. Cancelled, it stops and leaves no process.
    async fn run_tests(
        &self,
        parameters: &RunTestsParameters,
        cancel: &CancellationToken,
    ) -> Result<RunTestsAnswer, TestRunError>;
}

/// Why tests could not be run at all, in words for whoever asked.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct TestRunError(pub String);

pub(super) struct RunTests {
    pub(super) runner: Arc<dyn TestRunner>,
}

#[async_trait]
impl BuiltIn for RunTests {
    type Arguments = RunTestsParameters;

    const NAME: &'static str = "run_tests";
    const SCHEMA: &'static str = include_str!("../../../../schemas/tools/run_tests.json");
    const ABOUT: &'static str = "Run the tests of this repository in a sandbox without network; the runner is found by itself. Answers with \
    the verdict, the counts, and each failure with its file and line. Only the verdict `passed` is good.";
    const NEEDS: Option<Permission> = Some(Permission::Execute);
    const ONLY_READS: bool = false;

    async fn run(&self, asked: RunTestsParameters, cancel: &CancellationToken) -> Result<String, ToolError> {
        let answer = self.runner.run_tests(&asked, cancel).await;
        if cancel.is_cancelled() {
            return Err(ToolError::Cancelled);
        }
        let answer = answer.map_err(|error| ToolError::failed(error.to_string()))?;
        serde_json::to_string_pretty(&answer)
            .map_err(|error| ToolError::failed(format!("the answer cannot be told: {error}")))
    }
}

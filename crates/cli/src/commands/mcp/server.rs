//! The server: which tools there are, and whose turn it is.

use std::sync::Arc;

use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ErrorData, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use tokio::sync::{Mutex, MutexGuard};
use tokio_util::sync::CancellationToken;

use super::answer::{cancelled, refusal};
use super::{check, run_tests, test_history};
use crate::context::Context;
use crate::error::CliError;

const INSTRUCTIONS: &str = "Rehearsal runs this repository's tests in a sandbox and says what failed, where and why. \
Call `run_tests` after a change instead of running the test command yourself; give `test_pattern` to run a part. `check` builds and lints first. \
`test_history` tells whether a test is flaky or has been failing before your change.";

/// Serves one client.
pub(super) struct Server {
    context: Context,
    /// Two runs at a time would disturb each other in the build directories, and in what they measure: a second call waits.
    turn: Arc<Mutex<()>>,
}

impl Server {
    pub(super) fn new(context: Context) -> Self {
        Self { context, turn: Arc::default() }
    }

    /// Held while something runs.
    pub(super) fn turn(&self) -> Arc<Mutex<()>> {
        Arc::clone(&self.turn)
    }

    /// Waits until nothing runs; an error if the call is cancelled before.
    pub(super) async fn my_turn(&self, cancel: &CancellationToken) -> Result<MutexGuard<'_, ()>, CliError> {
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(cancelled()),
            turn = self.turn.lock() => Ok(turn),
        }
    }

    pub(super) fn context(&self) -> &Context {
        &self.context
    }

    fn tools() -> [Tool; 3] {
        [run_tests::tool(), check::tool(), test_history::tool()]
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("rehearsal", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(Self::tools().into()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        Self::tools().into_iter().find(|tool| tool.name == name)
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let answered: Result<CallToolResult, CliError> = match call.name.as_ref() {
            run_tests::NAME => run_tests::call(self, call.arguments, &context).await,
            check::NAME => check::call(self, call.arguments, &context).await,
            test_history::NAME => test_history::call(self, call.arguments).await,
            unknown => {
                return Err(ErrorData::invalid_params(format!("there is no tool `{unknown}`"), None));
            }
        };
        Ok(answered.unwrap_or_else(|error| refusal(&error)).into())
    }
}

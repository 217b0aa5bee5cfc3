//! `mcp`: an MCP server on standard input and output, so that any coding agent can run the repository's tests.
//!
//! **Invariant:** nothing but the protocol on standard output. When the client goes, the run that it asked for is stopped,
//! and the program ends when no process of it is left.

mod answer;
mod check;
mod input;
mod progress;
mod run_tests;
mod server;
mod test_history;

use clap::Args;
use rmcp::service::{QuitReason, ServerInitializeError, serve_server_with_ct};
use rmcp::transport::io::stdio_pipes;
use tokio_util::sync::CancellationToken;

use super::Done;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::interruption::signalled;
use input::Input;
use server::Server;
#[cfg(all(test, feature = "schema"))]
pub(crate) use {
    check::{Arguments as CheckArguments, CheckAnswer},
    run_tests::Arguments as RunTestsArguments,
    test_history::Arguments as TestHistoryArguments,
};

#[derive(Debug, Args)]
#[command(after_help = "\
Speaks the Model Context Protocol on standard input and output, until the client closes them. Tools:
  run_tests      run the tests; failures first, each once, with file and line
  check          build, lint and test; what is to be mended, with file and line
  test_history   the last runs; which tests are flaky, failing and since when, slow

Examples:
  claude mcp add rehearsal -- rehearsal mcp              # register it with Claude Code
  claude --mcp-config '{\"mcpServers\": {\"rehearsal\": {\"command\": \"rehearsal\", \"args\": [\"mcp\"]}}}'
  codex mcp add rehearsal -- rehearsal mcp
  rehearsal mcp --repo ../other                          # for a repository elsewhere")]
pub(crate) struct McpArgs {}

pub(crate) fn run(_args: &McpArgs, context: &Context) -> Done {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let done = runtime.block_on(serve(context));
    // Standard input may be one that can only be read by a thread that waits: it is not waited for.
    runtime.shutdown_background();
    done
}

async fn serve(context: &Context) -> Done {
    let stop = CancellationToken::new();
    let server = Server::new(context.clone());
    let turn = server.turn();
    let (input, output) = stdio_pipes();
    let transport = (Input::new(input, stop.clone()), output);
    let (signal, stopped) = (signalled()?, stop.clone());
    let signalled = tokio::spawn(async move {
        let exit = signal.await;
        stopped.cancel();
        exit
    });
    let served = match Box::pin(serve_server_with_ct(server, transport, stop)).await {
        Ok(running) => running.waiting().await.map_err(|error| CliError::of(Exit::Internal, &error)),
        // The client went before it said anything.
        Err(ServerInitializeError::Cancelled | ServerInitializeError::ConnectionClosed(_)) => {
            Ok(QuitReason::Closed)
        }
        Err(error) => Err(no_client(&error)),
    };
    // Whoever runs tests has the turn until the last process is gone.
    let _nothing_runs = turn.lock().await;
    let exit = if signalled.is_finished() { signalled.await.ok() } else { None };
    served.map(|_| exit.unwrap_or(Exit::Ok))
}

fn no_client(error: &ServerInitializeError) -> CliError {
    let told = match error {
        ServerInitializeError::ExpectedInitializeRequest(_) => {
            CliError::usage("what came first on standard input is no `initialize` of an MCP client")
        }
        error => CliError::of(Exit::Usage, error),
    };
    told.hint("`rehearsal mcp --help` shows how to register it with one")
}

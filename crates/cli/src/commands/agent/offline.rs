//! Surroundings in which an agent's CLI cannot reach any model: no key, no login, an address on loopback.

use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_agent::clis::{AgentCli, Endpoint, Retries, StageModel, StageSetup};
use tokio::net::{TcpListener, TcpStream};

use crate::error::CliError;

/// The discard port: nobody listens there.
const NOBODY: u16 = 9;

/// What a CLI is given, and its scratch home.
pub(super) struct Offline {
    pub(super) setup: StageSetup,
    pub(super) home: Option<Utf8PathBuf>,
}

impl Offline {
    /// Where a connection is refused.
    pub(super) fn nowhere(cli: &AgentCli, scratch: &Utf8Path) -> Result<Self, CliError> {
        Self::at(cli, NOBODY, scratch)
    }

    /// Where a port of loopback plays the model.
    pub(super) fn at(cli: &AgentCli, port: u16, scratch: &Utf8Path) -> Result<Self, CliError> {
        let home = scratch.join("home");
        fs_err::create_dir_all(&home)?;
        let url = format!("http://127.0.0.1:{port}");
        let setup = cli.on_stage(Endpoint { url: &url, model: StageModel::Any, retries: Retries::None });
        setup.write_files(&home)?;
        Ok(Self { setup, home: Some(home) })
    }
}

/// A server that accepts and never answers.
pub(super) struct SilentServer {
    listener: TcpListener,
    port: u16,
}

pub(super) async fn silent_server() -> Result<SilentServer, CliError> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let port = listener.local_addr()?.port();
    Ok(SilentServer { listener, port })
}

impl SilentServer {
    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Returns once someone has connected, or patience is at its end: the connection, to be held.
    pub(super) async fn connected(self, patience: Duration) -> Option<TcpStream> {
        let accepted = tokio::time::timeout(patience, self.listener.accept()).await;
        accepted.ok().and_then(Result::ok).map(|(stream, _)| stream)
    }
}

//! Clients: the one of the official SDK, and one that writes lines.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use rmcp::ClientHandler;
use rmcp::model::{CallToolResult, ProgressNotificationParam};
use rmcp::service::{NotificationContext, RoleClient, RunningService, ServiceExt};
use rmcp::transport::TokioChildProcess;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::env::{PROGRAM, TestEnv};
use crate::running::wait_until;

/// A client that remembers how far it was told the run is.
#[derive(Default)]
pub(super) struct Client {
    told: Mutex<Vec<ProgressNotificationParam>>,
    more: Notify,
}

impl Client {
    pub(super) fn progress(&self) -> Vec<ProgressNotificationParam> {
        self.told.lock().unwrap().clone()
    }

    /// Waits until it was told this.
    pub(super) async fn until_told(&self, this: impl Fn(&ProgressNotificationParam) -> bool) {
        let waiting = async {
            while !self.progress().iter().any(&this) {
                self.more.notified().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), waiting).await.unwrap();
    }
}

impl ClientHandler for Client {
    async fn on_progress(&self, progress: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.told.lock().unwrap().push(progress);
        self.more.notify_one();
    }
}

/// The server of this repository, and a client of it.
pub(super) async fn connected(env: &TestEnv) -> RunningService<RoleClient, Client> {
    let mut command = env.command(PROGRAM);
    command.arg("mcp");
    let server = TokioChildProcess::new(tokio::process::Command::from(command)).unwrap();
    Client::default().serve(server).await.unwrap()
}

pub(super) fn text_of(result: &CallToolResult) -> String {
    result.content[0].as_text().unwrap().text.clone()
}

/// A client that knows nothing but lines.
pub(super) struct Lines {
    server: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Lines {
    pub(super) fn start(env: &TestEnv) -> Self {
        let mut command = env.command(PROGRAM);
        command.arg("mcp").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut server = command.spawn().unwrap();
        let output = BufReader::new(server.stdout.take().unwrap());
        Self { input: server.stdin.take(), server, output }
    }

    /// The handshake.
    pub(super) fn begin(&mut self) {
        self.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "lines", "version": "1"}}}));
        assert_eq!(self.next()["result"]["protocolVersion"], "2025-06-18");
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    }

    pub(super) fn send(&mut self, message: &Value) {
        self.send_text(&message.to_string());
    }

    pub(super) fn send_text(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        writeln!(input, "{line}").unwrap();
        input.flush().unwrap();
    }

    /// The next message; everything on standard output has to be one.
    pub(super) fn next(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    /// Closes its end, and waits for the server's.
    pub(super) fn hang_up(mut self) -> i32 {
        self.input = None;
        self.end()
    }

    /// Asks the process to end, with the line still open.
    pub(super) fn terminate(mut self) -> i32 {
        kill_process(Pid::from_child(&self.server), Signal::TERM).unwrap();
        self.end()
    }

    fn end(&mut self) -> i32 {
        wait_until("the end of the server", || self.server.try_wait().unwrap().is_some());
        self.server.wait().unwrap().code().unwrap()
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        // It may have ended, which is what is wanted.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

//! An agent in a sandbox, as the shim sees it.

use std::error::Error;
use std::os::fd::{AsFd, BorrowedFd};

use rehearsal_core::Exit;
use rehearsal_sandbox::{
    Command, Confined, Ended, Limit, Policy, Sandbox, SandboxError, SandboxReport, Signal, Status,
};

use super::shim::{Pipes, failure};
use super::wire::{Failure, Order};
use crate::policy::SANDBOX_KILL_LIMIT;

pub(super) struct Sandboxed {
    confined: Confined,
    /// Has the temporary directory, where there is no private one.
    sandbox: Sandbox,
}

pub(super) struct SandboxEnd {
    pub(super) exit: Option<Exit>,
    /// Processes that had outlived the agent.
    pub(super) left_running: u32,
    pub(super) limits: Vec<Limit>,
}

impl Sandboxed {
    pub(super) fn start(policy: &Policy, order: &Order, pipes: Pipes) -> Result<Self, Failure> {
        let refused = |error: &SandboxError| Failure::Sandbox { reason: in_a_line(error) };
        let sandbox = Sandbox::prepare(policy).map_err(|error| refused(&error))?;
        let mut command = Command::new(order.program.as_str(), order.cwd.clone())
            .args(&order.args)
            .stdin(pipes.stdin)
            .stdout(pipes.stdout)
            .stderr(pipes.stderr);
        for (name, value) in &order.env {
            command = command.env(name, value);
        }
        match sandbox.spawn(command) {
            Ok(confined) => Ok(Self { confined, sandbox }),
            Err(SandboxError::Execute { source, .. }) => Err(failure(&source, order)),
            Err(error) => Err(refused(&error)),
        }
    }

    /// The process that everything inside descends from.
    pub(super) fn pid(&self) -> u32 {
        self.confined.pid()
    }

    pub(super) fn report(&self) -> &SandboxReport {
        self.sandbox.report()
    }

    /// Readable when the agent has ended.
    pub(super) fn ending(&self) -> BorrowedFd<'_> {
        self.confined.as_fd()
    }

    pub(super) fn terminate(&self) {
        self.confined.signal(Signal::TERM);
    }

    /// Waits for the agent, and for the end of all that it left.
    pub(super) fn wait(&mut self) -> SandboxEnd {
        let ended = self.confined.wait_blocking();
        self.fold_up(ended)
    }

    pub(super) fn kill(&mut self) -> SandboxEnd {
        let ended = self.confined.kill_blocking(SANDBOX_KILL_LIMIT);
        self.fold_up(ended)
    }

    fn fold_up(&self, ended: Ended) -> SandboxEnd {
        // What is not gone by then is found by the sweep.
        let _is_gone = self.confined.is_gone_within(SANDBOX_KILL_LIMIT);
        let exit = match ended.status {
            Status::Exited { code } => Some(Exit::Code(code)),
            Status::Signaled { signal } => Some(Exit::Signal(signal)),
            Status::Lost => None,
        };
        SandboxEnd { exit, left_running: ended.left_running, limits: ended.limits_hit }
    }
}

/// An error with what is behind it.
fn in_a_line(error: &SandboxError) -> String {
    let mut line = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        line.push_str(": ");
        line.push_str(&cause.to_string());
        source = cause.source();
    }
    line
}

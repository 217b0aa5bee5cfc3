//! Claude Code.

use rehearsal_core::Timestamp;

use super::offer::Offer;
use super::stream::JsonLines;
use super::{CommandLine, Driver, DriverKind, Program, WireParser};
use crate::{Permission, RunRequest};

mod end;
mod message;
mod wire;

/// Drives Claude Code.
#[derive(Debug, Clone)]
pub struct ClaudeDriver {
    program: Program,
    is_root: bool,
}

impl ClaudeDriver {
    /// A driver of this program.
    pub fn new(program: impl Into<Program>) -> Self {
        let is_root = rustix::process::geteuid().is_root();
        Self { program: program.into(), is_root }
    }

    /// Run by root or not; by default as this process is.
    pub fn run_by_root(self, is_root: bool) -> Self {
        Self { is_root, ..self }
    }

    fn permissions(&self, offer: &mut Offer<'_>, permission: Permission) {
        match permission {
            Permission::Plan => offer.flag("--permission-mode", &["plan"]),
            Permission::AcceptEdits => offer.flag("--permission-mode", &["acceptEdits"]),
            Permission::Trust => {
                offer.flag("--dangerously-skip-permissions", &[]);
                if self.is_root {
                    // It refuses to skip permissions for root outside of what it believes to be a sandbox.
                    offer.env("IS_SANDBOX", "1");
                }
            }
        }
    }
}

impl Driver for ClaudeDriver {
    fn name(&self) -> &'static str {
        DriverKind::Claude.as_str()
    }

    fn command(&self, request: &RunRequest) -> CommandLine {
        let mut offer = self.program.offer(DriverKind::Claude);
        offer.flag("--print", &[]);
        offer.flag("--output-format", &["stream-json"]);
        offer.flag("--verbose", &[]);
        self.permissions(&mut offer, request.permission);
        offer.flag("--setting-sources", &[""]);
        offer.flag("--disable-slash-commands", &[]);
        offer.option("--model", request.model.as_deref());
        offer.option("--append-system-prompt", request.system_prompt.as_deref());
        offer.option("--max-budget-usd", request.budget.usd.map(|usd| usd.to_string()).as_deref());
        offer.option("--max-turns", request.budget.turns.map(|turns| turns.to_string()).as_deref());
        offer.option("--resume", request.resume.as_deref());
        // The first alone keeps it from all side requests; the others are for older versions.
        for name in [
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
            "DISABLE_AUTOUPDATER",
            "DISABLE_TELEMETRY",
            "DISABLE_ERROR_REPORTING",
        ] {
            offer.env(name, "1");
        }
        offer.finish(request)
    }

    fn parser(&self, now: Timestamp) -> Box<dyn WireParser> {
        Box::new(JsonLines::new(wire::ClaudeFormat::new(now)))
    }
}

//! Gemini CLI.

use rehearsal_core::Timestamp;

use super::stream::JsonLines;
use super::{CommandLine, Driver, DriverKind, Program, WireParser};
use crate::{Permission, RunRequest};

mod document;
mod failure;
mod wire;

/// Drives Gemini CLI.
#[derive(Debug, Clone)]
pub struct GeminiDriver {
    program: Program,
}

impl GeminiDriver {
    /// A driver of this program.
    pub fn new(program: impl Into<Program>) -> Self {
        Self { program: program.into() }
    }
}

impl Driver for GeminiDriver {
    fn name(&self) -> &'static str {
        DriverKind::Gemini.as_str()
    }

    fn command(&self, request: &RunRequest) -> CommandLine {
        let mut offer = self.program.offer(DriverKind::Gemini);
        offer.flag("--output-format", &["stream-json"]);
        let mode = match request.permission {
            Permission::Plan => "plan",
            Permission::AcceptEdits => "auto_edit",
            Permission::Trust => "yolo",
        };
        offer.flag("--approval-mode", &[mode]);
        offer.option("--model", request.model.as_deref());
        offer.option("--resume", request.resume.as_deref());
        offer
            .lost(request.budget.usd.is_some(), "it does not tell its cost, so the cost limit has no effect");
        offer.lost(
            request.budget.turns.is_some(),
            "its turn limit can only be set in its settings, so this one has no effect",
        );
        offer.lost(
            request.budget.tokens.is_some(),
            "it tells its tokens only at the end, so the token limit cannot stop it",
        );
        // Else it starts itself anew, and the first process takes no signal.
        offer.env("GEMINI_CLI_NO_RELAUNCH", "1");
        offer.env("GEMINI_CLI_TRUST_WORKSPACE", "true");
        offer.finish_with_system_prompt_in_prompt(request)
    }

    fn parser(&self, now: Timestamp) -> Box<dyn WireParser> {
        Box::new(JsonLines::new(wire::GeminiFormat::new(now)))
    }
}

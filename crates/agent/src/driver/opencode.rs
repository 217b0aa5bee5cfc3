//! opencode.

use rehearsal_core::Timestamp;

use super::stream::JsonLines;
use super::{CommandLine, Driver, DriverKind, Program, WireParser};
use crate::{Permission, RunRequest};

mod wire;

/// Drives opencode.
#[derive(Debug, Clone)]
pub struct OpencodeDriver {
    program: Program,
}

impl OpencodeDriver {
    /// A driver of this program.
    pub fn new(program: impl Into<Program>) -> Self {
        Self { program: program.into() }
    }
}

impl Driver for OpencodeDriver {
    fn name(&self) -> &'static str {
        DriverKind::Opencode.as_str()
    }

    fn command(&self, request: &RunRequest) -> CommandLine {
        let mut offer = self.program.offer(DriverKind::Opencode);
        offer.args(&["run"]);
        offer.flag("--format", &["json"]);
        match request.permission {
            Permission::Plan => offer.flag("--agent", &["plan"]),
            // Its own rules allow edits unless its configuration says otherwise.
            Permission::AcceptEdits => {}
            Permission::Trust => offer.flag("--auto", &[]),
        }
        offer.option("--model", request.model.as_deref());
        offer.option("--session", request.resume.as_deref());
        // With a title it asks no second model for one.
        offer.flag("--title", &[&format!("rehearsal {}", request.run)]);
        offer.lost(request.budget.turns.is_some(), "it has no turn limit, so the turn limit has no effect");
        for name in ["OPENCODE_DISABLE_AUTOUPDATE", "OPENCODE_DISABLE_LSP_DOWNLOAD", "OPENCODE_DISABLE_SHARE"]
        {
            offer.env(name, "1");
        }
        offer.finish_with_system_prompt_in_prompt(request)
    }

    fn parser(&self, now: Timestamp) -> Box<dyn WireParser> {
        Box::new(JsonLines::new(wire::OpencodeFormat::new(now)))
    }
}

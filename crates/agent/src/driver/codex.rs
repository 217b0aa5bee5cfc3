//! Codex.

use rehearsal_core::Timestamp;

use super::offer::Offer;
use super::stream::JsonLines;
use super::{CommandLine, Driver, DriverKind, Program, WireParser};
use crate::{Permission, RunRequest};

mod wire;

/// Drives Codex.
#[derive(Debug, Clone)]
pub struct CodexDriver {
    program: Program,
}

impl CodexDriver {
    /// A driver of this program.
    pub fn new(program: impl Into<Program>) -> Self {
        Self { program: program.into() }
    }
}

impl Driver for CodexDriver {
    fn name(&self) -> &'static str {
        DriverKind::Codex.as_str()
    }

    fn command(&self, request: &RunRequest) -> CommandLine {
        let mut offer = self.program.offer(DriverKind::Codex);
        offer.args(&["exec"]);
        let resumed = request.resume.as_deref().filter(|_| offer.has("resume"));
        if let Some(thread) = resumed {
            offer.args(&["resume", thread]);
        }
        offer.flag("--json", &[]);
        permissions(&mut offer, request.permission, resumed.is_some());
        // Without the second it waits for a lost network for ever; waiting is our business.
        for feature in ["plugins", "unbounded_connection_retries"] {
            offer.flag("--disable", &[feature]);
        }
        for setting in ["analytics.enabled=false", "check_for_update_on_startup=false"] {
            offer.flag("--config", &[setting]);
        }
        offer.option("--model", request.model.as_deref());
        offer
            .lost(request.budget.usd.is_some(), "it does not tell its cost, so the cost limit has no effect");
        offer.lost(request.budget.turns.is_some(), "it has no turn limit, so the turn limit has no effect");
        offer.lost(
            request.budget.tokens.is_some(),
            "it tells its tokens only at the end, so the token limit cannot stop it",
        );
        offer.args(&["-"]);
        offer.finish_with_system_prompt_in_prompt(request)
    }

    fn parser(&self, now: Timestamp) -> Box<dyn WireParser> {
        Box::new(JsonLines::new(wire::CodexFormat::new(now)))
    }
}

/// `exec` never asks; the sandbox is all there is to set. `resume` has no `--sandbox`, but takes every setting.
fn permissions(offer: &mut Offer<'_>, permission: Permission, resumed: bool) {
    let mode = match permission {
        Permission::Trust => return offer.flag("--dangerously-bypass-approvals-and-sandbox", &[]),
        Permission::Plan => "read-only",
        Permission::AcceptEdits => "workspace-write",
    };
    if resumed {
        offer.flag("--config", &[&format!("sandbox_mode=\"{mode}\"")]);
    } else {
        offer.flag("--sandbox", &[mode]);
    }
}

//! Plain text, as any program prints it.

use std::fmt::Write as _;

use crate::mock::wire::{Fault, FaultKind, Lines, Tally, ToolCall, Wire};

pub(super) struct Plain;

impl Wire for Plain {
    fn agent(&self) -> &'static str {
        "mock-agent"
    }

    fn knows(&self, _: FaultKind) -> bool {
        true
    }

    fn begin(&mut self, _: &mut Lines) {}

    fn text(&mut self, text: &str, lines: &mut Lines) {
        lines.stdout.push_str(text);
        lines.stdout.push('\n');
    }

    fn tool(&mut self, _: &ToolCall, _: &mut Lines) {}

    fn end(&mut self, _: &Tally, _: &mut Lines) {}

    fn fail(&mut self, fault: &Fault, _: &Tally, lines: &mut Lines) -> i32 {
        let _ = writeln!(lines.stderr, "error: {}", fault.message(fault.kind.name()));
        1
    }
}

//! Any program as an agent: the prompt on its standard input, its text on its standard output.

use rehearsal_core::{Activity, Exit, Timestamp, WireReport, WireShape};

use super::bounds::{ACTIVITY_TEXT, END_OF_FINAL_TEXT, Ends, cut};
use super::lines::LineSplitter;
use super::offer::Offer;
use super::{CommandLine, Driver, DriverKind, WireParser};
use crate::{Permission, RunRequest};

/// Drives a program that knows nothing of agents.
#[derive(Debug, Clone)]
pub struct CommandDriver {
    program: String,
    args: Vec<String>,
}

impl CommandDriver {
    /// A driver of this program with these arguments.
    pub fn new(program: impl Into<String>, args: Vec<String>) -> Self {
        Self { program: program.into(), args }
    }
}

impl Driver for CommandDriver {
    fn name(&self) -> &'static str {
        DriverKind::Command.as_str()
    }

    fn command(&self, request: &RunRequest) -> CommandLine {
        let mut offer = Offer::new(&self.program, DriverKind::Command, None);
        offer.args(&self.args);
        offer.lost(request.model.is_some(), "a model cannot be chosen");
        offer.lost(request.resume.is_some(), "a session cannot be resumed");
        offer.lost(request.permission == Permission::Plan, "nothing keeps it from changing files");
        offer
            .lost(request.budget.usd.is_some(), "it does not tell its cost, so the cost limit has no effect");
        offer.lost(
            request.budget.tokens.is_some(),
            "it does not tell its tokens, so the token limit has no effect",
        );
        offer.lost(request.budget.turns.is_some(), "it has no turns, so the turn limit has no effect");
        offer.finish_with_system_prompt_in_prompt(request)
    }

    fn parser(&self, _: Timestamp) -> Box<dyn WireParser> {
        Box::new(PlainParser::default())
    }
}

struct PlainParser {
    lines: LineSplitter,
    end: Ends,
}

impl Default for PlainParser {
    fn default() -> Self {
        Self { lines: LineSplitter::new(), end: Ends::new(0, 2 * END_OF_FINAL_TEXT) }
    }
}

impl WireParser for PlainParser {
    fn push(&mut self, bytes: &[u8], out: &mut Vec<Activity>) {
        self.end.push(bytes);
        self.lines.push(bytes, |line| {
            if !line.bytes.trim_ascii().is_empty() {
                let start = &line.bytes[..line.bytes.len().min(2 * ACTIVITY_TEXT)];
                out.push(Activity::Text { text: cut(&String::from_utf8_lossy(start), ACTIVITY_TEXT) });
            }
        });
    }

    fn has_ended(&self) -> bool {
        false
    }

    fn finish(self: Box<Self>, _: Option<Exit>, _: &[u8]) -> WireReport {
        WireReport {
            final_text: self.end.into_text(),
            shape: WireShape::Unstructured,
            ..WireReport::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rehearsal_core::Promise;

    #[test]
    fn the_end_of_what_a_program_prints_is_its_final_text() {
        let mut parser = CommandDriver::new("sh", vec![]).parser(Timestamp(0));
        let mut out = Vec::new();
        for _ in 0..300 {
            parser.push(&[b'x'; 10_000], &mut out);
        }
        parser.push(b"\nDone. \xff<promise>COMPLETE</promise>", &mut out);
        let report = parser.finish(Some(Exit::Code(0)), b"");
        assert!(report.final_text.len() < 3 << 20);
        assert_eq!(Promise::find(&report.final_text), Some(Promise::Complete));
        assert_eq!(report.shape, WireShape::Unstructured);
        assert_eq!(out.len(), 1, "one line was complete");
    }
}

//! Any program as an agent: the prompt on its standard input, its text on its standard output.

use rehearsal_core::{Activity, Exit, Feature, WireReport, WireShape};

use super::stage::KEYS_OF_ALL;
use super::{AgentCli, Sessions, StageSetup};
use crate::driver::bounds::{ACTIVITY_TEXT, END_OF_FINAL_TEXT, Ends, cut};
use crate::driver::lines::LineSplitter;
use crate::driver::stream::Close;
use crate::driver::{CommandLine, Here, Offer, WireParser};
use crate::mock::wire::MockCli;
use crate::{OwnPlaces, Permission, RunRequest};

mod events;
mod mock;

use events::Events;

pub(super) static CLI: AgentCli = PLAIN;

pub(super) const PLAIN: AgentCli = AgentCli {
    name: "command",
    install: None,
    native_binaries: &[],
    subcommand: &[],
    flags: &[],
    command,
    parser: |here| Box::new(PlainParser::new(here)),
    sessions: Sessions { can_resume: false, reports_whole_session: false },
    variables: &[],
    places: |_| OwnPlaces::default(),
    vendor: None,
    stage: StageSetup::for_any_vendor,
    keys: KEYS_OF_ALL,
    requests: None,
    confines_itself: false,
    try_own_sandbox: None,
    mock: MockCli {
        version: concat!("mock-agent ", env!("CARGO_PKG_VERSION")),
        usage: "mock-agent [--script FILE] [--as AGENT] [-- …]",
        options: &[],
        wire: |_| Box::new(mock::Plain),
    },
};

fn command(mut offer: Offer<'_>, request: &RunRequest) -> CommandLine {
    offer.lost(request.model.is_some(), Feature::Model);
    offer.lost(request.resume.is_some(), Feature::Resume);
    offer.lost(request.permission == Permission::Plan, Feature::ReadOnly);
    offer.lost(request.budget.usd.is_some(), Feature::CostLimit);
    offer.lost(request.budget.tokens.is_some(), Feature::TokenLimit);
    offer.lost(request.budget.turns.is_some(), Feature::TurnLimit);
    offer.finish_with_system_prompt_in_prompt(request)
}

struct PlainParser {
    here: Here,
    lines: LineSplitter,
    end: Ends,
    events: Events,
}

impl PlainParser {
    fn new(here: Here) -> Self {
        let end = Ends::new(0, 2 * END_OF_FINAL_TEXT);
        Self { here, lines: LineSplitter::new(), end, events: Events::default() }
    }
}

impl WireParser for PlainParser {
    fn push(&mut self, bytes: &[u8], out: &mut Vec<Activity>) {
        self.end.push(bytes);
        let events = &mut self.events;
        self.lines.push(bytes, |line| {
            if events.read(line.bytes, out) {
                return;
            }
            if !line.bytes.trim_ascii().is_empty() {
                let start = &line.bytes[..line.bytes.len().min(2 * ACTIVITY_TEXT)];
                out.push(Activity::Text { text: cut(&String::from_utf8_lossy(start), ACTIVITY_TEXT) });
            }
        });
    }

    fn has_ended(&self) -> bool {
        false
    }

    fn finish(mut self: Box<Self>, exit: Option<Exit>, stderr: &[u8]) -> WireReport {
        let events = &mut self.events;
        self.lines.finish(|line| _ = events.read(line.bytes, &mut Vec::new()));
        let final_text = self.end.into_text();
        let silent = final_text.trim().is_empty();
        let close = Close { exit, stderr: String::from_utf8_lossy(stderr).into_owned(), silent };
        let mut report = WireReport { final_text, shape: WireShape::Unstructured, ..WireReport::default() };
        self.events.complete(&mut report, &close, &self.here);
        report
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rehearsal_core::{Promise, Timestamp};

    #[test]
    fn the_end_of_what_a_program_prints_is_its_final_text() {
        let mut parser = (CLI.parser)(Here::at(Timestamp(0)));
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

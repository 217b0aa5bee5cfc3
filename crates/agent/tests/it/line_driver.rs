//! The smallest driver there is: any program, whose output is read line by line. `END` is its final event,
//! `USAGE n` tells tokens, anything else is text.

use rehearsal_agent::driver::Program;
use rehearsal_agent::{AgentCli, Driver, WireParser};
use rehearsal_core::{Activity, Exit, Tokens, WireEnd, WireReport, WireShape};

/// As much of a line, and of the whole, as is kept.
const KEPT: usize = 64 << 10;

pub(crate) static LINE: AgentCli = AgentCli {
    name: "line",
    command: |offer, request| offer.finish(request),
    parser: |_| Box::<LineParser>::default(),
    ..AgentCli::PLAIN
};

pub(crate) fn line_driver(program: &str, args: impl IntoIterator<Item = String>) -> Driver {
    Driver::new(&LINE, Program::from(program).with_args(args.into_iter().collect()))
}

#[derive(Default)]
struct LineParser {
    line: Vec<u8>,
    text: String,
    ended: bool,
}

impl LineParser {
    fn take_line(&mut self, out: &mut Vec<Activity>) {
        let line = String::from_utf8_lossy(&std::mem::take(&mut self.line)).into_owned();
        if line == "END" {
            self.ended = true;
        } else if let Some(tokens) = line.strip_prefix("USAGE ").and_then(|count| count.parse().ok()) {
            out.push(Activity::Usage {
                tokens: Tokens { input: tokens, ..Tokens::default() },
                cost_usd: None,
            });
        } else if !line.is_empty() {
            if self.text.len() < KEPT {
                self.text.push_str(&line);
                self.text.push('\n');
            }
            out.push(Activity::Text { text: line });
        }
    }
}

impl WireParser for LineParser {
    fn push(&mut self, bytes: &[u8], out: &mut Vec<Activity>) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let is_whole = piece.ends_with(b"\n");
            let content = piece.strip_suffix(b"\n").unwrap_or(piece);
            let room = KEPT.saturating_sub(self.line.len());
            self.line.extend_from_slice(&content[..content.len().min(room)]);
            if is_whole {
                self.take_line(out);
            }
        }
    }

    fn has_ended(&self) -> bool {
        self.ended
    }

    fn finish(mut self: Box<Self>, _exit: Option<Exit>, stderr: &[u8]) -> WireReport {
        self.take_line(&mut Vec::new());
        if self.text.is_empty() {
            self.text = String::from_utf8_lossy(stderr).into_owned();
        }
        WireReport {
            shape: WireShape::Unstructured,
            final_text: self.text,
            end: self.ended.then_some(WireEnd::Success),
            ..WireReport::default()
        }
    }
}

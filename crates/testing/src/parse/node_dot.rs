//! `node --test` with its `dot` reporter: a character a test or suite, then the failed ones.

use super::by_line::LineReader;
use super::{Head, Stream, js_failure, node_spec};
use crate::{Event, Failure, Finished, HeadTail, Sink, TestId, TestStatus};

/// Bytes at each end of one failure.
const DETAILS: usize = 8 << 10;

pub(super) fn looks_like(head: &Head<'_>) -> bool {
    let mut lines = head.text.lines().filter(|line| !line.is_empty());
    lines.next().is_some_and(is_dots)
        && head.text.contains("\nFailed tests:\n")
        && lines.all(|line| is_dots(line) || line == "Failed tests:" || line.starts_with(['✖', ' ']))
}

#[derive(Debug, Default)]
pub(super) struct NodeDot {
    good: u64,
    bad: u64,
    listed: bool,
    entry: Option<(String, HeadTail)>,
}

impl LineReader for NodeDot {
    fn line(&mut self, _: Stream, line: &str, sink: &mut dyn Sink) {
        if !self.listed && is_dots(line) {
            self.good += line.bytes().filter(|byte| *byte == b'.').count() as u64;
            self.bad += line.bytes().filter(|byte| *byte == b'X').count() as u64;
        } else if line == "Failed tests:" && self.bad > 0 {
            self.listed = true;
        } else if let Some(title) = line.strip_prefix("✖ ").filter(|_| self.listed) {
            self.end_entry(sink);
            self.entry = Some((title.to_owned(), HeadTail::new(DETAILS)));
        } else if let Some((_, text)) = &mut self.entry {
            text.push_line(line.strip_prefix("  ").unwrap_or(line));
        }
    }

    fn end(&mut self, sink: &mut dyn Sink) {
        self.end_entry(sink);
        if self.good > 0 {
            sink.event(Event::Counted { status: TestStatus::Pass, count: self.good });
        }
        if self.bad > 0 && !self.listed {
            sink.event(Event::Counted { status: TestStatus::Fail, count: self.bad });
        }
        if self.good + self.bad > 0 {
            sink.event(Event::Ended { counted: None });
        }
    }
}

impl NodeDot {
    /// A suite fails with its tests, and a test that is still to do may fail: neither counts.
    fn end_entry(&mut self, sink: &mut dyn Sink) {
        let Some((title, text)) = self.entry.take() else { return };
        let text = text.into_text();
        let said = text.trim().trim_matches('\'');
        let (name, rest) = title.rsplit_once(" (").unwrap_or((&title, ""));
        if said.ends_with("subtest failed") || said.ends_with("subtests failed") {
            return;
        }
        if said == "test failed" && node_spec::is_file(name) {
            return sink.event(Event::Problem(node_spec::broken_file(name, "")));
        }
        let test = TestId { suite: "", name };
        if rest.contains("ms) # ") {
            return sink.event(Event::Finished(Finished::new(test, TestStatus::Skip, 0)));
        }
        let (message, stack) = js_failure::message_and_stack(&text);
        let message = message.trim().trim_matches('\'');
        let (class, bare) = js_failure::class_and_message(message);
        let failure = Failure {
            kind: Some(js_failure::kind_of(class, bare)),
            message,
            stack,
            at: js_failure::place_of(stack).unwrap_or_default(),
            ..Failure::default()
        };
        sink.event(Event::Finished(Finished::new(test, TestStatus::Fail, 0).failure(failure)));
    }
}

fn is_dots(line: &str) -> bool {
    !line.is_empty() && line.bytes().all(|byte| matches!(byte, b'.' | b'X'))
}

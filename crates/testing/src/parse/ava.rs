//! What AVA prints for people: a line a test, then each failure at length, then counts.

use super::frames::{Deepest, place_in};
use super::{Head, Parser, Stream};
use crate::{
    Event, Failure, FailureKind, Finished, HeadTail, Line, Lines, Place, Problem, ProblemScope, Sink, TestId,
    TestStatus, strip_ansi,
};

/// Failures that may wait for their details.
const MOST_WAITING: usize = 1000;
/// The line above and below the details, by version and terminal.
const RULES: [&str; 3] = ["─", "---", "-"];

/// Whether a text is AVA's.
pub(super) fn looks_like(head: &Head<'_>) -> bool {
    let text = head.text;
    let result = text.lines().any(|line| {
        let line = line.trim_start();
        ["✘ [fail]: ", "✖ [fail]: ", "- [skip] ", "- [todo] ", "✔ [expected fail] "]
            .iter()
            .any(|start| line.starts_with(start))
    });
    let counted = text.lines().any(|line| read_count(line).is_some());
    let ruled = text.lines().any(|line| line.trim() == "─");
    result || counted && ruled
}

#[derive(Debug, Default)]
pub(super) struct Ava {
    out: Lines,
    err: Lines,
    state: State,
}

#[derive(Debug, Default)]
struct State {
    part: Part,
    /// Lines of tests that failed, each with its name and perhaps the beginning of its reason.
    waiting: Vec<String>,
    /// The failure whose details come in.
    open: Option<(String, HeadTail)>,
    blank: bool,
    counted: bool,
    /// What the counts say, and what we saw.
    passed: [u64; 2],
    failed: [u64; 2],
    /// The file of the last failure that has a place.
    file: Option<String>,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Part {
    #[default]
    Results,
    Details,
}

impl Parser for Ava {
    fn feed(&mut self, stream: Stream, bytes: &[u8], sink: &mut dyn Sink) {
        let state = &mut self.state;
        match stream {
            Stream::Out => self.out.feed(bytes, |line| state.line(line, sink)),
            Stream::Err => self.err.feed(bytes, |_| {}),
        }
    }

    fn finish(&mut self, sink: &mut dyn Sink) {
        let state = &mut self.state;
        self.out.finish(|line| state.line(line, sink));
        state.finish(sink);
    }
}

impl State {
    fn line(&mut self, line: Line<'_>, sink: &mut dyn Sink) {
        let text = line.text();
        let plain = strip_ansi(&text);
        let line = plain.trim_end();
        let inner = line.trim_start();
        let indented = line.len() - inner.len() == 2;
        let blank = std::mem::replace(&mut self.blank, line.is_empty());
        if indented && RULES[..2].contains(&inner) {
            self.flush(sink);
            self.part = Part::Details;
        } else if let Some((count, what)) =
            read_count(line).filter(|_| self.part == Part::Details && blank || self.counted)
        {
            self.flush(sink);
            self.count(count, what, sink);
        } else if self.part == Part::Results {
            if indented {
                self.result(inner, sink);
            }
        } else if indented && blank && self.is_waiting(inner) {
            self.flush(sink);
            self.open = Some((inner.to_owned(), HeadTail::new(8 << 10)));
        } else if let Some((_, details)) = &mut self.open {
            details.push(line.get(2..).unwrap_or_default());
            details.push("\n");
        } else if indented {
            tell_failed_outside(inner, sink);
        }
    }

    fn result(&mut self, line: &str, sink: &mut dyn Sink) {
        let bad = ["✘ ", "✖ ", "× "].iter().find_map(|mark| line.strip_prefix(mark));
        let good = ["✔ ", "√ "].iter().find_map(|mark| line.strip_prefix(mark));
        if let Some(bad) = bad {
            match bad.strip_prefix("[fail]: ") {
                Some(failed) if self.waiting.len() < MOST_WAITING => self.waiting.push(failed.to_owned()),
                Some(failed) => self.tell_failed(failed, "", sink),
                None => tell_failed_outside(bad, sink),
            }
        } else if let Some(good) = good {
            let name = good.strip_prefix("[expected fail] ").unwrap_or(good);
            let (name, ms) = timed(name);
            self.passed[1] += 1;
            sink.event(Event::Finished(Finished::new(TestId { suite: "", name }, TestStatus::Pass, ms)));
        } else if let Some(left_out) = line.strip_prefix("- ") {
            let known = left_out.strip_prefix("[skip] ").or_else(|| left_out.strip_prefix("[todo] "));
            if let Some(name) = known {
                sink.event(Event::Finished(Finished::new(TestId { suite: "", name }, TestStatus::Skip, 0)));
            }
        }
    }

    /// Whether this is the name of a test that failed and was not explained yet.
    fn is_waiting(&self, name: &str) -> bool {
        !name.is_empty() && self.waiting.iter().any(|waiting| begins_with_name(waiting, name))
    }

    fn flush(&mut self, sink: &mut dyn Sink) {
        let Some((name, details)) = self.open.take() else { return };
        if let Some(at) = self.waiting.iter().position(|waiting| begins_with_name(waiting, &name)) {
            self.waiting.remove(at);
        }
        self.tell_failed(&name, details.into_text().trim(), sink);
    }

    fn tell_failed(&mut self, name: &str, details: &str, sink: &mut dyn Sink) {
        self.failed[1] += 1;
        let stack = details.find("\n    at ").map_or("", |at| details[at..].trim_matches('\n'));
        let message = details[..details.len() - stack.len()].trim();
        // A snippet's heading is the only place that names the assertion; a frame is as good.
        let heading = message.lines().next().filter(|line| !line.contains(' ')).unwrap_or_default();
        let at = place_in(heading, Deepest::First).or_else(|| place_in(stack, Deepest::First));
        self.file = at
            .and_then(|at| at.file)
            .filter(|file| file.contains("test"))
            .map(str::to_owned)
            .or(self.file.take());
        // Without a file before the names there is only one, so a failure without a place is in it too.
        let only = self.file.as_deref().filter(|_| !name.contains(" › "));
        let thrown = ["Error thrown in test", "Rejected promise returned by test", "Error: "]
            .iter()
            .any(|start| message.starts_with(start));
        let failure = Failure {
            kind: Some(if thrown { FailureKind::Error } else { FailureKind::Assertion }),
            message,
            stack,
            at: at.unwrap_or(Place { file: only, line: None }),
            ..Failure::default()
        };
        let test = TestId { suite: "", name };
        sink.event(Event::Finished(Finished::new(test, TestStatus::Fail, 0).failure(failure)));
    }

    /// The counts at the end: they are its end, and must be what we saw.
    fn count(&mut self, count: u64, what: &str, sink: &mut dyn Sink) {
        if !std::mem::replace(&mut self.counted, true) {
            self.tell_unexplained(sink);
        }
        match what {
            "passed" => self.passed[0] = self.passed[0].saturating_add(count),
            "failed" => self.failed[0] = self.failed[0].saturating_add(count),
            _ => {}
        }
    }

    fn tell_unexplained(&mut self, sink: &mut dyn Sink) {
        for waiting in std::mem::take(&mut self.waiting) {
            self.tell_failed(&waiting, "", sink);
        }
    }

    fn finish(&mut self, sink: &mut dyn Sink) {
        self.flush(sink);
        self.tell_unexplained(sink);
        if !self.counted {
            return;
        }
        let ([failed, saw], [passed, saw_passed]) = (self.failed, self.passed);
        if failed != saw || (passed > 0 && passed > saw_passed) {
            let complaint =
                format!("AVA counted {failed} failed and {passed} passed, {saw} and {saw_passed} were seen");
            sink.event(Event::Complaint(&complaint));
        }
        sink.event(Event::Ended { counted: None });
    }
}

/// Something failed that is no test: a file, the whole run.
fn tell_failed_outside(line: &str, sink: &mut dyn Sink) {
    let line = ["✘ ", "✖ ", "× "].iter().find_map(|mark| line.strip_prefix(mark)).unwrap_or(line);
    let outside = [
        "exited with a non-zero exit code",
        "exited due to ",
        "No tests found in ",
        "Uncaught exception in ",
        "Unhandled rejection in ",
        "Couldn’t find any files to test",
        "Couldn't find any files to test",
        "Timed out while running tests",
        "Exited because no new tests completed",
        "Internal error",
    ];
    if !outside.iter().any(|part| line.contains(part)) {
        return;
    }
    let file = line.split(' ').find(|word| super::frames::is_source(word)).map(str::to_owned);
    let scope = if file.is_some() { ProblemScope::Suite } else { ProblemScope::Run };
    let kind = if line.contains("xited") { FailureKind::Crash } else { FailureKind::Error };
    sink.event(Event::Problem(
        Problem::new(scope, file.clone().unwrap_or_default(), Some(kind), line).placed(file, None),
    ));
}

fn begins_with_name(line: &str, name: &str) -> bool {
    line.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

/// `name (1.2s)`.
fn timed(name: &str) -> (&str, u64) {
    let parts = name.strip_suffix(')').and_then(|name| name.rsplit_once(" ("));
    let read = parts.and_then(|(before, time)| {
        let ms = match time.strip_suffix("ms") {
            Some(ms) => ms.parse().ok()?,
            None => seconds(time.strip_suffix('s')?)?,
        };
        Some((before, ms))
    });
    read.unwrap_or((name, 0))
}

fn seconds(text: &str) -> Option<u64> {
    let (whole, tenths) = text.split_once('.').unwrap_or((text, "0"));
    Some(
        whole
            .parse::<u64>()
            .ok()?
            .saturating_mul(1000)
            .saturating_add(tenths.get(..1)?.parse::<u64>().ok()? * 100),
    )
}

/// `3 tests failed`, `1 known failure`, `2 tests passed`.
fn read_count(line: &str) -> Option<(u64, &str)> {
    let (count, what) = line.strip_prefix("  ")?.trim_end().split_once(' ')?;
    let count = count.parse().ok()?;
    let what = what.strip_prefix("tests ").or_else(|| what.strip_prefix("test ")).unwrap_or(what);
    let known = [
        "failed",
        "passed",
        "skipped",
        "todo",
        "remaining",
        "known failure",
        "known failures",
        "uncaught exception",
        "uncaught exceptions",
        "unhandled rejection",
        "unhandled rejections",
    ];
    let passed = what.starts_with("passed");
    (passed || known.contains(&what)).then_some((count, if passed { "passed" } else { what }))
}

#[cfg(test)]
mod tests {
    use crate::parse::retelling::retold;
    use insta::assert_snapshot;

    #[test]
    fn a_name_is_told_from_the_reason_behind_it_by_the_details() {
        let text = "\n  ✔ a › good (1.2s)\n  ✘ [fail]: a › bad Error thrown in test\n  ─\n\n  a › bad\n\n  Error thrown in test:\n\n  Error: boom\n      at file:///w/test/a.js:3:1\n\n  ─\n\n  1 test failed\n";
        assert_snapshot!(retold("ava-text", text, ""), @r"
        pass a › good
        fail a › bad @ test/a.js:3 | Error thrown in test:
        ended
        ");
    }

    #[test]
    fn counts_that_differ_from_what_was_seen_are_complained_about() {
        let text = "  ✔ good\n  ─\n\n  2 tests failed\n";
        assert_snapshot!(retold("ava-text", text, ""), @r"
        pass good
        complaint | AVA counted 2 failed and 0 passed, 0 and 1 were seen
        ended
        ");
    }
}

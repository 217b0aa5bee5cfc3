//! What bats prints for people: a line a test, what went wrong below it, and a count at the end.

use super::frames::{Deepest, place_in};
use super::{Head, Parser, Stream};
use crate::{
    Event, Failure, FailureKind, Finished, HeadTail, Line, Lines, Problem, ProblemScope, Sink, TestId,
    TestStatus, strip_ansi,
};

/// Whether a text is bats' pretty output. Others use its marks too, but none has files that end so.
pub(super) fn looks_like(head: &Head<'_>) -> bool {
    let mut lines = head.text.lines();
    let marked = lines.clone().any(|line| [" ✓ ", " ✗ "].iter().any(|mark| line.contains(mark)));
    marked && lines.any(|line| line.trim_end().ends_with(".bats") || line.contains("in test file "))
}

#[derive(Debug, Default)]
pub(super) struct Bats {
    out: Lines,
    err: Lines,
    state: State,
}

#[derive(Debug, Default)]
struct State {
    file: String,
    failed: Option<Failed>,
    ended: bool,
}

/// A test that failed, while its reasons come in.
#[derive(Debug)]
struct Failed {
    name: String,
    ms: u64,
    text: HeadTail,
}

impl Parser for Bats {
    fn feed(&mut self, stream: Stream, bytes: &[u8], sink: &mut dyn Sink) {
        let state = &mut self.state;
        match stream {
            Stream::Out => self.out.feed(bytes, |line| state.line(line, sink)),
            // Only warnings about the way in which tests are written.
            Stream::Err => self.err.feed(bytes, |_| {}),
        }
    }

    fn finish(&mut self, sink: &mut dyn Sink) {
        let state = &mut self.state;
        self.out.finish(|line| state.line(line, sink));
        state.flush(sink);
    }
}

impl State {
    fn line(&mut self, line: Line<'_>, sink: &mut dyn Sink) {
        let text = line.text();
        let plain = strip_ansi(after_rewrites(&text));
        let line = plain.trim_end();
        if self.ended {
            return;
        }
        if let Some(counted) = read_summary(line) {
            self.flush(sink);
            self.ended = true;
            sink.event(Event::Ended { counted: Some(counted) });
        } else if let Some(result) = read_result(line) {
            self.flush(sink);
            self.result(&result, sink);
        } else if let Some(failed) = self.failed.as_mut().filter(|_| line.starts_with("   ")) {
            failed.text.push(&line[3..]);
            failed.text.push("\n");
        } else if line.ends_with(".bats") && !line.starts_with(' ') {
            self.flush(sink);
            line.clone_into(&mut self.file);
        }
    }

    fn result(&mut self, result: &Told<'_>, sink: &mut dyn Sink) {
        let test = TestId { suite: &self.file, name: result.name };
        match result.status {
            TestStatus::Fail => {
                let name = result.name.to_owned();
                self.failed = Some(Failed { name, ms: result.ms, text: HeadTail::new(8 << 10) });
            }
            status => {
                let failure = Failure { message: result.why, ..Failure::default() };
                sink.event(Event::Finished(Finished::new(test, status, result.ms).failure(failure)));
            }
        }
    }

    fn flush(&mut self, sink: &mut dyn Sink) {
        let Some(failed) = self.failed.take() else { return };
        let text = failed.text.into_text();
        let at = place_in(&text, Deepest::First).unwrap_or_default();
        if failed.name == "setup_file failed" || failed.name == "teardown_file failed" {
            let setup = failed.name.starts_with("setup");
            sink.event(Event::Problem(
                Problem::new(
                    ProblemScope::Suite,
                    at.file.unwrap_or(&self.file),
                    Some(if setup { FailureKind::Setup } else { FailureKind::Teardown }),
                    format!("{}\n{text}", failed.name),
                )
                .at(at),
            ));
            return;
        }
        let failure =
            Failure { kind: Some(FailureKind::Assertion), message: &text, at, ..Failure::default() };
        let test = TestId { suite: &self.file, name: &failed.name };
        sink.event(Event::Finished(Finished::new(test, TestStatus::Fail, failed.ms).failure(failure)));
    }
}

struct Told<'a> {
    status: TestStatus,
    name: &'a str,
    why: &'a str,
    ms: u64,
}

/// ` ✓ name [12]`, ` ✗ name`, ` - name (skipped: why)`.
fn read_result(line: &str) -> Option<Told<'_>> {
    let line = line.strip_prefix(' ')?.trim_end();
    let (status, rest) = [("✓ ", TestStatus::Pass), ("✗ ", TestStatus::Fail), ("- ", TestStatus::Skip)]
        .into_iter()
        .find_map(|(mark, status)| Some((status, line.strip_prefix(mark)?)))?;
    let timed = rest.strip_suffix(']').and_then(|rest| rest.rsplit_once(" ["));
    let (rest, ms) = match timed.and_then(|(name, ms)| Some((name, ms.parse().ok()?))) {
        Some(timed) => timed,
        None => (rest, 0),
    };
    let (name, why) = match (status, rest.rsplit_once(" (skipped")) {
        (TestStatus::Skip, Some((name, why))) => {
            (name, why.trim_start_matches([':', ' ']).trim_end_matches(')'))
        }
        (TestStatus::Skip, None) => return None,
        _ => (rest, ""),
    };
    Some(Told { status, name, why, ms })
}

/// `6 tests, 3 failures, 1 skipped`: how many tests.
fn read_summary(line: &str) -> Option<u64> {
    let (tests, rest) = line.split_once(" test")?;
    let rest = rest.strip_prefix('s').unwrap_or(rest).strip_prefix(", ")?;
    tests.parse().ok().filter(|_| rest.contains(" failure"))
}

/// On a terminal a line is written again when its test ends: what stands after the last return to its beginning
/// counts.
fn after_rewrites(line: &str) -> &str {
    line.rsplit("\x1b[1G").next().unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use crate::parse::retelling::retold;
    use insta::assert_snapshot;

    #[test]
    fn results_are_read_with_and_without_a_terminal() {
        let text = "x.bats\n ✓ good [12]\n\x1b[1G   bad\x1b[K\x1b[77G2/3\x1b[2G\x1b[1G ✗ bad\x1b[K\n   (in test file test/x.bats, line 9)\n     `false' failed\n - later (skipped: why)\n\n3 tests, 1 failure, 1 skipped\n";
        assert_snapshot!(retold("bats-text", text, ""), @r"
        pass good
        fail bad @ test/x.bats:9 | (in test file test/x.bats, line 9)
        skip later | why
        ended
        ");
    }
}

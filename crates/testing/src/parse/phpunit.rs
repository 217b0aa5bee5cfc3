//! What `PHPUnit` prints, versions 8 to 12.

use super::by_line::LineReader;
use super::frames::{self, Deepest};
use super::wording::{compared, kind_of};
use super::{Head, Stream};
use crate::{
    Event, Failure, FailureKind, Finished, HeadTail, Problem, ProblemScope, Sink, TestId, TestStatus,
};

const ROOM: usize = 8 << 10;

/// Whether this is such a text.
pub(super) fn looks_like(head: &Head<'_>) -> bool {
    let is_header = |line: &str| line.starts_with("PHPUnit ") && line.contains(" by Sebastian Bergmann");
    let is_fatal = head.text.starts_with("PHP Fatal error: ") || head.text.starts_with("PHP Parse error: ");
    head.text.lines().any(is_header) || (is_fatal && head.text.contains("/PHPUnit/"))
}

#[derive(Debug)]
pub(super) struct Phpunit {
    section: Section,
    item: Option<Item>,
    progress: Progress,
    failed: u64,
    ended: bool,
    /// An error of PHP itself, which ends everything.
    fatal: Option<Problem>,
    /// What stands after the header of a run that never began.
    text: HeadTail,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Section {
    #[default]
    Progress,
    /// A list of what went wrong.
    List(What),
    /// Whatever else is listed: risky tests, deprecations.
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Errors,
    Failures,
    Skipped,
}

/// The marks of tests, for a run that never comes to its summary.
#[derive(Debug, Default)]
struct Progress {
    passed: u64,
    failed: u64,
    skipped: u64,
    declared: bool,
}

#[derive(Debug)]
struct Item {
    name: String,
    what: What,
    text: HeadTail,
}

impl Default for Phpunit {
    fn default() -> Self {
        Self {
            section: Section::Progress,
            item: None,
            progress: Progress::default(),
            failed: 0,
            ended: false,
            fatal: None,
            text: HeadTail::new(ROOM),
        }
    }
}

impl LineReader for Phpunit {
    fn line(&mut self, stream: Stream, line: &str, sink: &mut dyn Sink) {
        if self.fatal.is_none() {
            self.fatal = fatal(line);
        }
        if stream == Stream::Err {
            return;
        }
        if is_time(line) {
            if self.section != Section::Progress {
                sink.event(Event::Complaint("the output has more than one end"));
            }
            self.section = Section::Other;
        }
        if self.ended {
            return;
        }
        if let Some(version) = line.strip_prefix("PHPUnit ").and_then(|rest| rest.split_once(" by Sebastian"))
        {
            return sink.event(Event::Version(version.0));
        }
        // Before that line, what looks like a list or a summary was printed by a test.
        let is_over = self.section != Section::Progress;
        if let Some(section) = section(line).filter(|_| is_over) {
            self.end_item(sink);
            self.section = section;
        } else if let Some(counts) = summary(line).filter(|_| is_over) {
            self.end_item(sink);
            self.conclude(&counts, sink);
        } else if line == "No tests executed!" {
            self.ended = true;
            sink.event(Event::Ended { counted: None });
        } else {
            match self.section {
                Section::Progress => self.progress(line, sink),
                Section::List(what) => self.list(line, what, sink),
                Section::Other => {}
            }
        }
    }

    fn end(&mut self, sink: &mut dyn Sink) {
        if self.ended {
            return;
        }
        self.end_item(sink);
        for (status, count) in [
            (TestStatus::Pass, self.progress.passed),
            (TestStatus::Fail, self.progress.failed.saturating_sub(self.failed)),
            (TestStatus::Skip, self.progress.skipped),
        ] {
            if count > 0 {
                sink.event(Event::Counted { status, count });
            }
        }
        let began = self.progress.passed + self.progress.failed + self.progress.skipped > 0;
        let text = std::mem::replace(&mut self.text, HeadTail::new(0)).into_text();
        let text = text.trim();
        if let Some(fatal) = self.fatal.take() {
            sink.event(Event::Problem(fatal));
        } else if !began && !text.is_empty() {
            sink.event(Event::Problem(of_run(text, Some(FailureKind::Config))));
        }
    }
}

impl Phpunit {
    fn progress(&mut self, line: &str, sink: &mut dyn Sink) {
        let (marks, total) = marks(line);
        if marks.is_empty() {
            self.text.push_line(line);
            return;
        }
        for mark in marks.bytes() {
            match mark {
                b'F' | b'E' => self.progress.failed += 1,
                b'S' | b'I' => self.progress.skipped += 1,
                _ => self.progress.passed += 1,
            }
        }
        if let Some(total) = total.filter(|_| !self.progress.declared) {
            self.progress.declared = true;
            sink.event(Event::Declared(total));
        }
    }

    fn list(&mut self, line: &str, what: What, sink: &mut dyn Sink) {
        if let Some(name) = item(line) {
            self.end_item(sink);
            self.item = Some(Item { name: name.to_owned(), what, text: HeadTail::new(ROOM) });
        } else if is_end(line) {
            self.end_item(sink);
        } else if let Some(item) = &mut self.item {
            item.text.push_line(line);
        }
    }

    fn end_item(&mut self, sink: &mut dyn Sink) {
        let Some(item) = self.item.take() else { return };
        // What was left out has a name only in some versions, and is counted in all.
        if item.what == What::Skipped {
            return;
        }
        self.failed += 1;
        let text = item.text.into_text();
        let (message, stack) = split_frames(&text);
        let (expected, actual) = compared(message).unzip();
        let other = if item.what == What::Errors { FailureKind::Error } else { FailureKind::Assertion };
        let by_words =
            kind_of("", message).filter(|kind| item.what == What::Errors || *kind != FailureKind::NullDeref);
        let failure = Failure {
            kind: by_words.or(Some(other)),
            message,
            stack,
            at: frames::place_in(stack, Deepest::First)
                .or_else(|| frames::place_in(message, Deepest::First))
                .unwrap_or_default(),
            expected,
            actual,
        };
        let suite = item.name.split("::").next().unwrap_or_default();
        let test = TestId { suite, name: &item.name };
        sink.event(Event::Finished(Finished::new(test, TestStatus::Fail, 0).failure(failure)));
        sink.event(Event::SuiteEnded(suite));
    }

    fn conclude(&mut self, counts: &Counts, sink: &mut dyn Sink) {
        let passed = counts.tests.saturating_sub(counts.failed).saturating_sub(counts.skipped);
        for (status, count) in [
            (TestStatus::Pass, passed),
            (TestStatus::Fail, counts.failed.saturating_sub(self.failed)),
            (TestStatus::Skip, counts.skipped),
        ] {
            if count > 0 {
                sink.event(Event::Counted { status, count });
            }
        }
        self.ended = true;
        sink.event(Event::Ended { counted: Some(counts.tests) });
    }
}

/// What stands after the last item of a list.
fn is_end(line: &str) -> bool {
    matches!(line, "--" | "ERRORS!" | "FAILURES!" | "WARNINGS!") || line.starts_with("OK, but ")
}

/// `Time: 00:00.039, Memory: 6.00 MB`, which stands between the progress and the lists.
fn is_time(line: &str) -> bool {
    line.starts_with("Time: ") && line.contains(", Memory: ")
}

/// `There were 4 failures:`.
fn section(line: &str) -> Option<Section> {
    let rest = line.strip_suffix(':')?;
    let rest = rest.strip_prefix("There was ").or_else(|| rest.strip_prefix("There were "));
    let Some(rest) = rest else {
        let triggered = line
            .split_once(" triggered ")
            .is_some_and(|(tests, _)| tests.ends_with(" test") || tests.ends_with(" tests"));
        return triggered.then_some(Section::Other);
    };
    let (_, what) = frames::number(rest)?;
    Some(match what.trim() {
        "error" | "errors" => Section::List(What::Errors),
        "failure" | "failures" => Section::List(What::Failures),
        "skipped test" | "skipped tests" | "incomplete test" | "incomplete tests" => {
            Section::List(What::Skipped)
        }
        _ => Section::Other,
    })
}

/// `2) CartTest::testData with data set "x" ('x')`.
fn item(line: &str) -> Option<&str> {
    let (_, rest) = frames::number(line)?;
    let name = rest.strip_prefix(") ")?;
    let data = name.find(" with data set ").or_else(|| name.find(" with data ("));
    // The values of a data set are no part of its name.
    let end = match data {
        Some(at) if name[at..].starts_with(" with data (") => at,
        Some(at) => {
            let set = &name[at + 15..];
            let quoted = set.strip_prefix('"').and_then(|set| set.find("\" (").map(|end| end + 2));
            let length = quoted.or_else(|| set.find(" (")).unwrap_or(set.len());
            at + 15 + length
        }
        None => name.len(),
    };
    name.contains("::").then(|| &name[..end])
}

#[derive(Debug)]
struct Counts {
    tests: u64,
    failed: u64,
    skipped: u64,
}

/// `OK (12 tests, 8 assertions)`, or `Tests: 12, Assertions: 8, Errors: 1, Failures: 4, Skipped: 1.`
fn summary(line: &str) -> Option<Counts> {
    if let Some(rest) = line.strip_prefix("OK (") {
        let (tests, rest) = frames::number(rest)?;
        return (rest.starts_with(" test") && rest.ends_with(')')).then_some(Counts {
            tests: u64::from(tests),
            failed: 0,
            skipped: 0,
        });
    }
    let mut counts = Counts { tests: 0, failed: 0, skipped: 0 };
    let parts = line.strip_prefix("Tests: ").filter(|rest| rest.contains(", Assertions: "))?;
    for (at, part) in parts.trim_end_matches('.').split(", ").enumerate() {
        let (what, count) = if at == 0 { ("Tests", part) } else { part.split_once(": ")? };
        let count: u64 = count.parse().ok()?;
        match what {
            "Tests" => counts.tests = count,
            "Errors" | "Failures" => counts.failed = counts.failed.saturating_add(count),
            "Skipped" | "Incomplete" => counts.skipped = counts.skipped.saturating_add(count),
            _ => {}
        }
    }
    Some(counts)
}

/// The marks of a line of progress, and how many tests there are in all: `.FES  12 / 12 (100%)`.
fn marks(line: &str) -> (&str, Option<u64>) {
    let end = line.find(|c: char| !".FESIRWDN".contains(c)).unwrap_or(line.len());
    let (marks, rest) = line.split_at(end);
    let rest = rest.trim();
    if rest.is_empty() {
        return (marks, None);
    }
    let total = rest.strip_suffix("%)").and_then(|rest| rest.split_once(" / "));
    match total.and_then(|(_, total)| total.split(' ').next()?.parse().ok()) {
        Some(total) => (marks, Some(total)),
        None => ("", None),
    }
}

/// What it says, and the lines of `file:line` at its end.
fn split_frames(text: &str) -> (&str, &str) {
    let text = text.trim();
    let is_frame = |line: &&str| {
        frames::place_of_line(line).is_some_and(|place| place.file.is_some_and(|file| line.starts_with(file)))
    };
    let frames: usize = text.lines().rev().take_while(is_frame).map(|line| line.len() + 1).sum();
    let (message, stack) = text.split_at((text.len() + 1).saturating_sub(frames).min(text.len()));
    (message.trim(), stack)
}

/// `PHP Fatal error:  Uncaught Error: x in /p/src/Cart.php:4` and `Parse error: … in /p/x.php on line 3`.
fn fatal(line: &str) -> Option<Problem> {
    let rest = line.strip_prefix("PHP ").unwrap_or(line);
    let kind = if rest.starts_with("Parse error: ") || rest.starts_with("Fatal error:  Uncaught ParseError") {
        FailureKind::Compile
    } else if rest.starts_with("Fatal error: ") {
        FailureKind::Crash
    } else {
        return None;
    };
    let place = frames::place_of_line(rest);
    Some(Problem {
        file: place.and_then(|place| place.file).map(str::to_owned),
        line: place.and_then(|place| place.line),
        ..of_run(rest, Some(kind))
    })
}

fn of_run(message: &str, kind: Option<FailureKind>) -> Problem {
    let message = message.to_owned();
    Problem::new(ProblemScope::Run, "", kind, message)
}

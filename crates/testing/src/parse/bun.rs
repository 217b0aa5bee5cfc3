//! `bun test`, which tells results on standard error.

use super::by_line::LineReader;
use super::tally::Tally;
use super::{Head, Stream, js_failure, milliseconds};
use crate::{
    Event, Failure, FailureKind, Finished, HeadTail, Place, Problem, ProblemScope, Sink, TestId, TestStatus,
};

/// Bytes at each end of what stands before one result.
const DETAILS: usize = 16 << 10;

pub(super) fn looks_like(head: &Head<'_>) -> bool {
    head.text.lines().any(|line| {
        line.starts_with("bun test v")
            || line == "# Unhandled error between tests"
            || Row::of(line).is_some_and(|row| line.starts_with('(') && row.timed)
            || line.starts_with("Ran ") && line.contains(" tests across ") && line.ends_with(']')
    })
}

#[derive(Debug, Default)]
pub(super) struct Bun {
    file: String,
    after_blank: bool,
    before: Option<HeadTail>,
    failed: Option<Failed>,
    unhandled: Option<HeadTail>,
    errors: u64,
    named: Tally,
    counted: Tally,
    ran: Option<u64>,
}

#[derive(Debug)]
struct Failed {
    name: String,
    ms: u64,
    text: String,
}

/// `(fail) adds up [1.60ms]`, or with a symbol on a terminal.
struct Row<'a> {
    status: TestStatus,
    name: &'a str,
    timed: bool,
    ms: u64,
}

impl<'a> Row<'a> {
    fn of(line: &'a str) -> Option<Self> {
        let marks = [
            ("(pass) ", TestStatus::Pass),
            ("✓ ", TestStatus::Pass),
            ("(fail) ", TestStatus::Fail),
            ("✗ ", TestStatus::Fail),
            ("(skip) ", TestStatus::Skip),
            ("» ", TestStatus::Skip),
            ("(todo) ", TestStatus::Skip),
            ("✎ ", TestStatus::Skip),
        ];
        let (name, status) =
            marks.iter().find_map(|(mark, status)| Some((line.strip_prefix(mark)?, *status)))?;
        match name.strip_suffix("ms]").and_then(|name| name.rsplit_once(" [")) {
            Some((name, time)) => {
                let ms = milliseconds::of(time.parse().ok()?);
                Some(Row { status, name, timed: true, ms })
            }
            None => Some(Row { status, name, timed: false, ms: 0 }),
        }
    }
}

impl LineReader for Bun {
    fn line(&mut self, _: Stream, line: &str, sink: &mut dyn Sink) {
        let after_blank = std::mem::replace(&mut self.after_blank, line.is_empty());
        if let Some(version) = line.strip_prefix("bun test v") {
            return sink.event(Event::Version(version.split(' ').next().unwrap_or(version)));
        }
        if self.unhandled_line(line, sink) {
            return;
        }
        if let Some(note) = line.strip_prefix("  ^ ")
            && let Some(failed) = &mut self.failed
        {
            note.clone_into(&mut failed.text);
            return;
        }
        if let Some(row) = Row::of(line) {
            return self.row(&row, sink);
        }
        if let Some(file) = file_of(line).filter(|_| after_blank) {
            self.settle(sink);
            self.before = None;
            return file.clone_into(&mut self.file);
        }
        if !self.count_line(line, sink) {
            let before = self.before.get_or_insert_with(|| HeadTail::new(DETAILS));
            before.push(line);
            before.push("\n");
        }
    }

    fn end(&mut self, sink: &mut dyn Sink) {
        self.settle(sink);
        if let Some(ran) = self.ran {
            self.total(ran, sink);
        }
    }
}

impl Bun {
    fn row(&mut self, row: &Row<'_>, sink: &mut dyn Sink) {
        self.settle(sink);
        let text = self.before.take().map(HeadTail::into_text).unwrap_or_default();
        let name = row.name.replace(" > ", " ");
        match row.status {
            TestStatus::Fail => {
                self.named.failed += 1;
                self.failed = Some(Failed { name, ms: row.ms, text });
                return;
            }
            TestStatus::Pass => self.named.passed += 1,
            _ => self.named.skipped += 1,
        }
        let test = TestId { suite: &self.file, name: &name };
        sink.event(Event::Finished(Finished::new(test, row.status, row.ms)));
    }

    fn settle(&mut self, sink: &mut dyn Sink) {
        let Some(failed) = self.failed.take() else { return };
        let error = error_in(&failed.text);
        let (said, stack) = js_failure::message_and_stack(error);
        let (class, message) = js_failure::class_and_message(said);
        let fallback = Place { file: (!self.file.is_empty()).then_some(self.file.as_str()), line: None };
        let hook = failed.name.ends_with("(unnamed)").then_some(FailureKind::Setup);
        let failure = Failure {
            kind: Some(hook.unwrap_or_else(|| js_failure::kind_of(class, message))),
            message: if class == "error" { message } else { said },
            stack,
            at: js_failure::place_of(stack).unwrap_or(fallback),
            expected: value(said, "Expected: "),
            actual: value(said, "Received: "),
        };
        let test = TestId { suite: &self.file, name: &failed.name };
        sink.event(Event::Finished(Finished::new(test, TestStatus::Fail, failed.ms).failure(failure)));
    }

    /// A file that cannot be loaded, or an error outside of tests, stands between two rulers.
    fn unhandled_line(&mut self, line: &str, sink: &mut dyn Sink) -> bool {
        let ruler = line.len() > 10 && line.bytes().all(|byte| byte == b'-');
        match &mut self.unhandled {
            None if line == "# Unhandled error between tests" => {
                self.settle(sink);
                self.unhandled = Some(HeadTail::new(DETAILS));
            }
            None => return false,
            Some(text) if ruler && text.is_empty() => text.push("\n"),
            Some(_) if ruler => {
                self.errors += 1;
                let text = self.unhandled.take().map(HeadTail::into_text).unwrap_or_default();
                sink.event(Event::Problem(self.problem(&text)));
            }
            Some(text) => {
                text.push(line);
                text.push("\n");
            }
        }
        true
    }

    fn problem(&self, text: &str) -> Problem {
        let (said, stack) = js_failure::message_and_stack(error_in(text));
        let (class, message) = js_failure::class_and_message(said);
        let at = js_failure::place_of(stack);
        let own = at.and_then(|at| at.file).filter(|file| *file != self.file);
        let kind = match js_failure::kind_of(class, message) {
            // Bun calls everything `error` that its own parser finds.
            FailureKind::Error if class == "error" && own.is_some() => FailureKind::Compile,
            kind => kind,
        };
        // A module that cannot be found has no line: the file's beginning is where imports stand.
        let line = at.and_then(|at| at.line).or(Some(1));
        let file = own.unwrap_or(&self.file).to_owned();
        let message = message.to_owned();
        Problem::new(ProblemScope::Suite, self.file.clone(), Some(kind), message).placed(Some(file), line)
    }

    /// ` 3 pass`, ` 4 fail`, `Ran 9 tests across 2 files. [65.00ms]`.
    fn count_line(&mut self, line: &str, sink: &mut dyn Sink) -> bool {
        if let Some((count, what)) = line.strip_prefix(' ').and_then(|line| line.split_once(' '))
            && let Ok(count) = count.parse::<u64>()
        {
            match what {
                "pass" => self.counted = Tally { passed: count, ..Tally::default() },
                "fail" => self.counted.failed = count,
                "skip" | "todo" => self.counted.skipped = self.counted.skipped.saturating_add(count),
                _ => {}
            }
            return true;
        }
        let ran = line.strip_prefix("Ran ").and_then(|rest| rest.split(' ').next()?.parse::<u64>().ok());
        match ran.filter(|_| line.contains(" across ")) {
            Some(ran) => {
                self.settle(sink);
                self.ran = Some(ran);
                true
            }
            None => false,
        }
    }

    /// A file that cannot be loaded counts as a failed test; good tests may be counted only.
    fn total(&mut self, ran: u64, sink: &mut dyn Sink) {
        let files = self.counted.failed.saturating_sub(self.named.failed).min(self.errors);
        let counted = Tally { failed: self.counted.failed.saturating_sub(files), ..self.counted };
        counted.count_unnamed(self.named, sink);
        sink.event(Event::Ended { counted: Some(ran.saturating_sub(files)) });
    }
}

/// `test/cart.test.ts:`.
fn file_of(line: &str) -> Option<&str> {
    let file = line.strip_suffix(':')?;
    let extension = file.rsplit('.').next()?;
    let known = matches!(extension, "js" | "mjs" | "cjs" | "ts" | "mts" | "cts" | "jsx" | "tsx");
    (known && !file.starts_with(' ')).then_some(file)
}

/// What follows the lines of source that Bun shows first.
fn error_in(text: &str) -> &str {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let (class, _) = js_failure::class_and_message(line.trim_end());
        if !class.is_empty() && !line.starts_with(' ') {
            return &text[at..];
        }
        at += line.len();
    }
    text.trim()
}

fn value<'a>(text: &'a str, label: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(label))
}

//! test-unit of Ruby: failures between rulers on the way, counts at the end.

use super::by_line::LineReader;
use super::tally::Tally;
use super::{Head, Stream, milliseconds, ruby_failure};
use crate::{Event, Failure, FailureKind, Finished, HeadTail, Sink, TestId, TestStatus};

/// Bytes at each end of one failure.
const ENTRY: usize = 16 << 10;

pub(super) fn looks_like(head: &Head<'_>) -> bool {
    head.text.lines().any(|line| line.starts_with("Loaded suite ") || counts(line).is_some())
}

#[derive(Debug, Default)]
pub(super) struct TestUnit {
    entry: Option<HeadTail>,
    named: Tally,
    dots: Tally,
    /// The class whose tests are told, in verbose output.
    class: String,
    counts: Option<Tally>,
}

impl LineReader for TestUnit {
    fn line(&mut self, _: Stream, line: &str, sink: &mut dyn Sink) {
        let ruler = line.len() > 20 && line.bytes().all(|byte| byte == b'=');
        match &mut self.entry {
            None if ruler => self.entry = Some(HeadTail::new(ENTRY)),
            Some(_) if ruler => self.end_entry(sink),
            Some(text) => {
                text.push(line);
                text.push("\n");
            }
            None => self.result_line(line, sink),
        }
    }

    fn end(&mut self, sink: &mut dyn Sink) {
        match self.counts {
            Some(counts) => {
                counts.count_unnamed(self.named, sink);
                sink.event(Event::Ended { counted: Some(counts.sum()) });
            }
            None => self.dots.count_unnamed(self.named, sink),
        }
    }
}

impl TestUnit {
    fn result_line(&mut self, line: &str, sink: &mut dyn Sink) {
        if let Some(counts) = counts(line) {
            self.counts = Some(counts);
        } else if let Some(class) = line.strip_suffix(": ").filter(|class| !class.starts_with(' ')) {
            class.clone_into(&mut self.class);
        } else if let Some((test, result)) = line.split_once(":\t") {
            if let Some(time) = result.trim_start_matches('\t').strip_prefix(".: (") {
                let seconds = time.trim_end_matches(')').parse::<f64>().unwrap_or(0.0);
                self.named.passed += 1;
                let name = format!("{}#{}", self.class, test.trim());
                let test = TestId { suite: &self.class, name: &name };
                let ms = milliseconds::of_seconds(seconds);
                sink.event(Event::Finished(Finished::new(test, TestStatus::Pass, ms)));
            }
        } else if !line.is_empty()
            && line.bytes().all(|mark| matches!(mark, b'.' | b'F' | b'E' | b'P' | b'O' | b'N'))
        {
            for mark in line.bytes().filter(|mark| *mark != b'N') {
                self.dots.add(match mark {
                    b'.' => TestStatus::Pass,
                    b'P' | b'O' => TestStatus::Skip,
                    _ => TestStatus::Fail,
                });
            }
        }
    }

    /// `Failure: test_fail(CartTest)`, `Error: test_err(CartTest): ArgumentError: bad`,
    /// `Omission: later [test_omit(CartTest)]`.
    fn end_entry(&mut self, sink: &mut dyn Sink) {
        let text = self.entry.take().map(HeadTail::into_text).unwrap_or_default();
        let (title, rest) = text.split_once('\n').unwrap_or((&text, ""));
        let Some((kind, title)) = title.split_once(": ") else { return };
        let status = match kind {
            "Failure" => TestStatus::Fail,
            "Error" => TestStatus::Error,
            "Omission" | "Pending" => TestStatus::Skip,
            _ => return,
        };
        let (test, more) = match title.strip_suffix(']').and_then(|title| title.rsplit_once(" [")) {
            Some((reason, test)) => (test, reason),
            None => title
                .split_once("):")
                .map_or((title.trim_end_matches(')'), ""), |(test, more)| (test, more.trim())),
        };
        let Some((method, class)) = test.trim_end_matches(')').rsplit_once('(') else { return };
        self.named.add(status);
        let name = format!("{class}#{method}");
        let (said, stack) = split(more, rest);
        let (error, bare) = ruby_failure::class_and_message(&said);
        let kind = match status {
            TestStatus::Error => Some(ruby_failure::kind_of(error, bare)),
            TestStatus::Fail => Some(FailureKind::Assertion),
            _ => None,
        };
        let (expected, actual) = sides(&said);
        let at = ruby_failure::place_of(stack.lines()).unwrap_or_default();
        let failure = Failure { kind, message: &said, stack: &stack, at, expected, actual };
        let test = TestId { suite: class, name: &name };
        sink.event(Event::Finished(Finished::new(test, status, 0).failure(failure)));
    }
}

/// What is said, and the frames; lines of source are neither.
fn split(title: &str, text: &str) -> (String, String) {
    let (mut said, mut stack) = (title.to_owned(), String::new());
    for line in text.lines() {
        let plain = line.trim_start();
        let source = plain.trim_start_matches("=> ").split_once(": ").or_else(|| plain.split_once(':'));
        let is_source = line.starts_with("  ")
            && source.is_some_and(|(number, _)| {
                !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
            });
        let part = if ruby_failure::frame(line).is_some() { &mut stack } else { &mut said };
        if !is_source {
            part.push('\n');
            part.push_str(plain);
        }
    }
    (said.trim().to_owned(), stack.trim().to_owned())
}

/// `<5> expected but was` / `<4>`.
fn sides(said: &str) -> (Option<&str>, Option<&str>) {
    let Some((before, after)) = said.split_once(" expected but was\n") else { return (None, None) };
    let inside = |text: &'_ str| -> Option<(usize, usize)> {
        let start = text.rfind('<')?;
        text.rfind('>').filter(|end| *end > start).map(|end| (start + 1, end))
    };
    let expected = before.lines().last().and_then(|line| inside(line).and_then(|(a, b)| line.get(a..b)));
    let actual = after.lines().next().and_then(|line| inside(line).and_then(|(a, b)| line.get(a..b)));
    (expected, actual)
}

/// `5 tests, 2 assertions, 1 failures, 1 errors, 1 pendings, 1 omissions, 0 notifications`.
fn counts(line: &str) -> Option<Tally> {
    let mut numbers = [0; 7];
    let words = ["tests", "assertions", "failures", "errors", "pendings", "omissions", "notifications"];
    let mut parts = line.split(", ");
    for (number, expected) in numbers.iter_mut().zip(words) {
        let (count, word) = parts.next()?.split_once(' ')?;
        if word != expected {
            return None;
        }
        *number = count.parse::<u64>().ok()?;
    }
    let [tests, _, failures, errors, pendings, omissions, _] = numbers;
    let (failed, skipped) = (failures.saturating_add(errors), pendings.saturating_add(omissions));
    // An omitted test is counted, a pending one too.
    let passed = tests.checked_sub(failed)?.checked_sub(skipped)?;
    Some(Tally { passed, failed, skipped })
}

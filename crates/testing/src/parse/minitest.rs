//! minitest: dots or a line a test, then the failures, then the counts. Rails tells failures on the way.

use super::by_line::LineReader;
use super::tally::Tally;
use super::{Head, Stream, milliseconds, place, ruby_failure};
use crate::{
    Event, Failure, FailureKind, Finished, HeadTail, Place, Problem, ProblemScope, Sink, TestId, TestStatus,
};

/// Bytes at each end of one failure.
const ENTRY: usize = 16 << 10;

pub(super) fn looks_like(head: &Head<'_>) -> bool {
    head.text.lines().any(|line| {
        line == "# Running:"
            || line.starts_with("Run options: ") && line.contains("--seed")
            || counts(line).is_some()
    })
}

#[derive(Debug, Default)]
pub(super) struct Minitest {
    running: bool,
    /// Whether the list of failures has begun.
    listing: bool,
    number: u64,
    title: Option<TestStatus>,
    entry: Option<Entry>,
    named: Tally,
    dots: Tally,
    counts: Option<Tally>,
    load_error: Option<Problem>,
}

#[derive(Debug)]
struct Entry {
    status: TestStatus,
    name: String,
    at: Option<(String, u32)>,
    text: HeadTail,
}

impl LineReader for Minitest {
    fn line(&mut self, _: Stream, line: &str, sink: &mut dyn Sink) {
        if !self.running && (line == "# Running:" || line.starts_with("# Running tests:")) {
            self.running = true;
        } else if !self.running {
            self.load_line(line);
        }
        if let Some(counts) = counts(line).filter(|_| self.running) {
            self.end_entry(sink);
            self.counts = Some(counts);
        } else if self.title.is_some() {
            self.name_line(line, sink);
        } else if let Some(status) = self.entry_title(line) {
            self.end_entry(sink);
            self.title = Some(status);
        } else if let Some(entry) = &mut self.entry {
            let rails = ["rails test ", "bin/rails test "].iter().any(|begin| line.starts_with(begin));
            if rails {
                return self.end_entry(sink);
            }
            entry.text.push(line);
            entry.text.push("\n");
        } else if line.starts_with("Finished in ") {
            self.listing = true;
        } else if self.running && !self.listing {
            self.result_line(line, sink);
        }
    }

    fn end(&mut self, sink: &mut dyn Sink) {
        self.end_entry(sink);
        if let Some(counts) = self.counts {
            counts.count_unnamed(self.named, sink);
            return sink.event(Event::Ended { counted: Some(counts.sum()) });
        }
        if let Some(problem) = self.load_error.take().filter(|_| self.dots.sum() == 0) {
            return sink.event(Event::Problem(problem));
        }
        self.dots.count_unnamed(self.named, sink);
    }
}

impl Minitest {
    /// `  1) Failure:`, in order; Rails writes no numbers.
    fn entry_title(&mut self, line: &str) -> Option<TestStatus> {
        let kind = match line.strip_prefix("  ").and_then(|line| line.split_once(") ")) {
            Some((number, kind)) if number.trim_start().parse() == Ok(self.number + 1) && self.listing => {
                self.number += 1;
                kind
            }
            Some(_) => return None,
            None if self.listing || !self.running => return None,
            None => line,
        };
        match kind {
            "Failure:" => Some(TestStatus::Fail),
            "Error:" => Some(TestStatus::Error),
            "Skipped:" => Some(TestStatus::Skip),
            _ => None,
        }
    }

    /// `CartTest#test_fail [test/cart_test.rb:5]:`, or `test_fail(CartTest) [test/cart_test.rb:5]:` of old.
    fn name_line(&mut self, line: &str, sink: &mut dyn Sink) {
        let Some(status) = self.title.take() else { return };
        let Some(line) = line.strip_suffix(':') else { return };
        let (name, at) = match line.strip_suffix(']').and_then(|line| line.rsplit_once(" [")) {
            Some((name, at)) => (name, place::trailing(at)),
            None => (line, None),
        };
        let name = match name.strip_suffix(')').and_then(|name| name.split_once('(')) {
            Some((test, class)) if !name.contains('#') => format!("{class}#{test}"),
            _ => name.to_owned(),
        };
        self.end_entry(sink);
        let at = at.and_then(|at| Some((at.file?.to_owned(), at.line?)));
        self.entry = Some(Entry { status, name, at, text: HeadTail::new(ENTRY) });
    }

    fn end_entry(&mut self, sink: &mut dyn Sink) {
        let Some(entry) = self.entry.take() else { return };
        self.named.add(entry.status);
        let text = entry.text.into_text();
        let test = TestId { suite: class_of(&entry.name), name: &entry.name };
        let told = entry.at.as_ref().map(|(file, line)| Place::new(file, *line));
        let (said, stack) = split(&text);
        let (class, bare) = ruby_failure::class_and_message(said);
        let kind = match entry.status {
            TestStatus::Error => Some(ruby_failure::kind_of(class, bare)),
            TestStatus::Fail => Some(FailureKind::Assertion),
            _ => None,
        };
        let failure = Failure {
            kind,
            message: said,
            stack,
            at: told.or_else(|| ruby_failure::place_of(stack.lines())).unwrap_or_default(),
            expected: value(said, "Expected: "),
            actual: value(said, "Actual: "),
        };
        sink.event(Event::Finished(Finished::new(test, entry.status, 0).failure(failure)));
    }

    /// `CartTest#test_ok = 0.00 s = .`, or dots.
    fn result_line(&mut self, line: &str, sink: &mut dyn Sink) {
        if let Some((name, rest)) = line.split_once(" = ")
            && let Some(seconds) = rest.strip_suffix(" s = .")
            && let Ok(seconds) = seconds.parse::<f64>()
            && name.contains('#')
        {
            self.named.passed += 1;
            let test = TestId { suite: class_of(name), name };
            let ms = milliseconds::of_seconds(seconds);
            return sink.event(Event::Finished(Finished::new(test, TestStatus::Pass, ms)));
        }
        if !line.is_empty() && line.bytes().all(|byte| matches!(byte, b'.' | b'F' | b'E' | b'S')) {
            for mark in line.bytes() {
                self.dots.add(match mark {
                    b'.' => TestStatus::Pass,
                    b'S' => TestStatus::Skip,
                    _ => TestStatus::Fail,
                });
            }
        }
    }

    /// A file that cannot be loaded: Ruby itself says why.
    fn load_line(&mut self, line: &str) {
        if let Some(problem) = &mut self.load_error {
            if problem.file.is_none()
                && let Some(at) = ruby_failure::frame(line).filter(place::is_own)
            {
                (problem.file, problem.line) = (at.file.map(str::to_owned), at.line);
            }
            return;
        }
        let syntax = line.contains(": syntax error") || line.ends_with("(SyntaxError)");
        if !line.ends_with("Error)") && !syntax {
            return;
        }
        let at = place::leading(line).filter(|(at, _)| place::is_own(at));
        let message = at.map_or(line, |(_, rest)| rest);
        let kind = if syntax {
            FailureKind::Compile
        } else if line.ends_with("(LoadError)") {
            FailureKind::Import
        } else {
            FailureKind::Error
        };
        self.load_error = Some(
            Problem::new(
                ProblemScope::Suite,
                at.and_then(|(at, _)| at.file).unwrap_or_default().to_owned(),
                Some(kind),
                message,
            )
            .placed(at.and_then(|(at, _)| at.file).map(str::to_owned), at.and_then(|(at, _)| at.line)),
        );
    }
}

fn class_of(name: &str) -> &str {
    name.split_once('#').map_or("", |(class, _)| class)
}

/// What is said, and the frames below it.
fn split(text: &str) -> (&str, &str) {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if line.starts_with("    ") && ruby_failure::frame(line).is_some() {
            return (text[..at].trim(), text[at..].trim_end());
        }
        at += line.len();
    }
    (text.trim(), "")
}

fn value<'a>(text: &'a str, label: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.trim_start().strip_prefix(label))
}

/// `5 runs, 3 assertions, 2 failures, 1 errors, 1 skips`.
fn counts(line: &str) -> Option<Tally> {
    let mut numbers = [0; 5];
    let words = [["runs", "tests"], ["assertions"; 2], ["failures"; 2], ["errors"; 2], ["skips"; 2]];
    let mut parts = line.split(", ");
    for (number, words) in numbers.iter_mut().zip(words) {
        let (count, word) = parts.next()?.split_once(' ')?;
        if !words.contains(&word) {
            return None;
        }
        *number = count.parse::<u64>().ok()?;
    }
    let [runs, _, failures, errors, skips] = numbers;
    let failed = failures.saturating_add(errors);
    let passed = runs.checked_sub(failed)?.checked_sub(skips)?;
    parts.next().is_none().then_some(Tally { passed, failed, skipped: skips })
}

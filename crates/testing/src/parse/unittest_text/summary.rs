//! The summary, and the dots before it.

use crate::{Event, Sink, TestStatus};

/// `Ran 10 tests in 0.003s`, and below it `FAILED (failures=3, skipped=1)`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Summary {
    pub ran: u64,
    pub skipped: u64,
    pub expected_failures: u64,
    result: Option<Outcome>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Ok,
    Failed,
    NoTests,
}

impl Summary {
    pub(super) fn ran(line: &str) -> Option<Self> {
        let (count, rest) = line.strip_prefix("Ran ")?.split_once(" test")?;
        let rest = rest.strip_prefix('s').unwrap_or(rest);
        let seconds = rest.strip_prefix(" in ")?.strip_suffix('s')?;
        seconds.parse::<f64>().ok()?;
        Some(Self { ran: u64::from(count.parse::<u32>().ok()?), ..Self::default() })
    }

    /// Takes the line below, if it is the result.
    pub(super) fn result(&mut self, line: &str) -> bool {
        let (word, counts) = line.split_once(" (").map_or((line, ""), |(word, counts)| (word, counts));
        let outcome = match word {
            "OK" => Outcome::Ok,
            "FAILED" => Outcome::Failed,
            "NO TESTS RAN" => Outcome::NoTests,
            _ => return line.is_empty(),
        };
        self.result = Some(outcome);
        for part in counts.trim_end_matches(')').split(", ") {
            let Some((what, count)) = part.split_once('=') else { continue };
            let count = u64::from(count.parse::<u32>().unwrap_or(0));
            match what {
                "skipped" => self.skipped = count,
                "expected failures" => self.expected_failures = count,
                _ => {}
            }
        }
        true
    }

    pub(super) fn is_final(&self) -> bool {
        self.result.is_some()
    }

    pub(super) fn is_ok(&self) -> bool {
        self.result == Some(Outcome::Ok)
    }
}

/// A character a test, for a run that never came to its summary.
#[derive(Debug, Default)]
pub(super) struct Dots {
    passed: u64,
    failed: u64,
    errors: u64,
    skipped: u64,
    expected: u64,
}

impl Dots {
    pub(super) fn read(&mut self, line: &str) {
        if line.is_empty() || !line.bytes().all(|byte| b".FEsxu".contains(&byte)) {
            return;
        }
        for byte in line.bytes() {
            match byte {
                b'.' => self.passed += 1,
                b'F' | b'u' => self.failed += 1,
                b'E' => self.errors += 1,
                b's' => self.skipped += 1,
                _ => self.expected += 1,
            }
        }
    }

    pub(super) fn total(&self) -> u64 {
        self.passed + self.failed + self.errors + self.skipped + self.expected
    }

    pub(super) fn tell(&self, sink: &mut dyn Sink) {
        for (status, count) in [
            (TestStatus::Pass, self.passed),
            (TestStatus::Fail, self.failed),
            (TestStatus::Error, self.errors),
            (TestStatus::Skip, self.skipped),
            (TestStatus::Xfail, self.expected),
        ] {
            sink.event(Event::Counted { status, count });
        }
    }
}

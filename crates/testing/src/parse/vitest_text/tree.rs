//! Lines of files and tests, and the lines that count them.

use crate::TestStatus;
use crate::parse::tally::Tally;

/// So many failed tests are remembered, for runs that never come to their blocks.
const MOST_FAILED: usize = 10_000;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Test {
    pub suite: String,
    pub name: String,
    pub status: TestStatus,
}

#[derive(Debug, Default)]
pub(super) struct Tree {
    file: String,
    /// What tests print stands below a line that names them, up to an empty one.
    printing: bool,
    failed: Vec<(String, String)>,
}

impl Tree {
    /// Takes a line: a test that did not fail; failures are told by their blocks.
    pub(super) fn line(&mut self, line: &str) -> Option<Test> {
        if self.printing || line.starts_with("stdout | ") || line.starts_with("stderr | ") {
            self.printing = !line.is_empty();
            return None;
        }
        let text = line.trim_start();
        let indent = line.len() - text.len();
        let (status, title) = leaf(text)?;
        if let Some(file) = file_of(title) {
            file.clone_into(&mut self.file);
            return None;
        }
        let retried = title.contains("(retry x");
        let title = without_time(title);
        // With `verbose`, and in old versions, the file stands before the names.
        let (suite, name) = match title.split_once(" > ") {
            Some((file, name)) if indent == 1 || file == self.file => (without_project(file), name),
            _ if indent > 1 => (self.file.as_str(), title),
            _ => return None,
        };
        let (suite, name) = (suite.to_owned(), name.replace(" > ", " "));
        let status = if retried && status == TestStatus::Pass { TestStatus::Flaky } else { status };
        if status == TestStatus::Fail {
            if self.failed.len() < MOST_FAILED {
                self.failed.push((suite, name));
            }
            return None;
        }
        Some(Test { suite, name, status })
    }

    pub(super) fn failed(&self) -> impl Iterator<Item = (&str, &str)> {
        self.failed.iter().map(|(suite, name)| (suite.as_str(), name.as_str()))
    }
}

fn without_project(file: &str) -> &str {
    file.strip_prefix('|').and_then(|rest| rest.split_once("| ")).map_or(file, |(_, file)| file)
}

/// The mark of a line, and what follows it. A file with failures is marked like a running one.
fn leaf(text: &str) -> Option<(TestStatus, &str)> {
    let mut characters = text.chars();
    let status = match characters.next()? {
        '✓' | '√' => TestStatus::Pass,
        '×' | '✗' | '❯' => TestStatus::Fail,
        '↓' | '□' => TestStatus::Skip,
        _ => return None,
    };
    Some((status, characters.as_str().strip_prefix(' ')?.trim_end()))
}

/// `test/cart.test.ts (15 tests | 6 failed) 139ms`.
fn file_of(title: &str) -> Option<&str> {
    let (file, counts) = title.split_once(" (")?;
    let (number, rest) = counts.split_once(" test")?;
    let counted = number.bytes().all(|byte| byte.is_ascii_digit())
        && (rest.starts_with(')')
            || rest.starts_with("s)")
            || rest.starts_with("s |")
            || rest.starts_with(" |"));
    counted.then(|| without_project(file.trim_end()))
}

/// The title without ` 12ms`, ` (retry x1)` and the like.
fn without_time(title: &str) -> &str {
    let mut title = title.trim_end();
    loop {
        let Some((before, last)) = title.rsplit_once(' ') else { return title };
        let number = last.strip_suffix("ms").or_else(|| last.strip_suffix('s')).unwrap_or("x");
        if number.parse::<f64>().is_ok() {
            title = before.trim_end();
        } else if let Some((before, inside)) = title.strip_suffix(')').and_then(|rest| rest.rsplit_once(" ("))
            && (inside.starts_with("retry x") || inside.starts_with("repeat x"))
        {
            title = before.trim_end();
        } else {
            return title;
        }
    }
}

/// `      Tests  6 failed | 4 passed | 1 expected fail | 3 skipped | 1 todo (15)`: the counts, and how many tests there
/// are in all.
pub(super) fn counts(text: &str) -> Option<(Tally, u64)> {
    let mut counts = Tally::default();
    let text = text.trim();
    let (listed, total) = text.rsplit_once(" (").unwrap_or((text, ""));
    for part in listed.split(" | ") {
        let (count, what) = part.trim().split_once(' ')?;
        let Ok(count) = count.parse::<u32>().map(u64::from) else { continue };
        match what {
            "failed" => counts.failed += count,
            "skipped" | "todo" => counts.skipped += count,
            "passed" | "expected fail" => counts.passed += count,
            _ => {}
        }
    }
    let total = total.trim_end_matches(')').parse::<u32>().map_or(counts.sum(), u64::from);
    Some((counts, total))
}

/// A line of the summary: labels stand right-aligned.
pub(super) fn summary_line(line: &str) -> Option<(&str, &str)> {
    let text = line.strip_prefix(' ')?.trim_start();
    let labels = ["Test Files", "Tests", "Errors", "Type Errors", "Snapshots", "Start at", "Duration"];
    let label = labels
        .into_iter()
        .find(|label| text.strip_prefix(label).is_some_and(|rest| rest.starts_with("  ")))?;
    let aligned = line.len() - text.len() + label.len() == 11;
    aligned.then(|| (label, text[label.len()..].trim()))
}

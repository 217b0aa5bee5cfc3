//! The tree of tests that `--verbose` prints below a file, and the line that counts them.

use crate::TestStatus;
use crate::parse::tally::Tally;

/// The groups around the line at hand.
#[derive(Debug, Default)]
pub(super) struct Tree {
    groups: Vec<(usize, String)>,
    over: bool,
}

/// Deeper groups are none.
const DEEPEST: usize = 100;

impl Tree {
    /// Takes a line: the name and end of a test, unless it failed; failures are told by their blocks.
    pub(super) fn line(&mut self, line: &str) -> Option<(String, TestStatus)> {
        if self.over || line.is_empty() {
            self.over = true;
            return None;
        }
        let text = line.trim_start();
        let indent = line.len() - text.len();
        // What a test printed stands below such a line.
        if text.starts_with("console.") {
            self.over = true;
            return None;
        }
        while self.groups.last().is_some_and(|(at, _)| *at >= indent) {
            self.groups.pop();
        }
        let Some((status, title)) = leaf(text) else {
            if self.groups.len() < DEEPEST {
                self.groups.push((indent, text.trim_end().to_owned()));
            }
            return None;
        };
        let groups = self.groups.iter().map(|(_, name)| name.as_str());
        let name = groups.chain([title]).collect::<Vec<_>>().join(" ");
        (status != TestStatus::Fail).then_some((name, status))
    }
}

/// `✓ adds up (13 ms)`.
fn leaf(text: &str) -> Option<(TestStatus, &str)> {
    let mut characters = text.chars();
    let status = match characters.next()? {
        '✓' | '√' => TestStatus::Pass,
        '✕' | '×' => TestStatus::Fail,
        '○' | '✎' => TestStatus::Skip,
        _ => return None,
    };
    let title = characters.as_str().strip_prefix(' ')?;
    let title = match status {
        TestStatus::Skip => {
            title.strip_prefix("skipped ").or_else(|| title.strip_prefix("todo ")).unwrap_or(title)
        }
        _ => without_time(title),
    };
    Some((status, title.trim_end()))
}

fn without_time(title: &str) -> &str {
    let Some((before, inside)) = title.trim_end().strip_suffix(')').and_then(|rest| rest.rsplit_once(" ("))
    else {
        return title;
    };
    let number = inside.strip_suffix("ms").or_else(|| inside.strip_suffix('s')).map(str::trim);
    if number.is_some_and(|number| number.parse::<f64>().is_ok()) { before } else { title }
}

/// `9 failed, 1 skipped, 1 todo, 3 passed, 14 total`.
pub(super) fn counts(text: &str) -> Option<Tally> {
    let mut counts = Tally::default();
    let mut total = None;
    for part in text.trim().split(", ") {
        let (count, what) = part.split_once(' ')?;
        let count = u64::from(count.parse::<u32>().ok()?);
        match what {
            "passed" => counts.passed = count,
            "failed" => counts.failed = count,
            "skipped" | "todo" | "pending" => counts.skipped += count,
            "total" => total = Some(count),
            _ => return None,
        }
    }
    total.map(|_| counts)
}

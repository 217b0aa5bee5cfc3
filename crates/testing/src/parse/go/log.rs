//! What one test printed, and what went wrong according to it.

use super::modules::Modules;
use super::stack::{Death, deepest};
use crate::{Failure, FailureKind, HeadTail, Place};

/// As much of each end of a text as a message is found in.
const ROOM: usize = 4 << 10;

/// Words by which an error is told from a remark, in versions of Go that do not tell.
const TROUBLE: [&str; 22] = [
    "want",
    "got",
    "expect",
    "fail",
    "error",
    "mismatch",
    "differ",
    "unexpected",
    "should",
    "must",
    "cannot",
    "can't",
    "couldn't",
    "could not",
    "not equal",
    "invalid",
    "missing",
    "wrong",
    "timed out",
    "timeout",
    "!=",
    "panic",
];

/// How Go 1.27 and later mark what a test prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    /// Not at all, as before.
    None,
    /// A line of the testing package about the test, such as `=== RUN`.
    Frame,
    /// The first line of an error, or another line of it.
    Error,
}

#[derive(Debug)]
pub(super) struct Log {
    /// What it printed, the lines of the testing package left out.
    text: HeadTail,
    /// The errors alone, where they are marked.
    errors: HeadTail,
    /// The dying words of the process, if they came while it ran.
    death: Option<Box<HeadTail>>,
}

impl Default for Log {
    fn default() -> Self {
        Self { text: HeadTail::new(ROOM), errors: HeadTail::new(ROOM), death: None }
    }
}

impl Log {
    pub(super) fn push(&mut self, line: &str, mark: Mark) {
        if mark == Mark::Frame || is_frame(line) {
            return;
        }
        if let Some(death) = &mut self.death {
            death.push(line);
        } else if Death::begins(line) {
            let mut death = Box::new(HeadTail::new(16 * ROOM));
            death.push(line);
            self.death = Some(death);
        } else {
            if mark == Mark::Error {
                self.errors.push(line);
            }
            self.text.push(line);
        }
    }

    /// The dying words.
    pub(super) fn death(&self) -> Option<String> {
        let text = self.death.as_ref()?.as_ref().clone().into_text();
        Death::read(&text).is_some().then_some(text)
    }

    /// Everything, the dying words last.
    pub(super) fn all(&self) -> String {
        let mut all = self.text.clone().into_text();
        if let Some(death) = &self.death {
            all.push_str(&death.as_ref().clone().into_text());
        }
        all
    }

    /// Why the test failed, or was skipped.
    pub(super) fn told(&self, test: &str, package: &str, modules: &Modules) -> Told {
        if let Some(text) = self.death()
            && let Some(death) = Death::read(&text)
        {
            return Told::of_death(&death, test, package, modules);
        }
        let text = self.text.clone().into_text();
        if text.contains("WARNING: DATA RACE") {
            return Told::of_race(&text, package, modules);
        }
        let errors = self.errors.clone().into_text();
        let entries = if errors.is_empty() { from_the_telling_one(&text) } else { entries(&errors) };
        let Some(first) = entries.first() else { return Told::of_example(test, &text) };
        let mut told = Told::of_entry(first, package, modules);
        for entry in &entries[1..] {
            told.message.push('\n');
            told.message.push_str(&entry.message());
        }
        told
    }
}

/// Lines of the testing package about the test, in versions of Go that do not mark them.
fn is_frame(line: &str) -> bool {
    (line.starts_with("=== ") || line.starts_with("--- "))
        && [
            "=== RUN ",
            "=== PAUSE ",
            "=== CONT ",
            "=== NAME ",
            "=== ATTR ",
            "--- FAIL: ",
            "--- PASS: ",
            "--- SKIP: ",
        ]
        .iter()
        .any(|start| line.starts_with(start))
}

/// What went wrong, in words of our own keeping.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    pub kind: Option<FailureKind>,
    pub message: String,
    pub stack: String,
    pub at: Option<(String, u32)>,
    expected: Option<String>,
    actual: Option<String>,
}

impl Told {
    pub(super) fn of_death(death: &Death<'_>, test: &str, package: &str, modules: &Modules) -> Self {
        let kind = if death.timed_out { FailureKind::Timeout } else { FailureKind::Panic };
        let message = if death.timed_out { death.message.lines().next() } else { None };
        Self {
            kind: Some(kind),
            message: message.unwrap_or(death.message).to_owned(),
            stack: death.stack.to_owned(),
            at: death.place(Some(test), package, modules),
            ..Self::default()
        }
    }

    fn of_race(text: &str, package: &str, modules: &Modules) -> Self {
        let stack = text.find("WARNING: DATA RACE").map_or(text, |at| &text[at..]);
        Self {
            kind: Some(FailureKind::Error),
            message: "data race: race detected during execution of test".to_owned(),
            at: deepest(stack, package, modules),
            stack: stack.to_owned(),
            ..Self::default()
        }
    }

    /// An example prints what it should not: `got:` and `want:`, each with lines of their own.
    fn of_example(test: &str, text: &str) -> Self {
        let sections = text.split_once("got:\n").and_then(|(_, rest)| rest.split_once("\nwant:\n"));
        let Some((got, want)) = sections.filter(|_| test.starts_with("Example")) else {
            return Self::default();
        };
        Self {
            kind: Some(FailureKind::Assertion),
            message: text.trim().to_owned(),
            expected: Some(want.trim_end().to_owned()),
            actual: Some(got.to_owned()),
            ..Self::default()
        }
    }

    fn of_entry(entry: &Entry<'_>, package: &str, modules: &Modules) -> Self {
        // The testing package complains in its own name too; that is no place to look at.
        let own = entry.file != "testing.go";
        let mut told = Self {
            kind: Some(FailureKind::Assertion),
            message: entry.message(),
            at: own.then(|| (modules.file(package, entry.file), entry.line)),
            ..Self::default()
        };
        if let Some(trace) = entry.labelled("Error Trace:") {
            told.explain_testify(entry, &trace, package, modules);
        }
        told
    }

    /// `testify` prints a table of labels and texts, among them the true place and both values.
    fn explain_testify(&mut self, entry: &Entry<'_>, trace: &str, package: &str, modules: &Modules) {
        if let Some(error) = entry.labelled("Error:") {
            self.expected = value_after(&error, "expected:");
            self.actual = value_after(&error, "actual  :").or_else(|| value_after(&error, "actual:"));
            let more = entry.labelled("Messages:").map(|more| format!("\n{more}")).unwrap_or_default();
            self.message = error + &more;
        }
        let deepest = trace.lines().find_map(|line| {
            let (file, line) = line.trim().rsplit_once(':')?;
            Some((file.rsplit('/').next()?, line.parse().ok()?))
        });
        if let Some((file, line)) = deepest {
            self.at = Some((modules.file(package, file), line));
        }
        trace.clone_into(&mut self.stack);
    }

    pub(super) fn failure(&self) -> Failure<'_> {
        Failure {
            kind: self.kind,
            message: &self.message,
            stack: &self.stack,
            at: self.at.as_ref().map_or_else(Place::default, |(file, line)| Place::new(file, *line)),
            expected: self.expected.as_deref(),
            actual: self.actual.as_deref(),
        }
    }
}

fn value_after(text: &str, label: &str) -> Option<String> {
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix(label))?;
    Some(line.trim().to_owned())
}

/// One message of a test: `    calc_test.go:18: text`, and the lines below it.
#[derive(Debug)]
struct Entry<'a> {
    file: &'a str,
    line: u32,
    text: &'a str,
    more: Vec<&'a str>,
}

impl Entry<'_> {
    fn message(&self) -> String {
        let mut message = self.text.trim_end().to_owned();
        for line in &self.more {
            if !message.is_empty() {
                message.push('\n');
            }
            message.push_str(line.trim_end());
        }
        message
    }

    /// The text beside a label of testify's table, over as many lines as it takes.
    fn labelled(&self, label: &str) -> Option<String> {
        let mut lines =
            self.more.iter().map(|line| line.trim_start()).skip_while(|line| !line.starts_with(label));
        let first = lines.next()?.strip_prefix(label)?.trim().to_owned();
        let is_label = |line: &str| {
            ["Error Trace:", "Error:", "Test:", "Messages:"].iter().any(|label| line.starts_with(label))
        };
        let more = lines.take_while(|line| !is_label(line)).map(str::trim);
        Some(std::iter::once(first.as_str()).chain(more).collect::<Vec<_>>().join("\n").trim().to_owned())
    }
}

/// All messages in what a test printed. What stands unindented between was printed by the program itself.
fn entries(text: &str) -> Vec<Entry<'_>> {
    let mut entries: Vec<Entry<'_>> = Vec::new();
    for line in text.lines() {
        if let Some((file, number, text)) = heading(line) {
            entries.push(Entry { file, line: number, text, more: Vec::new() });
        } else if let Some(entry) = entries.last_mut()
            && let Some(more) = line.strip_prefix("        ").or_else(|| line.strip_prefix("    \t"))
        {
            entry.more.push(more);
        }
    }
    entries
}

/// `    calc_test.go:18: text`.
fn heading(line: &str) -> Option<(&str, u32, &str)> {
    let inner = line.trim_start_matches([' ', '\t']);
    if inner.len() == line.len() {
        return None;
    }
    let end = inner.find(".go:")? + 3;
    let (number, text) = inner[end + 1..].split_once(':')?;
    let file = &inner[..end];
    let plain = !file.contains([' ', '\t', '(', '"']) || file.starts_with('/');
    Some((file, number.parse().ok().filter(|_| plain)?, text.strip_prefix(' ').unwrap_or(text)))
}

/// The messages from the first that sounds like an error. Remarks and errors look alike before Go 1.27; a test that
/// gives up does so with its last words.
fn from_the_telling_one(text: &str) -> Vec<Entry<'_>> {
    let mut entries = entries(text);
    let sounds_bad = |entry: &Entry<'_>| {
        let message = entry.message().to_lowercase();
        TROUBLE.iter().any(|word| message.contains(word))
    };
    let first = entries.iter().position(sounds_bad).unwrap_or(entries.len().saturating_sub(1));
    entries.split_off(first.min(entries.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(lines: &[(&str, Mark)]) -> Told {
        let mut log = Log::default();
        for (line, mark) in lines {
            log.push(line, *mark);
        }
        log.told("TestX", "example.com/shop/calc", &Modules::default())
    }

    #[test]
    fn the_first_marked_error_is_where_it_failed() {
        let told = told(&[
            ("=== RUN   TestX\n", Mark::Frame),
            ("    x_test.go:3: expected trouble, only a remark\n", Mark::None),
            ("    x_test.go:7: boom\n", Mark::Error),
            ("        second line\n", Mark::Error),
        ]);
        assert_eq!(
            (told.message.as_str(), told.at),
            ("boom\nsecond line", Some(("calc/x_test.go".into(), 7)))
        );
    }

    #[test]
    fn without_marks_the_first_that_sounds_like_an_error_else_the_last_is() {
        let at = |lines: &[(&str, Mark)]| told(lines).at.map(|at| at.1);
        assert_eq!(
            at(&[
                ("    x.go:1: hi\n", Mark::None),
                ("    x.go:2: got 1\n", Mark::None),
                ("    x.go:3: z\n", Mark::None)
            ]),
            Some(2)
        );
        assert_eq!(at(&[("    x.go:1: hi\n", Mark::None), ("    x.go:2: ho\n", Mark::None)]), Some(2));
        assert_eq!(at(&[("x.go:1: printed, not logged\n", Mark::None)]), None);
    }

    #[test]
    fn testify_tells_the_true_place_and_both_values() {
        let table = "    assert.go:9: \n        \tError Trace:\t/w/calc/help_test.go:12\n        \t            \t/w/calc/x_test.go:40\n        \tError:      \tNot equal: \n        \t            \texpected: 5\n        \t            \tactual  : 4\n        \tTest:       \tTestX\n        \tMessages:   \tsum\n";
        let told = told(&[(table, Mark::None)]);
        assert_eq!(told.at, Some(("calc/help_test.go".into(), 12)));
        assert_eq!((told.expected.as_deref(), told.actual.as_deref()), (Some("5"), Some("4")));
        assert_eq!(told.message, "Not equal:\nexpected: 5\nactual  : 4\nsum");
    }

    #[test]
    fn a_race_points_at_the_access() {
        let told = told(&[(
            "==================\nWARNING: DATA RACE\nWrite at 0x00c0000b4018 by goroutine 8:\n  example.com/shop/calc.TestX.func1()\n      /w/calc/x_test.go:12 +0x3b\n==================\n    testing.go:1490: race detected during execution of test\n",
            Mark::None,
        )]);
        assert_eq!(told.at, Some(("calc/x_test.go".into(), 12)));
    }
}

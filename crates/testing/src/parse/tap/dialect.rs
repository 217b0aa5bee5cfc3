//! Who wrote it, by its accent.

use crate::parse::Head;
use crate::parse::frames::is_source;

/// Who writes it. They differ in what counts as a test, in how names are built, and in where they put the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::parse) enum Dialect {
    /// Perl's `Test::More` and everyone else: the results at the top are the tests.
    Plain,
    /// `node --test`: the innermost results are the tests.
    NodeTest,
    /// Groups in braces, the outermost a file; or flat, with the path in the name.
    Vitest,
    Ava,
    Mocha,
    Deno,
    Bats,
    Busted,
    Pytest,
}

/// Whether a text is TAP in this dialect.
pub(in crate::parse) fn looks_like(dialect: Dialect, head: &Head<'_>) -> bool {
    let text = head.text.trim_start_matches('\u{feff}');
    let mut lines = text.lines();
    let results = || text.lines().filter_map(result_name);
    let is_tap = lines.clone().any(|line| {
        let is_plan =
            line.strip_prefix("1..").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        line.starts_with("TAP version ") || is_plan || is_numbered(line)
    });
    if !is_tap {
        return false;
    }
    match dialect {
        Dialect::Plain => true,
        Dialect::NodeTest => text.contains("# Subtest: ") && text.contains(" duration_ms: "),
        Dialect::Vitest => results().any(|name| {
            let file = name.split(" # time=").next().unwrap_or(name).trim_start_matches("- ");
            name.contains(" # time=")
                && (name.ends_with(" {") && is_source(file)
                    || is_source(file.split(" > ").next().unwrap_or(file)))
        }),
        Dialect::Ava => {
            let yaml = ["    name: ", "    assertion: ", "    message: "];
            let inside = lines.any(|line| yaml.iter().any(|key| line.starts_with(key)));
            let dashed = results().any(|name| name.starts_with("- "));
            text.starts_with("TAP version 13") && dashed && (inside || text.contains("\n\n1.."))
        }
        Dialect::Mocha => {
            let stack = lines.any(|line| line.starts_with("      at ") || line.starts_with("    stack: |-"));
            let footer = text.rsplit_once("\n# fail ").is_some_and(|(_, rest)| rest.contains("\n1.."));
            // tape's looks the same, but for the operator that it names.
            (footer || stack)
                && !text.contains("\n    operator: ")
                && !results().any(|name| name.starts_with("- "))
        }
        Dialect::Deno => lines.any(|line| line.strip_prefix("# ./").is_some_and(is_source)),
        Dialect::Bats => {
            lines.any(|line| line.contains("in test file ") && line.contains(".bats, line "))
                || head.file_name.contains("bats")
                || text.contains("# bats warning:")
                || results().next().is_some() && results().all(timed)
        }
        Dialect::Busted => lines.any(|line| {
            line.starts_with("# ") && line.contains(".lua @ ")
                || line.starts_with("ok ") && line.contains(" - # SKIP ")
        }),
        Dialect::Pytest => results().any(|name| name.trim_start_matches("- ").contains(".py::")),
    }
}

/// Whether TAP is the first thing in a text: what looks like another runner below it, a test printed.
pub(in crate::parse) fn begins(text: &str) -> bool {
    let text = text.trim_start_matches('\u{feff}').trim_start();
    let line = text.lines().next().unwrap_or_default();
    let version =
        line.strip_prefix("TAP version ").is_some_and(|number| number.trim().parse::<u32>().is_ok());
    let plan = line
        .strip_prefix("1..")
        .is_some_and(|count| count.split(' ').next().is_some_and(|count| count.parse::<u32>().is_ok()));
    // A failure is what a test prints more easily: more of the same must follow.
    let follows = |line: &str| result_name(line).is_some() || line.starts_with("1..");
    let failed = line.starts_with("not ok 1 ") && text.lines().skip(1).any(follows);
    version || plan || failed || line.starts_with("ok 1 ")
}

/// The rest of a result after its number.
fn result_name(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("not ok ").or_else(|| line.strip_prefix("ok "))?;
    let (number, name) = rest.split_once(' ')?;
    number.parse::<u64>().ok().map(|_| name)
}

/// A result with a number: without one, `ok` is just a word.
fn is_numbered(line: &str) -> bool {
    let rest = line.strip_prefix("not ok ").or_else(|| line.strip_prefix("ok "));
    rest.and_then(|rest| rest.split(' ').next()).is_some_and(|number| number.parse::<u64>().is_ok())
}

/// `name in 12ms`, as bats writes with `--timing`.
fn timed(name: &str) -> bool {
    let name = name.split(" # ").next().unwrap_or(name);
    let time = name.strip_suffix("ms").and_then(|name| name.rsplit_once(" in "));
    time.is_some_and(|(_, ms)| ms.parse::<u64>().is_ok())
}

//! Where a failure's text points: frames of stack traces and `file:line` in messages, of many languages.

use super::place::is_own;
use crate::Place;

/// What source files end with; without this list, `example.com:443` would be a place.
const SOURCES: [&str; 58] = [
    "bash", "bats", "c", "cc", "cjs", "clj", "coffee", "cpp", "cs", "cts", "cxx", "dart", "erl", "ex", "exs",
    "feature", "fs", "go", "groovy", "h", "hh", "hpp", "hs", "hxx", "inc", "inl", "java", "jl", "js", "jsx",
    "kt", "kts", "lua", "m", "mjs", "ml", "mm", "mts", "nim", "php", "phpt", "pl", "pm", "py", "pyx", "r",
    "rb", "rs", "scala", "sh", "svelte", "swift", "t", "ts", "tsx", "vb", "vue", "zig",
];

/// Of `feature` and `svelte`.
const LONGEST_ENDING: usize = 7;

/// Names are looked for up to here, so that a line of nothing but colons takes no time.
const LONGEST_LINE: usize = 2 << 10;

/// Which of a trace's frames is the deepest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Deepest {
    /// Most languages: the innermost call stands on top.
    First,
    /// Python.
    Last,
}

/// The deepest place of a text that is the project's own.
pub(super) fn place_in(text: &str, deepest: Deepest) -> Option<Place<'_>> {
    let mut own = text.lines().filter_map(place_of_line).filter(is_own);
    match deepest {
        Deepest::First => own.next(),
        Deepest::Last => own.next_back(),
    }
}

/// The place that a line names; of a very long one, its beginning counts.
pub(super) fn place_of_line(line: &str) -> Option<Place<'_>> {
    let line = &line[..line.floor_char_boundary(LONGEST_LINE)];
    quoted(line).or_else(|| worded(line)).or_else(|| with_colon(line)).or_else(|| with_parenthesis(line))
}

/// `File "x.py", line 3`.
fn quoted(line: &str) -> Option<Place<'_>> {
    let (_, rest) = line.split_once("File \"")?;
    let (file, rest) = rest.split_once("\", line ")?;
    Some(Place::new(file, number(rest)?.0))
}

/// `in test file x.bats, line 3`, `in /x.cs:line 3`, `in /x.php on line 3`.
fn worded(line: &str) -> Option<Place<'_>> {
    for between in [", line ", ":line ", " on line "] {
        let Some((before, after)) = line.split_once(between) else { continue };
        let Some((line, _)) = number(after) else { continue };
        let file = before.rsplit_once(" in ").map_or(before, |(_, file)| file).trim_start_matches('(');
        let file = file.strip_prefix("in ").unwrap_or(file);
        let file = file.strip_prefix("test file ").or_else(|| file.strip_prefix("file ")).unwrap_or(file);
        if is_source(file) {
            return Some(Place::new(file, line));
        }
    }
    None
}

/// `x.js:3`, wherever it stands in the line.
fn with_colon(line: &str) -> Option<Place<'_>> {
    for (colon, _) in line.match_indices(':') {
        let Some((number, rest)) = number(&line[colon + 1..]) else { continue };
        if rest.starts_with(|after: char| after.is_alphanumeric()) {
            continue;
        }
        let file = last_word(&line[..colon]);
        if is_source(file) {
            return Some(Place::new(file, number));
        }
    }
    None
}

/// `x.cpp(3): error`, as Microsoft's tools write it.
fn with_parenthesis(line: &str) -> Option<Place<'_>> {
    let (before, after) = line.split_once('(')?;
    let (number, rest) = number(after)?;
    let file = last_word(before);
    (is_source(file) && (rest.starts_with("):") || rest.starts_with(','))).then(|| Place::new(file, number))
}

/// The word that a text ends with; one in parentheses may hold spaces.
fn last_word(text: &str) -> &str {
    let in_parentheses = text.rfind('(').filter(|at| {
        let inner = &text[at + 1..];
        inner.starts_with(['/', '.']) || inner.starts_with("file://") || inner.get(1..3) == Some(":\\")
    });
    let start = in_parentheses.map(|at| at + 1).or_else(|| {
        let before =
            |c: char| c.is_whitespace() || matches!(c, '(' | '"' | '\'' | '`' | '<' | '[' | '=' | '@');
        text.char_indices().rev().find(|(_, c)| before(*c)).map(|(at, c)| at + c.len_utf8())
    });
    &text[start.unwrap_or(0)..]
}

/// Whether this names a source file.
pub(crate) fn is_source(file: &str) -> bool {
    let near = file.len().saturating_sub(LONGEST_ENDING + 1);
    let Some(dot) = file.as_bytes()[near..].iter().rposition(|byte| *byte == b'.') else { return false };
    let (stem, extension) = (&file[..near + dot], &file[near + dot + 1..]);
    let is_named = !stem.is_empty() && !stem.ends_with(['/', '\\']);
    is_named && SOURCES.iter().any(|known| known.eq_ignore_ascii_case(extension))
}

/// The number that a text begins with, and what follows it.
pub(crate) fn number(text: &str) -> Option<(u32, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_languages_way_to_name_a_line_is_understood() {
        for (line, file, number) in [
            ("    at Context.<anonymous> (test/cart.test.js:6:12)", "test/cart.test.js", 6),
            ("    at file:///tmp/cart_test.ts:2:26", "file:///tmp/cart_test.ts", 2),
            (" ❯ parse src/cart.ts:8:24", "src/cart.ts", 8),
            ("    at f (/home/my dir/a.js:1:2)", "/home/my dir/a.js", 1),
            ("E     File \"/p/tests/test_syntax.py\", line 1", "/p/tests/test_syntax.py", 1),
            ("tests/test_cart.py:14: AssertionError", "tests/test_cart.py", 14),
            ("./lib/cart.rb:5:in `first_name'", "./lib/cart.rb", 5),
            ("/p/tests/CartTest.php:7", "/p/tests/CartTest.php", 7),
            ("PHP Fatal error:  Uncaught Error in /p/src/Cart.php on line 4", "/p/src/Cart.php", 4),
            ("   at Shop.Cart.Div(Int32 a) in C:\\shop\\Cart.cs:line 9", "C:\\shop\\Cart.cs", 9),
            ("(in test file test/cart.bats, line 9)", "test/cart.bats", 9),
            ("thread 'main' panicked at src/lib.rs:10:5:", "src/lib.rs", 10),
            ("unit.cpp(6): error: Value of: x", "unit.cpp", 6),
            ("/p/unit.cpp:6: Failure", "/p/unit.cpp", 6),
        ] {
            assert_eq!(place_of_line(line), Some(Place::new(file, number)), "{line}");
        }
    }

    #[test]
    fn addresses_and_times_are_no_places() {
        for line in
            ["connect ECONNREFUSED 127.0.0.1:5432", "GET http://example.com:8080/", "at 12:30", "a.js:1x"]
        {
            assert_eq!(place_of_line(line), None, "{line}");
        }
    }

    #[test]
    fn the_list_of_endings_is_sorted() {
        assert!(SOURCES.is_sorted());
    }

    #[test]
    fn frames_of_dependencies_are_passed_over() {
        let trace =
            "    at x (/p/node_modules/a.js:1:1)\n    at y (/p/src/b.js:2:1)\n    at z (/p/test/c.js:3:1)";
        assert_eq!(place_in(trace, Deepest::First), Some(Place::new("/p/src/b.js", 2)));
        assert_eq!(place_in(trace, Deepest::Last), Some(Place::new("/p/test/c.js", 3)));
    }
}

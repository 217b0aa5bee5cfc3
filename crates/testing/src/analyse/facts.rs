//! Single facts that messages hold: the property that was read of nothing, the index, the module, the program.

use crate::text::floor_char;

/// What stands in quotes of any kind after a word.
pub(super) fn quoted_after<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(word)?;
    let rest = rest.trim_start_matches([':', ' ', '(']);
    let quote = rest.chars().next().filter(|c| matches!(c, '\'' | '"' | '`'))?;
    let rest = &rest[1..];
    let end = rest.find(|c: char| c == quote || (quote == '`' && c == '\''))?;
    Some(&rest[..end]).filter(|name| !name.is_empty())
}

/// The word after another.
fn word_after<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(word)?;
    let name = rest.split(|c: char| c.is_whitespace() || matches!(c, ';' | ',' | ')')).next()?;
    let name = name.trim_end_matches([':', '.']);
    (!name.is_empty()).then_some(name)
}

fn number_after(text: &str, word: &str) -> Option<u64> {
    let (_, rest) = text.split_once(word)?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

/// What was read of nothing: `name` in "Cannot read properties of undefined (reading 'name')".
pub(super) fn read_of_nothing(message: &str) -> Option<&str> {
    let after =
        ["(reading", "(setting", "has no attribute", "undefined method", "read property", "null (reading"];
    let name = after.iter().find_map(|word| quoted_after(message, word));
    let php = || message.split_once("member function ").and_then(|(_, rest)| rest.split('(').next());
    name.or_else(php)
}

/// The index that was used, and the length it was used on.
pub(super) fn index_and_length(message: &str) -> Option<(u64, u64)> {
    let pairs = [
        ("the index is ", "the len is "),
        ("out of range [", "with length "),
        ("Index ", "for length "),
        ("out of range [:", "with capacity "),
        ("range end index ", "slice of length "),
    ];
    pairs
        .iter()
        .find_map(|(index, length)| Some((number_after(message, index)?, number_after(message, length)?)))
}

pub(super) fn module(message: &str) -> Option<&str> {
    let quoted = [
        "No module named",
        "Cannot find module",
        "Cannot find package",
        "Failed to resolve import",
        "Failed to load url",
        "unresolved import",
        "cannot import name",
        "could not import",
        "can't find crate for",
    ];
    let words = [
        "provides package ",
        "such file -- ",
        "ClassNotFoundException: ",
        "NoClassDefFoundError: ",
        "package ",
    ];
    let found = quoted.iter().find_map(|word| quoted_after(message, word));
    found.or_else(|| words.iter().find_map(|word| word_after(message, word)))
}

pub(super) fn program(message: &str) -> Option<&str> {
    if let Some((before, _)) = message.split_once(": command not found") {
        return before.rsplit([' ', ':', '\n']).next().filter(|name| !name.is_empty());
    }
    quoted_after(message, "exec").or_else(|| word_after(message, "spawn "))
}

/// The address at which nothing listens, or something else does.
pub(super) fn address(message: &str) -> Option<&str> {
    ["ECONNREFUSED ", "EADDRINUSE: address already in use ", "dial tcp ", "connect to ", "listen tcp "]
        .iter()
        .find_map(|word| word_after(message, word))
        .filter(|address| address.contains(':') || address.contains('.'))
}

/// The expression whose value was wrong, from pytest's explanation: ` +  where 4 = total(cart)`.
pub(super) fn where_expression(message: &str) -> Option<(&str, &str)> {
    let (_, rest) = message.split_once("where ")?;
    let (value, expression) = rest.lines().next()?.split_once(" = ")?;
    let expression = expression.trim();
    (!expression.is_empty() && expression.len() <= 100 && value.len() <= 60)
        .then_some((value.trim(), expression))
}

/// What was compared with what, in pytest's words: `assert 4 == 5` has the expected value on the right.
pub(super) fn compared(headline: &str) -> Option<(&str, &str)> {
    let (_, comparison) = headline.split_once("assert ")?;
    let (actual, expected) = comparison.split_once(" == ")?;
    (!expected.contains(" == ")).then_some((expected, actual))
}

/// How long a test was allowed to take: `test timed out after 1s`.
pub(super) fn time_limit(message: &str) -> Option<String> {
    let words = ["timed out after ", "timed out in ", "timeout of ", "Timeout (>", "Timeout >"];
    let (rest, limit) =
        words.iter().find_map(|word| Some((message.split_once(word)?.1, word_after(message, word)?)))?;
    if !limit.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let unit = rest.get(limit.len()..).and_then(|rest| rest.split_whitespace().next()).unwrap_or("");
    let unit = unit.trim_end_matches(['.', ',', ')']);
    let is_unit = matches!(unit, "ms" | "s" | "seconds" | "second" | "milliseconds" | "minutes");
    let bare = limit.ends_with(|c: char| c.is_ascii_digit());
    Some(if is_unit && bare { format!("{limit} {unit}") } else { limit.to_owned() })
}

/// Of two long texts, the first lines that differ.
pub(super) fn first_difference(expected: &str, actual: &str) -> Option<(String, String)> {
    if !expected.contains('\n') && !actual.contains('\n') {
        return None;
    }
    let (mut left, mut right) = (expected.lines(), actual.lines());
    loop {
        match (left.next(), right.next()) {
            (None, None) => return None,
            (left, right) if left == right => {}
            (left, right) => return Some((value(left.unwrap_or("")), value(right.unwrap_or("")))),
        }
    }
}

/// A value as it is quoted: on one line, and not longer than one can read at a glance.
pub(super) fn value(text: &str) -> String {
    const GLANCE: usize = 60;
    let line = text.trim().lines().next().unwrap_or("");
    if line.len() == text.trim().len() && line.len() <= GLANCE {
        return line.to_owned();
    }
    format!("{}…", line[..floor_char(line, GLANCE)].trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_found_in_the_words_of_each_language() {
        assert_eq!(read_of_nothing("Cannot read properties of undefined (reading 'name')"), Some("name"));
        assert_eq!(read_of_nothing("undefined method `name' for nil"), Some("name"));
        assert_eq!(read_of_nothing("Call to a member function length() on null"), Some("length"));
        assert_eq!(index_and_length("the len is 3 but the index is 7"), Some((7, 3)));
        assert_eq!(index_and_length("index out of range [5] with length 3"), Some((5, 3)));
        assert_eq!(index_and_length("Index 5 out of bounds for length 3"), Some((5, 3)));
        assert_eq!(module("ModuleNotFoundError: No module named 'shop.nope'"), Some("shop.nope"));
        assert_eq!(
            module("no required module provides package example.com/x; to add it:"),
            Some("example.com/x")
        );
        assert_eq!(program("test.sh: line 3: jq: command not found"), Some("jq"));
        assert_eq!(program("exec: \"git\": executable file not found in $PATH"), Some("git"));
        assert_eq!(program("Error: spawn git ENOENT"), Some("git"));
        assert_eq!(address("connect ECONNREFUSED 127.0.0.1:5432"), Some("127.0.0.1:5432"));
        assert_eq!(
            where_expression("assert 4 == 5\n +  where 4 = total([1, 3])"),
            Some(("4", "total([1, 3])"))
        );
        assert_eq!(time_limit("panic: test timed out after 1s").as_deref(), Some("1s"));
        assert_eq!(time_limit("execution timed out after 50 ms").as_deref(), Some("50 ms"));
        assert_eq!(compared("AssertionError: assert 4 == 5"), Some(("5", "4")));
    }

    #[test]
    fn a_long_value_is_cut_to_a_glance() {
        assert_eq!(value("short"), "short");
        assert_eq!(value("one\ntwo"), "one…");
        assert!(value(&"ü".repeat(100)).len() <= 64);
    }
}

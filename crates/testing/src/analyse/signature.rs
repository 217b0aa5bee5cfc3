//! What two messages of the same failure have in common: the text without the values of the moment.

use crate::text::floor_char;

/// A signature is told by the beginning of a message; the rest is values and context.
const LONGEST: usize = 240;
/// As much of a message is looked at.
const READ: usize = 2 * LONGEST;

/// Which values of a message are of the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quoted {
    /// What is quoted is a value, and goes too.
    Replace,
    /// What is quoted names the culprit (a missing module), and stays.
    Keep,
}

/// The message with placeholders: numbers and addresses are `#`, ids `<id>`, paths `<path>`, quoted texts `'…'`.
pub(crate) fn signature(message: &str, quoted: Quoted) -> String {
    let mut out = String::with_capacity(LONGEST);
    let mut rest = &message[..floor_char(message, READ)];
    rest = rest.trim();
    let mut before = ' ';
    while let Some(c) = rest.chars().next() {
        if out.len() >= LONGEST {
            break;
        }
        let taken = match c {
            '\'' | '"' | '`' if quoted == Quoted::Replace && !before.is_alphanumeric() => {
                quoted_text(rest, c).inspect(|_| out.push_str("'…'"))
            }
            _ if is_word(c) && !is_word(before) => word(rest, &mut out),
            _ => None,
        };
        let taken = taken.unwrap_or_else(|| {
            if !c.is_whitespace() {
                out.push(c);
            } else if !out.ends_with(' ') {
                out.push(' ');
            }
            c.len_utf8()
        });
        before = rest[..taken].chars().next_back().unwrap_or(' ');
        rest = &rest[taken..];
    }
    out.truncate(out.trim_end().len());
    out
}

/// How long the quoted text is, with its quotes; it ends on its line.
fn quoted_text(rest: &str, quote: char) -> Option<usize> {
    // Ruby and Go's compiler open with a backtick and close with an apostrophe.
    let closing = |c: char| c == quote || (quote == '`' && c == '\'');
    let inner = &rest[1..];
    let end = inner.find(|c: char| closing(c) || c == '\n')?;
    (!inner[end..].starts_with('\n')).then_some(end + 2)
}

const fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '\\' | '~')
}

/// Replaces a word if it is a value; says how much it took.
fn word(rest: &str, out: &mut String) -> Option<usize> {
    let end = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
    let whole = &rest[..end];
    let word = whole.trim_end_matches(['.', '-']);
    if word.is_empty() {
        return None;
    }
    let stands_for = if is_path(word) {
        "<path>"
    } else if is_uuid(word) {
        "<id>"
    } else if is_number(word) {
        "#"
    } else {
        out.push_str(&without_digits(word));
        return Some(word.len());
    };
    out.push_str(stands_for);
    Some(word.len())
}

/// A directory is told by its slash, except in `1/2` and `and/or`.
fn is_path(word: &str) -> bool {
    let slashes = word.bytes().filter(|byte| matches!(byte, b'/' | b'\\')).count();
    slashes > 1 || (slashes == 1 && (word.starts_with(['/', '.', '~']) || word.contains('.')))
}

fn is_uuid(word: &str) -> bool {
    let parts: Vec<&str> = word.split('-').take(6).collect();
    let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    lengths == [8, 4, 4, 4, 12] && parts.iter().all(|part| is_hex(part))
}

/// `12`, `-1.5e3`, `0xc000012`, `a3f09b11`: digits, or a long hexadecimal text with a digit in it.
fn is_number(word: &str) -> bool {
    if let Some(hex) = word.strip_prefix("0x") {
        return !hex.is_empty() && is_hex(hex);
    }
    let has_digit = word.bytes().any(|byte| byte.is_ascii_digit());
    let plain = word.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'_'));
    has_digit && (plain || (word.len() >= 8 && is_hex(word)) || is_measure(word))
}

/// `1.2s`, `300ms`, `2GB`: a number with a short unit.
fn is_measure(word: &str) -> bool {
    let unit = word.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-'));
    unit.len() <= 3 && unit.len() < word.len() && unit.bytes().all(|byte| byte.is_ascii_alphabetic())
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// `worker12` and `worker7` are the same word; a name keeps one `#` for its digits.
fn without_digits(word: &str) -> String {
    let mut out = String::with_capacity(word.len());
    for c in word.chars() {
        if !c.is_ascii_digit() {
            out.push(c);
        } else if !out.ends_with('#') {
            out.push('#');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    #[rstest]
    #[case("expected 5, got -4.25", "expected #, got #")]
    #[case("object at 0x7f2a is not b3e0a7f1", "object at # is not #")]
    #[case("open /tmp/x1/a.txt: no such file", "open <path>: no such file")]
    #[case("user 'anna' is not \"bob\"", "user '…' is not '…'")]
    #[case("it doesn't match, can't it", "it doesn't match, can't it")]
    #[case("undefined method `name' for nil", "undefined method '…' for nil")]
    #[case("run 123e4567-e89b-12d3-a456-426614174000 took 1.2s", "run <id> took #")]
    #[case("worker12 died\n  after   300ms.", "worker# died after #.")]
    #[case("and/or", "and/or")]
    fn values_of_the_moment_do_not_count(#[case] message: &str, #[case] expected: &str) {
        assert_eq!(signature(message, Quoted::Replace), expected);
    }

    #[test]
    fn a_missing_modules_name_counts() {
        let text = "No module named 'shop.nope'";
        assert_eq!(signature(text, Quoted::Keep), text);
    }

    proptest! {
        #[test]
        fn any_text_has_a_short_signature(text in "\\PC{0,400}") {
            prop_assert!(signature(&text, Quoted::Replace).len() <= READ);
        }
    }
}

//! What the words of a failure tell: its kind, and what was compared.

use crate::FailureKind;

/// The kind of a failure by its exception's type and its message; none if they do not tell.
pub(super) fn kind_of(exception: &str, message: &str) -> Option<FailureKind> {
    let has = |words: &[&str]| words.iter().any(|word| exception.contains(word) || message.contains(word));
    let kinds: [(FailureKind, &[&str]); 8] = [
        (
            FailureKind::Timeout,
            &[
                "TimeoutError",
                "TimeoutException",
                "timed out",
                "Timeout of ",
                "Exceeded timeout",
                "Timeout (>",
            ],
        ),
        (
            FailureKind::Snapshot,
            &["toMatchSnapshot", "toMatchInlineSnapshot", "Snapshot `", "SnapshotMismatch"],
        ),
        (
            FailureKind::NullDeref,
            &[
                "NullPointerException",
                "NullReferenceException",
                "'NoneType' object",
                "of undefined",
                "of null",
                "for nil",
                " on null",
                "undefined is not",
                "null pointer",
            ],
        ),
        (FailureKind::UnexpectedPass, &["XPASS(strict)", "PendingExampleFixedError"]),
        (
            FailureKind::Import,
            &[
                "ModuleNotFoundError",
                "ImportError",
                "Cannot find module",
                "ClassNotFoundException",
                "NoClassDefFoundError",
                "LoadError",
            ],
        ),
        (FailureKind::Compile, &["SyntaxError", "ParseError"]),
        (
            FailureKind::Assertion,
            &[
                "Assert",
                "assert",
                "ExpectationFailed",
                "ExpectationNotMet",
                "MultipleFailuresError",
                "ComparisonFailure",
                "expect(",
                "DID NOT RAISE",
                "Expected equality",
                "xpected: ",
                "Value of: ",
            ],
        ),
        (FailureKind::Panic, &["panicked at", "panic:"]),
    ];
    kinds.into_iter().find(|(_, words)| has(words)).map(|(kind, _)| kind)
}

/// What was expected and what came, where a message says so.
pub(super) fn compared(message: &str) -> Option<(&str, &str)> {
    in_one_line(message).or_else(|| in_two_lines(message))
}

/// `expected: <5> but was: <4>`, as Java's assertions say.
fn in_one_line(message: &str) -> Option<(&str, &str)> {
    let (before, after) = message.split_once("> but was")?;
    let start =
        before.rfind("xpected: <").map(|at| at + 10).or_else(|| Some(before.rfind("xpected:<")? + 9))?;
    let actual = after.trim_start_matches([':', ' ']).strip_prefix('<')?;
    Some((&before[start..], &actual[..actual.rfind('>')?]))
}

/// `Expected: 5` and then `Received: 4`, `Actual: 4` or `got: 4`.
fn in_two_lines(message: &str) -> Option<(&str, &str)> {
    let value = |labels: &[&str]| {
        message.lines().find_map(|line| {
            let line = line.trim_start();
            labels.iter().find_map(|label| line.strip_prefix(label)).map(str::trim)
        })
    };
    Some((
        value(&["Expected: ", "expected: "])?,
        value(&["Received: ", "Actual: ", "actual: ", "got: ", "but was: "])?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_of_a_comparison_are_told() {
        for message in [
            "math is hard ==> expected: <5> but was: <4>",
            "expected:<5> but was:<4>",
            "expect(received).toBe(expected)\n\nExpected: 5\nReceived: 4\n",
            "\nexpected: 5\n     got: 4\n\n(compared using ==)\n",
            "Assert.Equal() Failure\nExpected: 5\nActual:   4",
        ] {
            assert_eq!(compared(message), Some(("5", "4")), "{message}");
        }
        assert_eq!(compared("expected 5 to be 4"), None);
    }
}

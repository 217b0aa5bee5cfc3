//! What a failure in Python says: message, place and kind, from tracebacks as Python and as pytest print them.

use super::place::{is_own, leading};
use crate::{FailureKind, Place, Problem, ProblemScope};

/// Where a traceback points: its last place that is the project's own. Python prints the deepest frame last.
pub(super) fn place(text: &str) -> Option<Place<'_>> {
    text.lines().filter_map(place_of_line).rfind(is_own)
}

/// `tests/test_x.py:3: in f`, `tests/test_x.py:3: ValueError` or `File "tests/test_x.py", line 3`.
pub(super) fn place_of_line(line: &str) -> Option<Place<'_>> {
    file_line(line).or_else(|| {
        let (place, rest) = leading(line)?;
        let file = place.file?;
        let told = rest.is_empty() || rest.starts_with("in ") || is_exception(rest);
        (told && !file.starts_with(' ') && file.contains('.')).then_some(place)
    })
}

/// `File "x.py", line 3`, as Python itself prints it.
pub(super) fn file_line(line: &str) -> Option<Place<'_>> {
    let line = line.strip_prefix('E').unwrap_or(line).trim_start();
    // The traceback of a group of exceptions has a margin.
    let line = line.strip_prefix("| ").map_or(line, str::trim_start);
    let (file, rest) = line.strip_prefix("File \"")?.split_once("\", line ")?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    Some(Place::new(file, rest.get(..digits)?.parse().ok()?))
}

/// Whether a text begins with the name of an exception.
fn is_exception(text: &str) -> bool {
    let name = text.split([':', ' ', '\n']).next().unwrap_or_default();
    name.starts_with(char::is_uppercase) || name.contains('.')
}

/// The message in pytest's text of a failure: the last lines that are marked with `E`.
pub(super) fn marked_message(text: &str) -> Option<String> {
    let mut message: Option<Vec<&str>> = None;
    let mut before_was_marked = false;
    for line in text.lines() {
        let marked = line.strip_prefix('E').filter(|rest| rest.is_empty() || rest.starts_with("   "));
        if let Some(rest) = marked {
            let lines = match &mut message {
                Some(lines) if before_was_marked => lines,
                other => other.insert(Vec::new()),
            };
            lines.push(rest);
        }
        before_was_marked = marked.is_some();
    }
    let lines = message?;
    let written = lines.iter().filter(|line| !line.trim().is_empty());
    let indent = written.map(|line| line.len() - line.trim_start().len()).min().unwrap_or(0);
    Some(lines.iter().map(|line| line.get(indent..).unwrap_or("")).collect::<Vec<_>>().join("\n"))
}

/// What a group of exceptions says of itself; those in it stand below, further in.
pub(super) fn group(text: &str) -> Option<&str> {
    let (_, traceback) = text.split_once("+ Exception Group Traceback (most recent call last):")?;
    traceback.lines().filter_map(|line| line.strip_prefix("  | ")).find(|line| !line.starts_with(' '))
}

/// A file that could not be collected, from the whole text that pytest has of it.
pub(super) fn collection_problem(node: &str, text: &str) -> Problem {
    let message = marked_message(text).unwrap_or_else(|| text.trim().to_owned());
    // A syntax error is marked together with its place, and stands at the end.
    let exception = message.lines().rev().find(|line| !line.starts_with(' ')).unwrap_or_default();
    let kind = kind(exception);
    let at = place(text);
    Problem::new(ProblemScope::Suite, node, Some(kind), message).placed(
        Some(at.and_then(|at| at.file).unwrap_or(node)).filter(|file| !file.is_empty()).map(str::to_owned),
        at.and_then(|at| at.line),
    )
}

/// The exception of a plain traceback: what stands after its last frame.
pub(super) fn exception(traceback: &str) -> &str {
    let mut start = None;
    let mut at = 0;
    let mut in_frames = false;
    for line in traceback.split_inclusive('\n') {
        let header = line.starts_with("Traceback (most recent call last)");
        if header || (in_frames && line.starts_with("  ")) {
            in_frames = true;
            start = None;
        } else if in_frames && start.is_none() && !line.trim().is_empty() {
            in_frames = false;
            start = Some(at);
        }
        at += line.len();
    }
    traceback[start.unwrap_or(0)..].trim()
}

/// The kind of a failure, by the exception that its message begins with.
pub(super) fn kind(message: &str) -> FailureKind {
    let first = message.lines().next().unwrap_or_default();
    let name = first.split([':', ' ']).next().unwrap_or_default();
    let name = name.rsplit('.').next().unwrap_or(name);
    match name {
        _ if message.contains("Timeout (>") || message.contains("Timeout >") => FailureKind::Timeout,
        "TimeoutError" | "TimeoutExpired" => FailureKind::Timeout,
        "AttributeError" | "TypeError" if message.contains("NoneType") => FailureKind::NullDeref,
        "ModuleNotFoundError" | "ImportError" => FailureKind::Import,
        "SyntaxError" | "IndentationError" | "TabError" => FailureKind::Compile,
        "[XPASS(strict)]" => FailureKind::UnexpectedPass,
        "assert" | "Failed" => FailureKind::Assertion,
        _ if name.ends_with("AssertionError")
            || name.ends_with("ExceptionGroup") && message.contains("assert") =>
        {
            FailureKind::Assertion
        }
        _ => FailureKind::Error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deepest_frame_of_the_project_is_the_place() {
        let text = "tests/test_a.py:18: in test_a\n    helper()\nsrc/shop.py:6: in helper\n    x\n\
                    /opt/python/lib/python3.11/json/decoder.py:10: in decode\nE   ValueError: time 12:30: no";
        assert_eq!(place(text), Some(Place::new("src/shop.py", 6)));
        let syntax =
            "E     File \"/p/tests/test_s.py\", line 1\nE       def x(:\nE   SyntaxError: invalid syntax";
        assert_eq!(place(syntax), Some(Place::new("/p/tests/test_s.py", 1)));
    }

    #[test]
    fn the_message_is_what_is_marked_last() {
        let text = "E       KeyError: 'a'\n\nDuring handling of the above\n>   x\nE       ValueError: b\nE         more\nE\nE       last";
        assert_eq!(marked_message(text).unwrap(), "ValueError: b\n  more\n\nlast");
        assert_eq!(marked_message("Error: x\nEXPECTED"), None);
        let syntax = "E     File \"s.py\", line 1\nE       def x(:\nE   SyntaxError: invalid syntax";
        assert_eq!(
            marked_message(syntax).unwrap(),
            "  File \"s.py\", line 1\n    def x(:\nSyntaxError: invalid syntax"
        );
    }

    #[test]
    fn the_exception_stands_after_the_last_frame() {
        let text = "ImportError: Failed to import test module: x\nTraceback (most recent call last):\n  File \"a.py\", line 1, in f\n    import x\nModuleNotFoundError: No module named 'x'\n\n";
        assert_eq!(exception(text), "ModuleNotFoundError: No module named 'x'");
        let text = "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nAssertionError: 1 != 2\n- 1\n+ 2\n\nmore";
        assert_eq!(exception(text), "AssertionError: 1 != 2\n- 1\n+ 2\n\nmore");
    }

    #[test]
    fn kinds_follow_the_exceptions() {
        for (message, expected) in [
            ("AssertionError: assert 4 == 5", FailureKind::Assertion),
            ("assert 1 == 2", FailureKind::Assertion),
            ("Failed: DID NOT RAISE ValueError", FailureKind::Assertion),
            ("Failed: Timeout (>1.0s) from pytest-timeout.", FailureKind::Timeout),
            ("AttributeError: 'NoneType' object has no attribute 'name'", FailureKind::NullDeref),
            ("django.core.exceptions.ImproperlyConfigured: x", FailureKind::Error),
            ("[XPASS(strict)] must fail", FailureKind::UnexpectedPass),
        ] {
            assert_eq!(kind(message), expected, "{message}");
        }
    }
}

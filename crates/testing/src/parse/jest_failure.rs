//! What a failure in JavaScript says: message, frames, place and kind.

use super::place::{first_own, js_frame};
use crate::{Failure, FailureKind, Place};

/// A failure as printed: a message, and then frames.
pub(super) fn failure(text: &str) -> Failure<'_> {
    let (message, stack) = split(text);
    Failure {
        kind: Some(kind(message, stack)),
        message,
        stack,
        at: place(stack).unwrap_or_default(),
        ..Failure::default()
    }
}

/// The message of an error's stack, and its frames.
pub(super) fn split(text: &str) -> (&str, &str) {
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        if is_frame(line) {
            return (text[..start].trim_end(), text[start..].trim_end());
        }
        start += line.len();
    }
    (text.trim_end(), "")
}

fn is_frame(line: &str) -> bool {
    let line = line.trim_end();
    let indented = line.starts_with("    at ") || line.starts_with("\tat ");
    indented && (js_frame(line).is_some() || line.ends_with("(<anonymous>)") || line.ends_with("(native)"))
}

/// The deepest frame that is the project's own.
pub(super) fn place(stack: &str) -> Option<Place<'_>> {
    first_own(stack, js_frame)
}

/// The kind of a test's failure.
pub(super) fn kind(message: &str, stack: &str) -> FailureKind {
    let says = |words: &[&str]| words.iter().any(|word| message.contains(word));
    // Vitest's reports write the stack of a timeout without its message.
    let words = ["Exceeded timeout of ", "timed out in ", "Timeout - Async callback", "STACK_TRACE_ERROR"];
    if says(&words) {
        FailureKind::Timeout
    } else if stack.contains("_callCircusHook") {
        FailureKind::Setup
    } else if says(&["toMatchSnapshot", "toMatchInlineSnapshot", "MatchingSnapshot", "Snapshot `"]) {
        FailureKind::Snapshot
    } else if says(&["process.exit unexpectedly called", "process.exit called with"]) {
        FailureKind::Exit
    } else if says(&["AssertionError", "expect("]) || is_comparison(message) {
        FailureKind::Assertion
    } else if is_null_deref(message) {
        FailureKind::NullDeref
    } else if is_import(message) {
        FailureKind::Import
    } else {
        FailureKind::Error
    }
}

/// Vitest before 1.0 tells the message without the name of its error.
fn is_comparison(message: &str) -> bool {
    message.starts_with("expected ") && (message.contains(" to ") || message.contains(" not "))
}

/// The kind of what kept a file's tests from being loaded.
pub(super) fn load_kind(message: &str) -> FailureKind {
    let says = |words: &[&str]| words.iter().any(|word| message.contains(word));
    let nothing = ["must contain at least one test", "No test suite found", "No test found in suite"];
    let modules =
        ["Cannot use import statement outside", "Unexpected token 'export'", "Must use import to load ES"];
    if says(&nothing) || says(&modules) {
        FailureKind::Config
    } else if is_import(message) {
        FailureKind::Import
    } else if says(&[
        "SyntaxError",
        "Unexpected token",
        "Transform failed",
        "PARSE_ERROR",
        "Parse failure",
        "error TS",
    ]) {
        FailureKind::Compile
    } else {
        kind(message, "")
    }
}

fn is_import(message: &str) -> bool {
    let words = [
        "Cannot find module",
        "Cannot find package",
        "Failed to resolve import",
        "Failed to resolve entry",
        "Failed to load url",
        "Could not locate module",
        "ERR_MODULE_NOT_FOUND",
    ];
    words.iter().any(|word| message.contains(word))
}

fn is_null_deref(message: &str) -> bool {
    let nothing = message.contains("undefined") || message.contains("null");
    let used = [
        "Cannot read propert",
        "Cannot set propert",
        "Cannot destructure",
        "is not an object",
        "is undefined",
    ];
    nothing && used.iter().any(|word| message.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_is_cut_into_message_and_frames() {
        let failure = failure(
            "TypeError: Cannot read properties of undefined (reading 'name')\n    at home\n    \
             at new Promise (<anonymous>)\n    at node_modules/a.js:1:2\n    at f (/p/src/b.js:3:4)",
        );
        assert_eq!(
            failure.message,
            "TypeError: Cannot read properties of undefined (reading 'name')\n    at home"
        );
        assert_eq!((failure.at, failure.kind), (Place::new("/p/src/b.js", 3), Some(FailureKind::NullDeref)));
    }

    #[test]
    fn kinds_follow_what_runners_write() {
        for (message, expected) in [
            ("thrown: \"Exceeded timeout of 50 ms for a test.", FailureKind::Timeout),
            ("Error: expect(received).toMatchSnapshot()", FailureKind::Snapshot),
            ("Error: expect(received).toBe(expected)", FailureKind::Assertion),
            ("expected 4 to be 5 // Object.is equality", FailureKind::Assertion),
            ("async boom", FailureKind::Error),
        ] {
            assert_eq!(kind(message, ""), expected, "{message}");
        }
        assert_eq!(load_kind("SyntaxError: x.js: Unexpected token (2:12)"), FailureKind::Compile);
        assert_eq!(load_kind("Cannot find module './x' from 'a.js'"), FailureKind::Import);
    }
}

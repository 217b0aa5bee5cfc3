//! What a failure in JavaScript says, whichever runner prints it: message, frames, place and kind.

use super::place::{first_own, js_frame};
use crate::{Failure, FailureKind, Place};

/// A failure as printed: a message, and then frames.
pub(super) fn failure(text: &str) -> Failure<'_> {
    let (message, stack) = message_and_stack(text);
    Failure {
        kind: Some(kind_of_text(message, stack)),
        message,
        stack,
        at: place_of(stack).unwrap_or_default(),
        ..Failure::default()
    }
}

/// A text in two: what is said, and the frames below it.
pub(super) fn message_and_stack(text: &str) -> (&str, &str) {
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        if is_frame(line) {
            return (text[..start].trim_end(), text[start..].trim_end());
        }
        start += line.len();
    }
    (text.trim_end(), "")
}

/// Frames of the language itself name no file.
fn is_frame(line: &str) -> bool {
    let Some(call) = line.trim().strip_prefix("at ") else { return false };
    let call = call.strip_suffix(" {").unwrap_or(call);
    let of_language = call.ends_with("(<anonymous>)") || call.ends_with("(native)");
    of_language || call.contains(" (index ") || call.contains("(eval at ") || js_frame(line).is_some()
}

/// The deepest frame that is the project's own.
pub(super) fn place_of(stack: &str) -> Option<Place<'_>> {
    first_own(stack, js_frame)
}

/// The class and the message of an error as it is printed: `TypeError [Error]: boom`.
pub(super) fn class_and_message(text: &str) -> (&str, &str) {
    let first = text.lines().next().unwrap_or_default();
    match first.split_once(": ") {
        Some((class, _)) if is_class(class) => (class, text[class.len() + 2..].trim()),
        _ if is_class(first.trim_end_matches(':')) => {
            (first.trim_end_matches(':'), text[first.len()..].trim())
        }
        _ => ("", text.trim()),
    }
}

fn is_class(text: &str) -> bool {
    let word = text.strip_prefix("Uncaught ").unwrap_or(text);
    let word = word.split(" [").next().unwrap_or_default();
    let named = word.ends_with("Error") || word.ends_with("Exception") || word == "error";
    named && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.')
}

/// The kind of a test's failure, from its whole message and its frames.
pub(super) fn kind_of_text(text: &str, stack: &str) -> FailureKind {
    let (class, message) = class_and_message(text);
    match kind_of(class, message) {
        FailureKind::Timeout => FailureKind::Timeout,
        _ if stack.contains("_callCircusHook") => FailureKind::Setup,
        kind => kind,
    }
}

/// The kind, from an error's class (empty if unknown) and its message.
pub(super) fn kind_of(class: &str, message: &str) -> FailureKind {
    let says = |words: &[&str]| words.iter().any(|word| message.contains(word));
    if says(&["toMatchSnapshot", "toMatchInlineSnapshot", "MatchingSnapshot", "Snapshot `"]) {
        FailureKind::Snapshot
    } else if class.contains("AssertionError") {
        FailureKind::Assertion
    } else if says(&TIMEOUTS) {
        FailureKind::Timeout
    } else if says(&["process.exit unexpectedly called", "process.exit called with"]) {
        FailureKind::Exit
    } else if says(&["AssertionError", "expect("]) || is_comparison(message) {
        FailureKind::Assertion
    } else if is_null_deref(class, message) {
        FailureKind::NullDeref
    } else if is_import(message) {
        FailureKind::Import
    } else if class.contains("SyntaxError") && !message.contains("JSON") {
        FailureKind::Compile
    } else {
        FailureKind::Error
    }
}

const TIMEOUTS: [&str; 5] = [
    "imeout of ",
    "timed out after ",
    "timed out in ",
    "Timeout - Async callback",
    // Vitest's reports write the stack of a timeout without its message.
    "STACK_TRACE_ERROR",
];

/// Vitest before 1.0 tells the message without the name of its error.
fn is_comparison(message: &str) -> bool {
    message.starts_with("expected ") && (message.contains(" to ") || message.contains(" not "))
}

fn is_null_deref(class: &str, message: &str) -> bool {
    let says = |words: &[&str]| words.iter().any(|word| message.contains(word));
    let used = ["Cannot read propert", "Cannot set propert", "Cannot destructure", "is not an object"];
    let of_type = ["of undefined", "of null", "is undefined", "is null"];
    says(&["undefined", "null"]) && says(&used) || class.contains("TypeError") && says(&of_type)
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
        "Module not found",
    ];
    words.iter().any(|word| message.contains(word))
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
        kind_of_text(message, "")
    }
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
            ("AssertionError: expected timeout of 5", FailureKind::Assertion),
            ("Timeout of 50ms exceeded. For async tests", FailureKind::Timeout),
            ("TypeError: undefined is not an object (evaluating 'a.b')", FailureKind::NullDeref),
            ("SyntaxError: Unexpected token < in JSON at position 0", FailureKind::Error),
            ("async boom", FailureKind::Error),
        ] {
            assert_eq!(kind_of_text(message, ""), expected, "{message}");
        }
        assert_eq!(load_kind("SyntaxError: x.js: Unexpected token (2:12)"), FailureKind::Compile);
        assert_eq!(load_kind("Cannot find module './x' from 'a.js'"), FailureKind::Import);
    }
}

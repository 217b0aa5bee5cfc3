//! Errors of JavaScript, whichever runner prints them.

use super::place::{first_own, js_frame};
use crate::{FailureKind, Place};

/// The kind, from an error's class (empty if unknown) and its message.
pub(super) fn kind_of(class: &str, message: &str) -> FailureKind {
    let has = |parts: &[&str]| parts.iter().any(|part| message.contains(part));
    if class.contains("AssertionError") || class == "JestAssertionError" || message.starts_with("expect(") {
        FailureKind::Assertion
    } else if has(&["imeout of ", "timed out after "]) {
        FailureKind::Timeout
    } else if class.contains("TypeError")
        && has(&["of undefined", "of null", "is undefined", "is null", "undefined is not an object"])
    {
        FailureKind::NullDeref
    } else if has(&["Cannot find module", "Cannot find package", "Module not found"]) {
        FailureKind::Import
    } else if class.contains("SyntaxError") {
        FailureKind::Compile
    } else {
        FailureKind::Error
    }
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

/// A text in two: what is said, and the frames below it.
pub(super) fn message_and_stack(text: &str) -> (&str, &str) {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let frame = line.trim_start();
        if frame.starts_with("at ") && (js_frame(line).is_some() || frame.contains('(')) {
            return (text[..at].trim_end(), &text[at..]);
        }
        at += line.len();
    }
    (text.trim_end(), "")
}

/// The deepest frame in the project.
pub(super) fn place_of(stack: &str) -> Option<Place<'_>> {
    first_own(stack, js_frame)
}

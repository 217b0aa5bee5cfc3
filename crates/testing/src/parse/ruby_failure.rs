//! Errors of Ruby, whichever runner prints them.

use super::place::{is_own, leading};
use crate::{FailureKind, Place};

/// The kind, from an error's class and message.
pub(super) fn kind_of(class: &str, message: &str) -> FailureKind {
    if class.contains("ExpectationNotMet")
        || class.contains("MultipleExpectations")
        || class.ends_with("Assertion")
    {
        FailureKind::Assertion
    } else if class.contains("PendingExampleFixed") {
        FailureKind::UnexpectedPass
    } else if class == "NoMethodError" && (message.contains("for nil") || message.contains("nil:NilClass")) {
        FailureKind::NullDeref
    } else if class == "LoadError" {
        FailureKind::Import
    } else if class == "SyntaxError" {
        FailureKind::Compile
    } else if class.starts_with("Timeout::") {
        FailureKind::Timeout
    } else {
        FailureKind::Error
    }
}

/// A frame: `./spec/cart_spec.rb:5:in 'block'`, as it is or after `# ` or `from `.
pub(super) fn frame(line: &str) -> Option<Place<'_>> {
    let line = line.trim_start();
    let line = line.strip_prefix("# ").or_else(|| line.strip_prefix("from ")).unwrap_or(line);
    let (place, rest) = leading(line)?;
    let file = place.file?;
    let is_ruby =
        [".rb", ".rake", ".ru", ".erb", ".feature"].iter().any(|extension| file.ends_with(extension));
    (is_ruby && !file.contains(' ') && (rest.is_empty() || rest.starts_with("in "))).then_some(place)
}

/// The deepest frame in the project.
pub(super) fn place_of<'a>(mut frames: impl Iterator<Item = &'a str>) -> Option<Place<'a>> {
    frames.find_map(|line| frame(line).filter(is_own))
}

/// `NoMethodError: undefined method` in two.
pub(super) fn class_and_message(text: &str) -> (&str, &str) {
    let is_class = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_uppercase())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b':' | b'_'))
    };
    let first = text.lines().next().unwrap_or_default();
    match first.split_once(": ").or_else(|| Some((first.strip_suffix(':')?, ""))) {
        Some((class, _)) if is_class(class) => (class, text[class.len() + 1..].trim()),
        _ => ("", text),
    }
}

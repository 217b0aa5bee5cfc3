//! Why a test failed, from all that stands beside its result.

use super::dialect::Dialect;
use super::yaml::Yaml;
use crate::parse::frames::{Deepest, number, place_in, place_of_line};
use crate::{Failure, FailureKind, Place, is_foreign};

#[derive(Debug, Default, Clone)]
pub(super) struct Told {
    pub kind: Option<FailureKind>,
    pub message: String,
    pub stack: String,
    pub file: Option<String>,
    pub line: Option<u32>,
    expected: Option<String>,
    actual: Option<String>,
}

impl Told {
    /// From the block below a result, and the lines around it.
    pub(super) fn of(yaml: &Yaml, text: &str, dialect: Dialect) -> Self {
        let mut told = if dialect == Dialect::Pytest { of_pytest(text) } else { of_text(text, dialect) };
        if let Some(message) = yaml.get(&["message", "error", "error.message"]) {
            message.clone_into(&mut told.message);
        }
        if let Some(details) = yaml.within("details") {
            told.message.push_str(if told.message.is_empty() { "" } else { "\n" });
            told.message.push_str(&details);
        }
        let frames = [yaml.get(&["stack", "error.stack"]), yaml.get(&["at"])];
        for stack in frames.into_iter().flatten() {
            told.stack.push_str(if told.stack.is_empty() { "" } else { "\n" });
            told.stack.push_str(stack);
        }
        told.expected =
            yaml.get(&["expected", "wanted", "data.expected"]).map(str::to_owned).or(told.expected);
        told.actual = yaml.get(&["actual", "found", "got", "data.got"]).map(str::to_owned).or(told.actual);
        let at = place(yaml, &told, text);
        (told.file, told.line) = (at.file.map(str::to_owned), at.line);
        told.kind = Some(kind(yaml, &told));
        told
    }

    pub(super) fn failure(&self) -> Failure<'_> {
        Failure {
            kind: self.kind,
            message: &self.message,
            stack: &self.stack,
            at: self.place(),
            expected: self.expected.as_deref(),
            actual: self.actual.as_deref(),
        }
    }

    pub(super) fn place(&self) -> Place<'_> {
        Place { file: self.file.as_deref(), line: self.line }
    }
}

/// The deepest frame of the project, else what the block names, else what the text names.
fn place<'a>(yaml: &'a Yaml, told: &'a Told, text: &'a str) -> Place<'a> {
    let own = |text: &'a str| place_in(text, Deepest::First).filter(|at| !at.file.is_some_and(is_runtime));
    let named = yaml.get(&["file", "at.file", "data.at.file"]).map(|file| Place {
        file: Some(file),
        line: yaml.get(&["line", "at.line", "data.at.line"]).and_then(|line| line.parse().ok()),
    });
    let located = || yaml.get(&["location"]).and_then(place_of_line);
    if told.line.is_some() {
        return Place { file: told.file.as_deref(), line: told.line };
    }
    own(&told.stack)
        .or_else(|| own(&told.message))
        .or(named)
        .or_else(located)
        .or_else(|| own(text))
        .or_else(|| file_in_parentheses(&told.message))
        .unwrap_or_default()
}

/// Deno's and Node's own files.
fn is_runtime(file: &str) -> bool {
    file.starts_with("ext:") || file.starts_with("node:") || is_foreign(file)
}

/// Mocha names the file of a test that took too long, in parentheses.
fn file_in_parentheses(message: &str) -> Option<Place<'_>> {
    let (_, file) = message.lines().next()?.strip_suffix(')')?.rsplit_once('(')?;
    crate::parse::frames::is_source(file).then_some(Place { file: Some(file), line: None })
}

fn kind(yaml: &Yaml, told: &Told) -> FailureKind {
    let name = yaml.get(&["name", "error.name"]).unwrap_or_default();
    let message = told.message.as_str();
    let timed_out = ["Timeout of ", "Test timed out", "test timed out", "timed out after "];
    match yaml.get(&["failureType"]) {
        Some("testTimeoutFailure") => return FailureKind::Timeout,
        Some("hookFailed") => return FailureKind::Setup,
        _ => {}
    }
    if timed_out.iter().any(|start| message.contains(start)) {
        return FailureKind::Timeout;
    }
    // AVA calls all that goes wrong an assertion.
    let thrown = message.contains("Error thrown in test");
    let assertion = name.contains("Assertion") || yaml.get(&["code"]) == Some("ERR_ASSERTION");
    let thrown_name =
        told.stack.lines().next().and_then(|line| line.split([':', ' ']).next()).unwrap_or_default();
    let name = if name.is_empty() && thrown_name.ends_with("Error") { thrown_name } else { name };
    let assertion = assertion || name.contains("Assertion");
    let plain = name.is_empty()
        && yaml.get(&["failureType"]).is_none()
        && !message.starts_with("Error: ")
        && !message.starts_with("TypeError: ");
    if !thrown && (assertion || plain || message.contains("AssertionError")) {
        FailureKind::Assertion
    } else {
        FailureKind::Error
    }
}

/// From comments and indented lines.
fn of_text(text: &str, dialect: Dialect) -> Told {
    let mut told = Told::default();
    match dialect {
        Dialect::Busted => {
            let message = text.split_once("Failure message: ").map_or(text, |(_, message)| message);
            let after_place = message.split_once(": ").filter(|(at, _)| place_of_line(at).is_some());
            after_place.map_or(message, |(_, message)| message).trim().clone_into(&mut told.message);
            told.expected = section(&told.message, "Expected:");
            told.actual = section(&told.message, "Passed in:");
            if let Some((file, rest)) = text.lines().find_map(|line| line.split_once(" @ ")) {
                told.file = Some(file.to_owned());
                told.line = number(rest).map(|(line, _)| line);
            }
        }
        Dialect::Mocha => {
            // The message, and then the stack, which begins with the message again.
            let first = text.lines().next().unwrap_or_default();
            let again = text.match_indices(first).map(|(at, _)| at).find(|at| *at > 0 && !first.is_empty());
            let stack = again.map(|at| text[..at].rfind('\n').map_or(0, |end| end + 1));
            let (message, stack) =
                text.split_at(stack.unwrap_or_else(|| text.find("\n    at ").unwrap_or(text.len())));
            message.trim().clone_into(&mut told.message);
            stack.trim().clone_into(&mut told.stack);
        }
        // Perl's reasons are read apart, since they come on either stream.
        Dialect::Plain if text.contains("Failed test") => {}
        _ => text.trim_end().clone_into(&mut told.message),
    }
    told
}

/// The line below a label.
fn section(text: &str, label: &str) -> Option<String> {
    let mut lines = text.lines().skip_while(|line| line.trim() != label).skip(1);
    lines.next().map(str::to_owned)
}

/// pytest's long report: its errors begin with `E`, and the deepest frame comes last.
fn of_pytest(text: &str) -> Told {
    let report = text.split("--- Captured ").next().unwrap_or(text);
    let errors: Vec<&str> =
        report.lines().filter_map(|line| line.strip_prefix("E ").map(str::trim)).collect();
    let at = place_in(report, Deepest::Last).unwrap_or_default();
    let message = if errors.is_empty() { report.trim().to_owned() } else { errors.join("\n") };
    Told {
        message,
        stack: text.trim_end().to_owned(),
        file: at.file.map(str::to_owned),
        line: at.line,
        ..Told::default()
    }
}

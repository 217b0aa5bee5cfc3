//! rustc and clippy: as people see it, and as JSON.

use serde::Deserialize;

use super::{Diagnostic, Severity};

/// Reads what rustc prints for people.
#[derive(Debug, Default)]
pub(crate) struct RustcText {
    pending: Option<Diagnostic>,
}

impl RustcText {
    /// Takes a line; returns a diagnostic that it completes.
    pub(crate) fn line(&mut self, line: &str) -> Option<Diagnostic> {
        if let Some(diagnostic) = header(line) {
            return self.pending.replace(diagnostic);
        }
        let pending = self.pending.as_mut()?;
        if line.trim().is_empty() {
            return self.pending.take();
        }
        if let Some(place) = line.trim_start().strip_prefix("--> ")
            && pending.file.is_none()
        {
            (pending.file, pending.line, pending.column) = place_of(place);
        }
        if pending.code.is_none() {
            pending.code = lint_of(line);
        }
        None
    }

    /// There are no more lines.
    pub(crate) fn end(&mut self) -> Option<Diagnostic> {
        self.pending.take()
    }
}

/// `error[E0308]: mismatched types`, `warning: unused variable`.
fn header(line: &str) -> Option<Diagnostic> {
    let (severity, rest) = if let Some(rest) = line.strip_prefix("error") {
        (Severity::Error, rest)
    } else {
        (Severity::Warning, line.strip_prefix("warning")?)
    };
    let (code, rest) = match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((code, rest)) => (Some(code.to_owned()), rest),
        None => (None, rest),
    };
    let message = rest.strip_prefix(": ")?.trim();
    let tool = "rustc".to_owned();
    let message = message.to_owned();
    Some(Diagnostic { tool, severity, code, message, file: None, line: None, column: None })
}

/// `src/lib.rs:17:5`.
pub(super) fn place_of(place: &str) -> (Option<String>, Option<u32>, Option<u32>) {
    let mut parts = place.trim_end().rsplitn(3, ':');
    let (column, line, file) = (parts.next(), parts.next(), parts.next());
    let number = |text: Option<&str>| text.and_then(|text| text.parse().ok());
    match (file, number(line)) {
        (Some(file), Some(line)) => (Some(file.to_owned()), Some(line), number(column)),
        _ => (None, None, None),
    }
}

/// The lint that a note names: `` `#[warn(unused_variables)]` on by default ``, `` `-D clippy::needless-return` ``.
fn lint_of(line: &str) -> Option<String> {
    let note = line.trim_start().strip_prefix("= note: ")?;
    for opening in ["`#[warn(", "`#[deny("] {
        if let Some(rest) = note.strip_prefix(opening) {
            return Some(rest.split_once(')')?.0.to_owned());
        }
    }
    let flag = note.strip_prefix("`-D ").or_else(|| note.strip_prefix("`-W "))?;
    Some(flag.split_once('`')?.0.replace('-', "_"))
}

#[derive(Deserialize)]
struct CargoLine<'a> {
    #[serde(borrow)]
    reason: std::borrow::Cow<'a, str>,
    #[serde(default)]
    message: Option<Message>,
}

#[derive(Deserialize)]
struct Message {
    #[serde(rename = "message")]
    said: String,
    level: String,
    #[serde(default)]
    code: Option<Code>,
    #[serde(default)]
    spans: Vec<Span>,
}

#[derive(Deserialize)]
struct Code {
    code: String,
}

#[derive(Deserialize)]
struct Span {
    file_name: String,
    line_start: u32,
    column_start: u32,
    is_primary: bool,
    #[serde(default)]
    label: Option<String>,
}

/// A line of `--message-format=json`: cargo's, or rustc's own.
pub(crate) fn compiler_message(line: &str) -> Option<Diagnostic> {
    let message = if line.contains("\"reason\"") {
        let line: CargoLine<'_> = serde_json::from_str(line).ok()?;
        if line.reason != "compiler-message" {
            return None;
        }
        line.message?
    } else {
        serde_json::from_str(line).ok()?
    };
    let severity = match message.level.as_str() {
        "error" | "error: internal compiler error" => Severity::Error,
        "warning" => Severity::Warning,
        // `failure-note` only says how to learn more.
        "note" | "help" => Severity::Note,
        _ => return None,
    };
    let span = message.spans.into_iter().find(|span| span.is_primary);
    let tool = "rustc".to_owned();
    let code = message.code.map(|code| code.code);
    let mut said = message.said;
    // `mismatched types` alone says little: which they are stands at the place.
    let label = span.as_ref().and_then(|span| span.label.as_deref());
    if let Some(label) = label.filter(|label| severity == Severity::Error && !said.contains(label)) {
        said = format!("{said}: {label}");
    }
    let (file, line, column) = match span {
        Some(span) => (Some(span.file_name), Some(span.line_start), Some(span.column_start)),
        None => (None, None, None),
    };
    Some(Diagnostic { tool, severity, code, message: said, file, line, column })
}

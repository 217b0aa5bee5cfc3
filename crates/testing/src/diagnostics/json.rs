//! Diagnostics as JSON documents, element by element.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;

use super::{Diagnostic, DiagnosticParser, Severity, Take};
use crate::Stream;
use crate::parse::json::elements;

/// A larger document is not read to its end.
const LARGEST: usize = 64 << 20;

/// Reads one kind of document, once it is complete.
pub(super) struct Json {
    tool: &'static str,
    paths: &'static [&'static str],
    read: fn(Value, Take<'_>),
    bytes: Vec<u8>,
}

impl Json {
    fn new(tool: &'static str, paths: &'static [&'static str], read: fn(Value, Take<'_>)) -> Self {
        Self { tool, paths, read, bytes: Vec::new() }
    }

    /// `ESLint`: `[{"filePath":…,"messages":[…]}]`.
    pub(super) fn eslint() -> Self {
        Self::new("eslint", &["[]"], each::<EslintFile>)
    }

    /// Ruff: `[{…}]`.
    pub(super) fn ruff() -> Self {
        Self::new("ruff", &["[]"], each::<Ruff>)
    }

    /// `ShellCheck` in both of its forms: `[{…}]`, `{"comments":[{…}]}`.
    pub(super) fn shellcheck() -> Self {
        Self::new("shellcheck", &["[]", "comments[]"], each::<ShellCheck>)
    }

    /// Pyright: `{"generalDiagnostics":[{…}]}`.
    pub(super) fn pyright() -> Self {
        Self::new("pyright", &["generalDiagnostics[]"], each::<Pyright>)
    }

    /// `RuboCop`: `{"files":[{"path":…,"offenses":[…]}]}`.
    pub(super) fn rubocop() -> Self {
        Self::new("rubocop", &["files[]"], each::<RubocopFile>)
    }

    /// `PHPStan`: `{"files":{"a.php":{"messages":[…]}}}`.
    pub(super) fn phpstan() -> Self {
        Self::new("phpstan", &["files"], each::<PhpstanFiles>)
    }
}

impl DiagnosticParser for Json {
    fn feed(&mut self, stream: Stream, bytes: &[u8], _: Take<'_>) {
        if stream == Stream::Out {
            let room = LARGEST.saturating_sub(self.bytes.len());
            self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
    }

    fn finish(&mut self, take: Take<'_>) {
        let text = String::from_utf8_lossy(&self.bytes);
        elements(&text, self.paths, &mut |_, value| (self.read)(value, &mut super::named(self.tool, take)));
    }
}

/// What becomes diagnostics.
trait Findings {
    fn tell(self, take: Take<'_>);
}

fn each<T: Findings + DeserializeOwned>(value: Value, take: Take<'_>) {
    if let Ok(findings) = serde_json::from_value::<T>(value) {
        findings.tell(take);
    }
}

fn found(severity: Severity, code: Option<String>, message: String, file: &str) -> Diagnostic {
    let tool = String::new();
    Diagnostic { tool, severity, code, message, file: Some(file.to_owned()), line: None, column: None }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EslintFile {
    file_path: String,
    messages: Vec<EslintMessage>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EslintMessage {
    #[serde(default)]
    rule_id: Option<String>,
    severity: u8,
    message: String,
    #[serde(default)]
    line: Option<u32>,
    #[serde(default)]
    column: Option<u32>,
}

impl Findings for EslintFile {
    fn tell(self, take: Take<'_>) {
        for message in self.messages {
            let severity = if message.severity >= 2 { Severity::Error } else { Severity::Warning };
            let (line, column) = (message.line, message.column);
            take(Diagnostic {
                line,
                column,
                ..found(severity, message.rule_id, message.message, &self.file_path)
            });
        }
    }
}

#[derive(Deserialize)]
struct Ruff {
    code: Option<String>,
    message: String,
    filename: String,
    location: Option<RuffPlace>,
}

#[derive(Deserialize)]
struct RuffPlace {
    row: u32,
    column: u32,
}

impl Findings for Ruff {
    fn tell(self, take: Take<'_>) {
        // A file that cannot be parsed has no code, or since 0.9 one that is a word.
        let is_rule = self.code.as_deref().is_some_and(|code| code.ends_with(|c: char| c.is_ascii_digit()));
        let severity = if is_rule { Severity::Warning } else { Severity::Error };
        let (line, column) =
            (self.location.as_ref().map(|at| at.row), self.location.as_ref().map(|at| at.column));
        take(Diagnostic { line, column, ..found(severity, self.code, self.message, &self.filename) });
    }
}

#[derive(Deserialize)]
struct ShellCheck {
    file: String,
    line: u32,
    column: u32,
    level: String,
    code: u32,
    message: String,
}

impl Findings for ShellCheck {
    fn tell(self, take: Take<'_>) {
        let severity = severity(&self.level);
        let code = Some(format!("SC{}", self.code));
        let (line, column) = (Some(self.line), Some(self.column));
        take(Diagnostic { line, column, ..found(severity, code, self.message, &self.file) });
    }
}

#[derive(Deserialize)]
struct Pyright {
    file: String,
    severity: String,
    message: String,
    #[serde(default)]
    rule: Option<String>,
    #[serde(default)]
    range: Option<PyrightRange>,
}

#[derive(Deserialize)]
struct PyrightRange {
    start: PyrightPlace,
}

#[derive(Deserialize)]
struct PyrightPlace {
    line: u32,
    character: u32,
}

impl Findings for Pyright {
    fn tell(self, take: Take<'_>) {
        // Counted from 0.
        let line = self.range.as_ref().map(|range| range.start.line.saturating_add(1));
        let column = self.range.as_ref().map(|range| range.start.character.saturating_add(1));
        take(Diagnostic {
            line,
            column,
            ..found(severity(&self.severity), self.rule, self.message, &self.file)
        });
    }
}

#[derive(Deserialize)]
struct RubocopFile {
    path: String,
    offenses: Vec<Offense>,
}

#[derive(Deserialize)]
struct Offense {
    severity: String,
    message: String,
    cop_name: String,
    location: OffensePlace,
}

#[derive(Deserialize)]
struct OffensePlace {
    line: u32,
    column: u32,
}

impl Findings for RubocopFile {
    fn tell(self, take: Take<'_>) {
        for offense in self.offenses {
            let severity = severity(&offense.severity);
            let (line, column) = (Some(offense.location.line), Some(offense.location.column));
            take(Diagnostic {
                line,
                column,
                ..found(severity, Some(offense.cop_name), offense.message, &self.path)
            });
        }
    }
}

/// An empty list of files is written as an array.
#[derive(Deserialize)]
#[serde(untagged)]
enum PhpstanFiles {
    Files(BTreeMap<String, PhpstanFile>),
    None(IgnoredAny),
}

#[derive(Deserialize)]
struct PhpstanFile {
    messages: Vec<PhpstanMessage>,
}

#[derive(Deserialize)]
struct PhpstanMessage {
    #[serde(rename = "message")]
    said: String,
    #[serde(default)]
    line: Option<u32>,
    #[serde(default)]
    identifier: Option<String>,
}

impl Findings for PhpstanFiles {
    fn tell(self, take: Take<'_>) {
        let Self::Files(files) = self else { return };
        for (file, messages) in files {
            for message in messages.messages {
                let line = message.line;
                take(Diagnostic { line, ..found(Severity::Error, message.identifier, message.said, &file) });
            }
        }
    }
}

fn severity(word: &str) -> Severity {
    match word {
        "error" | "fatal" => Severity::Error,
        "warning" | "convention" | "refactor" => Severity::Warning,
        _ => Severity::Note,
    }
}

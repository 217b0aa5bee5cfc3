//! Diagnostics on one line, with the place first: what most compilers and linters print.
//!
//! `a.c:3:5: error: message [-Wflag]`, `a.ts(3,5): error TS2322: message`, `a.py:1:8: F401 message`,
//! `a.go:3:5: message (SA1000)`, `[ERROR] /p/A.java:[3,5] message`, `a.rb:1:1: C: Style/Rule: message`, …

use super::{Diagnostic, LineReader, Severity, Take};

/// Of a tool that says no severity: its findings are errors, as a compiler's are.
#[derive(Debug, Default)]
pub(super) struct Compiler;

/// Of a tool that says no severity: its findings are warnings, as a linter's are.
#[derive(Debug, Default)]
pub(super) struct Linter;

impl LineReader for Compiler {
    fn line(&mut self, line: &str, take: Take<'_>) {
        if let Some(diagnostic) = diagnostic(line, Severity::Error) {
            take(diagnostic);
        }
    }

    fn end(&mut self, _: Take<'_>) {}
}

impl LineReader for Linter {
    fn line(&mut self, line: &str, take: Take<'_>) {
        if let Some(diagnostic) = diagnostic(line, Severity::Warning) {
            take(diagnostic);
        }
    }

    fn end(&mut self, _: Take<'_>) {}
}

pub(super) fn diagnostic(line: &str, default: Severity) -> Option<Diagnostic> {
    if let Some(found) = php_lint(line) {
        return Some(found);
    }
    let line = line.trim();
    let (line, outer) = match ["[ERROR] ", "[WARNING] ", "e: ", "w: ", "vet: "]
        .iter()
        .find_map(|mark| Some((line.strip_prefix(mark)?, *mark)))
    {
        Some((rest, "[ERROR] " | "e: " | "vet: ")) => (rest, Some(Severity::Error)),
        Some((rest, _)) => (rest, Some(Severity::Warning)),
        None => (line, None),
    };
    let line = line.strip_prefix("file://").unwrap_or(line);
    let (place, rest) = place(line)?;
    let (severity, rest) = severity(rest).map_or((None, rest), |(severity, rest)| (Some(severity), rest));
    let (code, message) = code(rest);
    let by_code = code.as_deref().and_then(severity_of_code);
    let code = code.map(without_severity);
    let message = message.trim();
    if message.is_empty() {
        return None;
    }
    Some(Diagnostic {
        tool: String::new(),
        severity: severity.or(outer).or(by_code).unwrap_or(default),
        code,
        message: message.to_owned(),
        file: Some(place.file.to_owned()),
        line: Some(place.line),
        column: place.column.filter(|column| *column > 0),
    })
}

struct At<'a> {
    file: &'a str,
    line: u32,
    column: Option<u32>,
}

/// `file:3:5:`, `file:3:5 -`, `file(3,5):`, `file:[3,5]`, `file: (3, 5):`, and what follows.
fn place(line: &str) -> Option<(At<'_>, &str)> {
    let drive = if line.as_bytes().get(1) == Some(&b':') { 2 } else { 0 };
    for (at, separator) in line.char_indices().skip(drive).filter(|(_, c)| matches!(c, ':' | '(')) {
        let file = &line[..at];
        let after = &line[at + 1..];
        let found = match separator {
            '(' => in_brackets(after, "):"),
            _ if after.starts_with('[') => in_brackets(&after[1..], "]"),
            _ if after.starts_with(" (") => in_brackets(&after[2..], "):"),
            _ => after_colon(after),
        };
        match found {
            Some((line, column, rest)) if is_file(file) => {
                return Some((At { file, line, column }, rest.trim_start()));
            }
            // Only the first colon can follow a file.
            _ if separator == ':' => return None,
            _ => {}
        }
    }
    None
}

fn in_brackets<'a>(text: &'a str, end: &str) -> Option<(u32, Option<u32>, &'a str)> {
    let (numbers, rest) = text.split_once(end)?;
    let mut numbers = numbers.split(',').map(|number| number.trim().parse::<u32>());
    let line = numbers.next()?.ok()?;
    let column = numbers.next().transpose().ok()?;
    Some((line, column, rest))
}

fn after_colon(text: &str) -> Option<(u32, Option<u32>, &str)> {
    let (line, rest) = number(text)?;
    let Some(more) = rest.strip_prefix(':') else {
        return Some((line, None, rest.strip_prefix(" - ").or_else(|| rest.strip_prefix(": "))?));
    };
    let Some((column, after)) = number(more) else { return Some((line, None, more)) };
    let after =
        after.strip_prefix(':').or_else(|| after.strip_prefix(" - ")).or_else(|| after.strip_prefix(' '))?;
    Some((line, Some(column), after))
}

fn number(text: &str) -> Option<(u32, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    Some((text.get(..digits)?.parse().ok()?, text.get(digits..)?))
}

fn is_file(file: &str) -> bool {
    let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
    let extension = name.rsplit_once('.').map(|(_, extension)| extension);
    let known = extension.is_some_and(|extension| {
        !extension.is_empty()
            && extension.bytes().all(|byte| byte.is_ascii_alphanumeric())
            && number(extension).is_none()
    });
    (known || file.contains('/') || matches!(name, "Makefile" | "Dockerfile"))
        && !file.contains(['"', '<', '>', '|', '='])
        && !file.starts_with(' ')
}

/// `error:`, `error TS2322:`, `fatal error:`, `warning`, `C:`.
fn severity(text: &str) -> Option<(Severity, &str)> {
    let words = [
        ("fatal error", Severity::Error),
        ("error", Severity::Error),
        ("fatal", Severity::Error),
        ("warning", Severity::Warning),
        ("note", Severity::Note),
        ("info", Severity::Note),
        ("information", Severity::Note),
        ("style", Severity::Note),
        ("hint", Severity::Note),
        // RuboCop's letters.
        ("E", Severity::Error),
        ("F", Severity::Error),
        ("W", Severity::Warning),
        ("C", Severity::Warning),
        ("R", Severity::Warning),
    ];
    words.iter().find_map(|(word, severity)| {
        let rest = text.strip_prefix(word)?;
        // A code may stand between: `error CS1002: ; expected`.
        let rest = rest
            .strip_prefix(':')
            .or_else(|| rest.strip_prefix(' ').filter(|rest| leading_code(rest).is_some()))?;
        Some((*severity, rest.trim_start()))
    })
}

/// The code, wherever it stands, and the message without it.
fn code(text: &str) -> (Option<String>, &str) {
    let text =
        text.strip_prefix("[Correctable] ").or_else(|| text.strip_prefix("[Corrected] ")).unwrap_or(text);
    // MSBuild ends a line with the project.
    let text = trailing_code(text, '[', ']')
        .filter(|(_, inside)| inside.ends_with("proj"))
        .map_or(text, |(text, _)| text);
    if let Some((code, rest)) = leading_code(text) {
        let rest = rest.trim_start().strip_prefix("[*] ").unwrap_or(rest);
        return (Some(code.to_owned()), trailing_code(rest, '(', ')').map_or(rest, |(message, _)| message));
    }
    let trailing = trailing_code(text, '[', ']').or_else(|| trailing_code(text, '(', ')'));
    match trailing.filter(|(_, code)| is_rule(code)) {
        Some((message, code)) => (Some(code.to_owned()), message),
        None => (None, text),
    }
}

/// `F401 message`, `TS2322: message`, `C0114: message`, `Style/Rule: message`.
fn leading_code(text: &str) -> Option<(&str, &str)> {
    let (word, rest) = text.split_once(' ')?;
    let (bare, colon) = word.strip_suffix(':').map_or((word, false), |word| (word, true));
    let letters = bare.bytes().take_while(u8::is_ascii_uppercase).count();
    let numbered = (1..=8).contains(&letters)
        && bare.len() > letters
        && bare[letters..].bytes().all(|b| b.is_ascii_digit());
    let cop = colon
        && bare.contains('/')
        && bare.starts_with(|c: char| c.is_ascii_uppercase())
        && !bare.contains('.');
    (numbered || cop).then_some((bare, rest))
}

fn trailing_code(text: &str, open: char, close: char) -> Option<(&str, &str)> {
    let (message, inside) = text.trim_end().strip_suffix(close)?.rsplit_once(open)?;
    Some((message.trim_end(), inside))
}

/// A name of a rule: one word, as `-Wunused`, `reportMissing`, `SA1000`, `no-unused-vars`, `Error/no-undef`.
fn is_rule(code: &str) -> bool {
    !code.is_empty()
        && code.bytes().all(|byte| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'/' | b'@' | b'=' | b':' | b'.')
        })
        && code.bytes().any(|byte| byte.is_ascii_alphabetic())
}

/// `Error/no-debugger`, in `ESLint`'s `unix` format.
fn without_severity(code: String) -> String {
    match code.split_once('/') {
        Some(("Error" | "Warning", rule)) => rule.to_owned(),
        _ => code,
    }
}

/// Pylint's letters, and `ESLint`'s words in its `unix` format.
fn severity_of_code(code: &str) -> Option<Severity> {
    if code.starts_with("Warning/") {
        return Some(Severity::Warning);
    }
    if code.starts_with("Error/") || matches!(code, "E999" | "E902") {
        return Some(Severity::Error);
    }
    let pylint = code.len() == 5 && code[1..].bytes().all(|byte| byte.is_ascii_digit());
    match code.as_bytes() {
        [b'E' | b'F', ..] if pylint => Some(Severity::Error),
        _ => None,
    }
}

/// `PHP Parse error:  syntax error, unexpected '}' in a.php on line 3`.
fn php_lint(line: &str) -> Option<Diagnostic> {
    let line = line.strip_prefix("PHP ").unwrap_or(line);
    let rest = line.strip_prefix("Parse error: ").or_else(|| line.strip_prefix("Fatal error: "))?;
    let (rest, number) = rest.rsplit_once(" on line ")?;
    let (message, file) = rest.rsplit_once(" in ")?;
    Some(Diagnostic {
        tool: String::new(),
        severity: Severity::Error,
        code: None,
        message: message.trim().to_owned(),
        file: Some(file.to_owned()),
        line: Some(number.trim().parse().ok()?),
        column: None,
    })
}

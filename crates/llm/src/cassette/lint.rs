//! What is wrong, or odd, in the file of a cassette.

use std::collections::HashSet;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use regex_automata::meta::Regex;
use serde::Serialize;

use super::exchange::Ended;
use super::normalise::PatternError;
use super::policy::MAX_LINE;
use super::read::{Cassette, ReadError};
use super::scan::{Scanner, Secrets};

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// It is refused.
    Error,
    /// It works here, and maybe not elsewhere.
    Warning,
    /// Good to know.
    Notice,
}

/// Something that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// The line, counted from 1, if it is about one.
    pub line: Option<usize>,
    /// What it is.
    pub message: String,
}

/// Looks at every line of a file, and then at the whole.
pub fn lint(path: &Path, secrets: &Secrets) -> Result<Vec<Finding>, LintError> {
    let mut findings = Vec::new();
    let scanner = Scanner::new(secrets)?;
    let home = Regex::new(r"/(?:home|Users)/[A-Za-z0-9_.-]+").map_err(PatternError::from)?;
    let open = |source: std::io::Error| ReadError::Open { path: path.to_owned(), source };
    let mut file = BufReader::new(fs_err::File::open(path).map_err(open)?);
    let mut line = Vec::new();
    let mut homes = HashSet::new();
    for number in 1.. {
        line.clear();
        let read =
            std::io::Read::take(&mut file, MAX_LINE as u64).read_until(b'\n', &mut line).map_err(open)?;
        if read == 0 {
            break;
        }
        let text = String::from_utf8_lossy(&line);
        for kind in scanner.find(&text) {
            findings.push(Finding {
                severity: Severity::Error,
                line: Some(number),
                message: format!("holds {kind}"),
            });
        }
        for hit in home.find_iter(text.as_ref()) {
            let name = &text[hit.range()];
            if homes.insert(name.to_owned()) {
                let message = format!("names the home `{name}` of a machine");
                findings.push(Finding { severity: Severity::Warning, line: Some(number), message });
            }
        }
    }
    match Cassette::open(path) {
        Ok(cassette) => findings.extend(notices(&cassette)),
        Err(error) => findings.push(refusal(&error)),
    }
    findings.sort_by_key(|finding| (finding.severity, finding.line));
    Ok(findings)
}

/// Why a file could not be looked at.
#[derive(Debug, thiserror::Error)]
pub enum LintError {
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The secrets cannot be looked for.
    #[error(transparent)]
    Pattern(#[from] PatternError),
}

fn refusal(error: &ReadError) -> Finding {
    let (line, message) = match error {
        ReadError::Line { line, source } => (Some(*line), format!("is no line of a cassette: {source}")),
        ReadError::Io { line, source } => (Some(*line), format!("cannot be read: {source}")),
        ReadError::TooLarge { line } => (Some(*line), "makes it larger than a cassette may be".to_owned()),
        ReadError::Broken { line, why } => (Some(*line), why.clone()),
        ReadError::Secret(secret) => (Some(secret.line), format!("holds {}", secret.kind)),
        ReadError::Open { .. } | ReadError::Incomplete | ReadError::Pattern(_) => (None, error.to_string()),
    };
    Finding { severity: Severity::Error, line, message }
}

fn notices(cassette: &Cassette) -> Vec<Finding> {
    let notice = |message: String| Finding { severity: Severity::Notice, line: None, message };
    let mut found = Vec::new();
    if cassette.entries.is_empty() {
        found.push(Finding {
            severity: Severity::Warning,
            line: None,
            message: "nothing was recorded".to_owned(),
        });
    }
    for entry in &cassette.entries {
        if entry.response.ended == Ended::Cut {
            found.push(notice(format!("the answer to request {} broke off", entry.number)));
        }
        if entry.response.status >= 400 {
            found.push(notice(format!(
                "request {} was answered with {}",
                entry.number, entry.response.status
            )));
        }
    }
    found
}

//! Evals from elsewhere: what other tools have, and what a repository's own history holds.
//!
//! What has a counterpart here becomes part of an eval; what has none is told as a [`Note`] with its place, and left out. Nothing is dropped
//! without a word, and what comes out is always an eval that [`crate::case::parse`] takes.

mod draft;
mod history;
mod names;
mod node;
mod promptfoo;
mod swe_bench;
mod template;

use rehearsal_core::{Place, SourceError};
use serde::Serialize;

pub use history::{Mined, history, prompt_of};
pub use names::safe as safe_name;
pub use promptfoo::promptfoo;
pub use swe_bench::swe_bench;

/// More cases than anyone runs; a product of a few lists gets there by mistake.
const MOST_CASES: usize = 5_000;
/// A longer eval could not be read again.
const LONGEST_EVAL: usize = 4 << 20;
/// More notes than anyone reads; the rest is counted.
const MOST_NOTES: usize = 500;

/// Where an import comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// The configuration of promptfoo, in YAML.
    Promptfoo,
    /// Instances in the form of SWE-bench, a line of JSON each.
    SweBench,
}

impl Format {
    /// What a text looks like; none if it looks like neither.
    pub fn of(text: &str) -> Option<Self> {
        let text = text.trim_start_matches('\u{feff}').trim_start();
        let first = text.lines().next().unwrap_or_default();
        let is_instance = |line: &str| line.to_ascii_lowercase().contains("\"instance_id\"");
        if first.starts_with('{') && is_instance(first) || first.starts_with('[') && is_instance(text) {
            return Some(Self::SweBench);
        }
        // A configuration may be JSON: then its keys are in quotes, and stand anywhere in a line.
        let is_json = text.starts_with('{');
        let key = |name: &str| {
            is_json && text.contains(&format!("\"{name}\""))
                || text.lines().any(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(':')))
        };
        ["prompts", "providers", "targets", "tests", "defaultTest"]
            .into_iter()
            .any(key)
            .then_some(Self::Promptfoo)
    }
}

/// What is wanted of an import.
pub struct Wanted<'a> {
    /// How the eval is called.
    pub name: &'a str,
    /// Who judges rubrics, if the file does not say it.
    pub judge: Option<&'a str>,
    /// At most so many cases.
    pub most: Option<usize>,
    /// Reads a file that the import names, by its path below the import's own directory.
    pub read: &'a dyn Fn(&str) -> Result<String, String>,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// The eval, as YAML.
    pub text: String,
    /// How many cases it has.
    pub cases: usize,
    /// What was left out or is another now.
    pub notes: Vec<Note>,
}

impl Imported {
    /// How many notes there are of a kind.
    pub fn count(&self, kind: NoteKind) -> usize {
        self.notes.iter().filter(|note| note.kind == kind).count()
    }
}

/// What was left out, or is another now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Note {
    /// What it is about.
    pub kind: NoteKind,
    /// The file, if it is another than the one that was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line in it, from 1; none if that cannot be told.
    pub line: Option<u64>,
    /// The column, from 1.
    pub column: Option<u64>,
    /// What, and why.
    pub text: String,
}

/// What a note is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum NoteKind {
    /// An assertion was left out.
    Assertion,
    /// A case was left out.
    Case,
    /// A setting was left out.
    Setting,
    /// It is there, but not as it was.
    Changed,
}

/// Collects notes: each once, and not more than anyone reads.
#[derive(Debug, Default)]
struct Notes {
    all: Vec<Note>,
    more: usize,
}

impl Notes {
    fn add(&mut self, kind: NoteKind, at: &node::At, text: impl Into<String>) {
        let (line, column) = (at.place.map(|place| place.line), at.place.map(|place| place.column));
        let note =
            Note { kind, file: at.file.as_deref().map(str::to_owned), line, column, text: text.into() };
        if self.all.len() >= MOST_NOTES {
            self.more += 1;
        } else if !self.all.contains(&note) {
            self.all.push(note);
        }
    }

    /// All of them, in the order of the file.
    fn told(mut self) -> Vec<Note> {
        self.all.sort_by(|a, b| (&a.file, a.line, a.column).cmp(&(&b.file, b.line, b.column)));
        if self.more > 0 {
            let text = format!("{} more were left out or changed", self.more);
            self.all.push(Note { kind: NoteKind::Changed, file: None, line: None, column: None, text });
        }
        self.all
    }
}

/// An error that is at no place.
fn nowhere(message: impl Into<String>) -> SourceError {
    SourceError::at(None, message)
}

fn at_line(line: usize, message: impl Into<String>) -> SourceError {
    SourceError::at(Some(Place { line: line as u64, column: 1 }), message)
}

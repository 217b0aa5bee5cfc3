//! What compilers and linters say, in one form: for `check`, and for builds that fail before any test runs.

mod json;
mod many_lines;
mod one_line;
mod python;
mod rustc;
mod tools;

use serde::{Deserialize, Serialize};

use crate::{Line, Lines, Stream, strip_ansi};
pub(crate) use rustc::{RustcText, compiler_message};
pub use tools::{is_known_tool, known_tools};
pub(crate) use tools::{parser_for, tool_of};

/// One thing that a compiler or linter says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Diagnostic {
    /// The tool.
    pub tool: String,
    /// How bad it is.
    pub severity: Severity,
    /// The tool's name of the rule, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// What it says.
    pub message: String,
    /// Where.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
}

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Something to know.
    Note,
    /// It works, but.
    Warning,
    /// It does not.
    Error,
}

/// Takes what a parser finds.
pub(crate) type Take<'a> = &'a mut dyn FnMut(Diagnostic);

/// Reads the output of one tool. The same bytes say the same, however they were cut; memory does not grow with them.
pub(crate) trait DiagnosticParser: Send {
    /// Takes more bytes.
    fn feed(&mut self, stream: Stream, bytes: &[u8], take: Take<'_>);

    /// There are no more.
    fn finish(&mut self, take: Take<'_>);
}

/// Reads lines of one stream.
trait LineReader: Send + Default {
    fn line(&mut self, line: &str, take: Take<'_>);

    fn end(&mut self, take: Take<'_>);
}

/// A parser made of a reader of lines for each stream.
struct ByLine<R> {
    streams: [(Lines, R); 2],
    tool: &'static str,
}

impl<R: LineReader> ByLine<R> {
    fn new(tool: &'static str) -> Self {
        Self { streams: std::array::from_fn(|_| (Lines::default(), R::default())), tool }
    }
}

impl<R: LineReader> DiagnosticParser for ByLine<R> {
    fn feed(&mut self, stream: Stream, bytes: &[u8], take: Take<'_>) {
        let tool = self.tool;
        let (lines, reader) = &mut self.streams[stream as usize];
        lines.feed(bytes, |line| give(reader, line, tool, take));
    }

    fn finish(&mut self, take: Take<'_>) {
        let tool = self.tool;
        for (lines, reader) in &mut self.streams {
            lines.finish(|line| give(reader, line, tool, take));
            reader.end(&mut named(tool, take));
        }
    }
}

fn give<R: LineReader>(reader: &mut R, line: Line<'_>, tool: &'static str, take: Take<'_>) {
    // What is longer was made by a machine, and is no message.
    if line.bytes.len() < 1 << 20 {
        reader.line(&strip_ansi(&line.text()), &mut named(tool, take));
    }
}

/// Readers are shared by tools; the name is put in on the way out.
fn named<'a>(tool: &'static str, take: Take<'a>) -> impl FnMut(Diagnostic) + 'a {
    move |mut diagnostic| {
        tool.clone_into(&mut diagnostic.tool);
        take(diagnostic);
    }
}

#[cfg(test)]
mod tests;

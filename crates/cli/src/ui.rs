//! Words and documents on their way out. The one place that prints.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use anstream::adapter::strip_str;
use anstyle::{AnsiColor, Style};
pub(crate) use rehearsal_app::text::{harmless, one_line};
use serde::Serialize;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The version of every `--json` document. It grows when a field changes its meaning or goes away.
pub(crate) const SCHEMA_VERSION: u32 = 1;

/// A document with its version.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Document<T> {
    /// The version of this form.
    schema_version: u32,
    #[serde(flatten)]
    body: T,
}

impl<T> Document<T> {
    pub(crate) fn new(body: T) -> Self {
        Self { schema_version: SCHEMA_VERSION, body }
    }
}

/// How this call wants to be answered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ui {
    pub(crate) json: bool,
}

pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
pub(crate) const BAD: Style = AnsiColor::Red.on_default();
pub(crate) const ODD: Style = AnsiColor::Yellow.on_default();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const BOLD: Style = Style::new().bold();

impl Ui {
    /// Prints text for people; nothing in JSON mode.
    pub(crate) fn say(self, text: impl std::fmt::Display) {
        if !self.json {
            out(&format!("{text}\n"));
        }
    }

    /// Prints a document, on one line of its own; nothing for people.
    pub(crate) fn document<T: Serialize>(self, body: T) {
        if self.json {
            emit(&Document::new(body));
        }
    }

    /// Tells something on the side, on standard error.
    #[expect(clippy::unused_self, reason = "everything that is said goes through the ui")]
    pub(crate) fn aside(self, text: impl std::fmt::Display) {
        // Nobody reads standard error any more: nothing can be said about that.
        let _ = writeln!(anstream::stderr(), "{text}");
    }

    /// Whether a person looks at a live screen.
    pub(crate) fn is_live(self) -> bool {
        !self.json && std::io::stderr().is_terminal()
    }
}

/// One JSON document on a line.
pub(crate) fn emit<T: Serialize>(document: &T) {
    match serde_json::to_string(document) {
        Ok(text) => out(&format!("{text}\n")),
        Err(error) => {
            let _ = writeln!(anstream::stderr(), "error: {error}");
        }
    }
}

fn out(text: &str) {
    let mut stdout = anstream::stdout().lock();
    heed(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()));
}

/// Whether something that was said did not get out.
static OUTPUT_WAS_LOST: AtomicBool = AtomicBool::new(false);

/// Whether something that was said did not get out: then nothing has succeeded.
pub(crate) fn output_was_lost() -> bool {
    OUTPUT_WAS_LOST.load(Ordering::Relaxed)
}

/// A reader that went away (`| head`) wants no more, which is no error of ours; a full disk is one, and told once.
fn heed(written: io::Result<()>) {
    if let Err(error) = written
        && error.kind() != io::ErrorKind::BrokenPipe
        && !OUTPUT_WAS_LOST.swap(true, Ordering::Relaxed)
    {
        let _ = writeln!(anstream::stderr(), "error: standard output cannot be written: {error}");
    }
}

/// Bytes of another program, on standard output as they came.
pub(crate) fn raw_out(bytes: &[u8]) {
    let mut stdout = std::io::stdout().lock();
    heed(stdout.write_all(bytes).and_then(|()| stdout.flush()));
}

/// The same on standard error.
pub(crate) fn raw_err(bytes: &[u8]) {
    let _ = std::io::stderr().lock().write_all(bytes);
}

/// Text in a style.
pub(crate) fn styled(style: Style, text: impl std::fmt::Display) -> String {
    format!("{style}{text}{style:#}")
}

/// How many columns of a terminal a text takes.
pub(crate) fn columns(text: &str) -> usize {
    text.width()
}

/// Text in at most this many columns of a terminal, on one line.
pub(crate) fn fit(text: &str, width: usize) -> String {
    let line = harmless(text.lines().next().unwrap_or_default());
    if columns(&line) <= width {
        return line;
    }
    let mut used = 0;
    let kept = line.chars().take_while(|c| {
        used += c.width().unwrap_or(0);
        used < width
    });
    let kept: String = kept.collect();
    if width == 0 { String::new() } else { format!("{}…", kept.trim_end()) }
}

/// A line of a terminal: one that is too wide is cut, and loses its styles.
pub(crate) fn fit_styled(text: &str, width: usize) -> String {
    let plain = strip_str(text).to_string();
    if columns(&plain) <= width { text.to_owned() } else { fit(&plain, width) }
}

/// Breaks text at words, so that no line is wider than a terminal. The lines after the first are indented.
pub(crate) fn wrap(text: &str, width: usize) -> String {
    const INDENT: &str = "    ";
    let (mut lines, mut used) = (String::new(), 0);
    for (number, word) in text.split(' ').enumerate() {
        let needed = columns(&strip_str(word).to_string());
        if number == 0 {
            used = needed;
        } else if used + 1 + needed <= width {
            lines.push(' ');
            used += 1 + needed;
        } else {
            lines.push('\n');
            lines.push_str(INDENT);
            used = INDENT.len() + needed;
        }
        lines.push_str(word);
    }
    lines
}

/// The columns and rows of the terminal that standard error is.
pub(crate) fn terminal_size() -> (usize, usize) {
    let size = rustix::termios::tcgetwinsize(std::io::stderr()).ok();
    let size = size.filter(|size| size.ws_col > 0 && size.ws_row > 0);
    size.map_or((80, 24), |size| (size.ws_col.into(), size.ws_row.into()))
}

/// Columns under headings, aligned. Widths count characters, not styles, so cells are plain text.
pub(crate) fn table(headings: &[&str], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count())
            .chain(headings.get(column).map(|heading| heading.len()))
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..headings.len()).map(width).collect();
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let padded: Vec<String> =
            cells.zip(&widths).map(|(cell, width)| format!("{cell:<width$}", width = *width)).collect();
        padded.join("  ").trim_end().to_owned()
    };
    let mut lines = vec![styled(BOLD, line(&mut headings.iter().copied()))];
    lines.extend(rows.iter().map(|row| line(&mut row.iter().map(String::as_str))));
    lines.join("\n")
}

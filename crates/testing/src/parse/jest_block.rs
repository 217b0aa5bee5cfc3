//! One failure as Jest prints it for people: a message, an excerpt of the source, and frames.

use super::js_failure;
use super::place::{is_own, js_frame, leading};
use crate::{FailureKind, Place};

/// What a printed failure says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Block {
    pub message: String,
    pub stack: String,
    pub file: Option<String>,
    pub line: Option<u32>,
}

impl Block {
    /// Reads the lines below a `●`. `suite` is the file they are of.
    pub(super) fn read(text: &str, suite: &str) -> Self {
        let body = details(text);
        let frames: Vec<&str> = body.lines().filter(|line| is_frame(line)).collect();
        let at = frames.iter().filter_map(|line| js_frame(line)).find(is_own);
        let at =
            at.or_else(|| syntax_error(body)).or_else(|| named_line(body)).or_else(|| excerpt(body, suite));
        Self {
            message: message(body),
            stack: frames.iter().map(|line| line.trim()).collect::<Vec<_>>().join("\n"),
            file: at.and_then(|at| at.file).map(str::to_owned),
            line: at.and_then(|at| at.line),
        }
    }

    pub(super) fn place(&self) -> Place<'_> {
        Place { file: self.file.as_deref(), line: self.line }
    }

    pub(super) fn kind(&self) -> FailureKind {
        js_failure::kind_of_text(&self.message, &self.stack)
    }
}

/// Jest explains at length that it cannot parse a file; what matters stands below.
fn details(text: &str) -> &str {
    let explained =
        text.contains("Jest encountered an unexpected token") || text.contains("Jest failed to parse");
    match text.split_once("Details:") {
        Some((_, details)) if explained => details,
        _ => text,
    }
}

fn message(body: &str) -> String {
    let lines = body.lines().skip_while(|line| line.trim().is_empty());
    let lines: Vec<&str> = lines.take_while(|line| !is_frame(line) && !is_excerpt(line)).collect();
    let written = lines.iter().filter(|line| !line.trim().is_empty());
    let indent = written.map(|line| line.len() - line.trim_start().len()).min().unwrap_or(0);
    let lines: Vec<&str> = lines.iter().map(|line| line.get(indent..).unwrap_or("").trim_end()).collect();
    lines.join("\n").trim_end().to_owned()
}

fn is_frame(line: &str) -> bool {
    line.starts_with("      ") && line.trim_start().starts_with("at ")
}

/// `> 5 |  code`, `  6 |  code` or `    |   ^`.
fn is_excerpt(line: &str) -> bool {
    line.starts_with("    ") && excerpt_line(line).is_some()
}

/// Whether it is marked, and its number, if it has one.
fn excerpt_line(line: &str) -> Option<(bool, Option<u32>)> {
    let line = line.trim_start();
    let (marked, line) = line.strip_prefix('>').map_or((false, line), |rest| (true, rest.trim_start()));
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let rest = line.get(digits..)?.trim_start();
    let bar = rest.starts_with("| ") || rest == "|";
    (bar && (digits > 0 || rest.trim_end().ends_with('^'))).then(|| (marked, line[..digits].parse().ok()))
}

/// The marked line of the excerpt.
fn excerpt<'a>(body: &str, suite: &'a str) -> Option<Place<'a>> {
    let marked =
        body.lines().filter(|line| is_excerpt(line)).filter_map(excerpt_line).find(|(marked, _)| *marked);
    Some(Place::new(suite, marked?.1?))
}

/// `SyntaxError: /p/test/a.js: Unexpected token (2:12)`.
fn syntax_error(body: &str) -> Option<Place<'_>> {
    let line = body.lines().find_map(|line| line.trim_start().strip_prefix("SyntaxError: "))?;
    let (file, rest) = line.split_once(": ")?;
    let (number, _) = rest.rsplit_once('(')?.1.split_once(':')?;
    Some(Place::new(file, number.parse().ok()?)).filter(is_own)
}

/// `/p/test/a.js:1` alone on its line, as Node.js prints it above a syntax error.
fn named_line(body: &str) -> Option<Place<'_>> {
    body.lines().find_map(|line| {
        let (place, rest) = leading(line.trim())?;
        let named =
            place.file.is_some_and(|file| file.contains('/') && file.contains('.') && !file.contains(' '));
        (named && rest.is_empty() && is_own(&place)).then_some(place)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_frames_and_place_are_told_apart() {
        let block = Block::read(
            "\n    expect(received).toBe(expected)\n\n    Expected: 5\n    Received: 4\n\n    > 5 |     x\n        |     ^\n      6 |   });\n\n      at Object.toBe (test/cart.test.js:5:43)\n",
            "test/cart.test.js",
        );
        assert_eq!(block.message, "expect(received).toBe(expected)\n\nExpected: 5\nReceived: 4");
        assert_eq!(block.place(), Place::new("test/cart.test.js", 5));
        assert_eq!(block.stack, "at Object.toBe (test/cart.test.js:5:43)");
    }

    #[test]
    fn a_syntax_error_is_found_below_the_explanation() {
        let block = Block::read(
            "    Jest encountered an unexpected token\n\n    Jest failed to parse a file.\n\n    Details:\n\n    SyntaxError: /p/a.test.js: Unexpected token (2:12)\n\n    > 2 |   const x = ;\n\n      at constructor (../node_modules/@babel/parser/src/parse-error.ts:96:45)\n",
            "a.test.js",
        );
        assert_eq!(block.place(), Place::new("/p/a.test.js", 2));
        assert_eq!(block.message, "SyntaxError: /p/a.test.js: Unexpected token (2:12)");
        let block = Block::read(
            "    Jest encountered an unexpected token\n    Details:\n\n    /p/esm.test.js:1\n    import x;\n    ^^^^^^\n\n    SyntaxError: Cannot use import statement outside a module\n\n      at Runtime.x (../node_modules/a.js:1:1)",
            "esm.test.js",
        );
        assert_eq!(block.place(), Place::new("/p/esm.test.js", 1));
    }
}

//! Diagnostics that go over several lines: rustc and its followers, `ESLint`'s `stylish`, `ShellCheck`, Biome, Prettier.

use super::rustc::{RustcText, place_of};
use super::{Diagnostic, LineReader, Severity, Take, one_line};

/// rustc's text; with `--message-format=short` it is one line.
#[derive(Debug, Default)]
pub(super) struct Rustc(RustcText);

impl LineReader for Rustc {
    fn line(&mut self, line: &str, take: Take<'_>) {
        if line.starts_with('{') {
            if let Some(diagnostic) = super::compiler_message(line) {
                take(diagnostic);
            }
        } else if let Some(diagnostic) = self.0.line(line).filter(is_finding) {
            take(diagnostic);
        } else if !line.starts_with(' ')
            && let Some(diagnostic) = one_line::diagnostic(line, Severity::Error)
        {
            take(diagnostic);
        }
    }

    fn end(&mut self, take: Take<'_>) {
        if let Some(diagnostic) = self.0.end().filter(is_finding) {
            take(diagnostic);
        }
    }
}

/// What only counts the others is none.
fn is_finding(diagnostic: &Diagnostic) -> bool {
    let summaries = ["aborting due to", "could not compile", "build failed"];
    let counts = diagnostic.message.contains(" generated ") && diagnostic.message.contains(" warning");
    !counts && !summaries.iter().any(|begin| diagnostic.message.starts_with(begin))
}

/// A file, then its findings: `  3:5  error  message  rule`.
#[derive(Debug, Default)]
pub(super) struct EslintStylish {
    file: Option<String>,
}

impl LineReader for EslintStylish {
    fn line(&mut self, line: &str, take: Take<'_>) {
        if line.trim().is_empty() {
            self.file = None;
        } else if !line.starts_with(' ') && !line.starts_with('✖') {
            self.file = Some(line.trim_end().to_owned());
            if let Some(diagnostic) = one_line::diagnostic(line, Severity::Warning) {
                take(diagnostic);
            }
        } else if let Some(file) = &self.file
            && let Some(diagnostic) = stylish(file, line)
        {
            take(diagnostic);
        }
    }

    fn end(&mut self, _: Take<'_>) {}
}

fn stylish(file: &str, line: &str) -> Option<Diagnostic> {
    let (place, rest) = line.trim().split_once("  ")?;
    let (number, column) = place.split_once(':')?;
    let (word, rest) = rest.trim_start().split_once("  ")?;
    let severity = match word {
        "error" => Severity::Error,
        "warning" => Severity::Warning,
        _ => return None,
    };
    let (message, code) = match rest.trim().rsplit_once("  ") {
        Some((message, code)) => (message.trim_end(), Some(code.to_owned())),
        None => (rest.trim(), None),
    };
    Some(Diagnostic {
        tool: String::new(),
        severity,
        code,
        message: message.to_owned(),
        file: Some(file.to_owned()),
        line: Some(number.parse().ok()?),
        column: column.parse().ok(),
    })
}

/// `F401 [*] message`, and below it ` --> a.py:1:8`: Ruff's full output; its concise one is one line.
#[derive(Debug, Default)]
pub(super) struct Ruff {
    title: Option<(Option<String>, String)>,
}

impl LineReader for Ruff {
    fn line(&mut self, line: &str, take: Take<'_>) {
        if let Some(place) = line.trim_start().strip_prefix("--> ") {
            let Some((code, message)) = self.title.take() else { return };
            let (file, line, column) = place_of(place);
            let severity = if code.is_none() { Severity::Error } else { Severity::Warning };
            return take(Diagnostic { tool: String::new(), severity, code, message, file, line, column });
        }
        if line.starts_with(' ') || line.trim().is_empty() {
            return;
        }
        self.title = None;
        if let Some(diagnostic) = one_line::diagnostic(line, Severity::Warning) {
            let broken = diagnostic.message.strip_prefix("invalid-syntax: ").map(str::to_owned);
            return take(match broken {
                Some(message) => Diagnostic { severity: Severity::Error, message, ..diagnostic },
                None => diagnostic,
            });
        }
        let (code, rest) = line.split_once(' ').unwrap_or((line, ""));
        let numbered = code.starts_with(|c: char| c.is_ascii_uppercase())
            && code.ends_with(|c: char| c.is_ascii_digit());
        if let Some(message) =
            line.strip_prefix("invalid-syntax: ").or_else(|| line.strip_prefix("SyntaxError: "))
        {
            self.title = Some((None, message.to_owned()));
        } else if numbered {
            self.title = Some((Some(code.to_owned()), rest.trim_start_matches("[*] ").to_owned()));
        }
    }

    fn end(&mut self, _: Take<'_>) {}
}

/// `In a.sh line 3:`, the source, and below it `^-- SC2086 (info): message`.
#[derive(Debug, Default)]
pub(super) struct ShellCheck {
    at: Option<(String, u32)>,
}

impl LineReader for ShellCheck {
    fn line(&mut self, line: &str, take: Take<'_>) {
        if let Some((file, number)) =
            line.strip_prefix("In ").and_then(|rest| rest.strip_suffix(':')?.rsplit_once(" line "))
        {
            self.at = number.parse().ok().map(|number| (file.to_owned(), number));
            return;
        }
        if let Some(diagnostic) = self.below(line) {
            return take(diagnostic);
        }
        if let Some(diagnostic) = one_line::diagnostic(line, Severity::Warning) {
            take(diagnostic);
        }
    }

    fn end(&mut self, _: Take<'_>) {}
}

impl ShellCheck {
    fn below(&self, line: &str) -> Option<Diagnostic> {
        let (file, number) = self.at.as_ref()?;
        let mark = line.find('^')?;
        let rest = line[mark..].trim_start_matches(['^', '-']).trim_start();
        let (code, rest) = rest.split_once(" (")?;
        let (level, message) = rest.split_once("): ")?;
        let severity = match level {
            "error" => Severity::Error,
            "warning" => Severity::Warning,
            _ => Severity::Note,
        };
        code.starts_with("SC").then(|| Diagnostic {
            tool: String::new(),
            severity,
            code: Some(code.to_owned()),
            message: message.to_owned(),
            file: Some(file.clone()),
            line: Some(*number),
            column: u32::try_from(mark + 1).ok(),
        })
    }
}

/// `a.ts:3:5 lint/suspicious/noDebugger FIXABLE ━━━━`, and below it `  × message`.
#[derive(Debug, Default)]
pub(super) struct Biome {
    title: Option<Diagnostic>,
}

impl LineReader for Biome {
    fn line(&mut self, line: &str, take: Take<'_>) {
        if line.ends_with('━') {
            self.title = biome_title(line);
            return;
        }
        let said = line.trim_start();
        let marks = [
            ("× ", Severity::Error),
            ("✖ ", Severity::Error),
            ("! ", Severity::Warning),
            ("⚠ ", Severity::Warning),
            ("ℹ ", Severity::Note),
            ("i ", Severity::Note),
        ];
        if let Some((message, severity)) =
            marks.iter().find_map(|(mark, severity)| Some((said.strip_prefix(mark)?, *severity)))
            && let Some(title) = self.title.take()
        {
            take(Diagnostic { severity, message: message.to_owned(), ..title });
        }
    }

    fn end(&mut self, _: Take<'_>) {}
}

fn biome_title(line: &str) -> Option<Diagnostic> {
    let mut words = line.split(' ');
    // The last title names the command.
    let place = words.next().filter(|place| place.contains(['.', '/']))?;
    let code = words.next().filter(|code| !code.starts_with('━'));
    let (file, number, column) = match place_of(place) {
        (Some(file), number, column) => (file, number, column),
        _ => (place.to_owned(), None, None),
    };
    Some(Diagnostic {
        tool: String::new(),
        severity: Severity::Error,
        code: code.map(str::to_owned),
        message: String::new(),
        file: Some(file),
        line: number,
        column,
    })
}

/// `[warn] a.js` is not formatted; `[error] a.js: SyntaxError: Unexpected token (1:2)` cannot be.
#[derive(Debug, Default)]
pub(super) struct Prettier;

impl LineReader for Prettier {
    fn line(&mut self, line: &str, take: Take<'_>) {
        if let Some(file) = line.strip_prefix("[warn] ") {
            if !file.contains(' ')
                || file.rsplit_once('.').is_some_and(|(_, extension)| {
                    extension.len() < 6 && !extension.is_empty() && !extension.contains(' ')
                })
            {
                take(prettier(Severity::Warning, file, "is not formatted", None, None));
            }
        } else if let Some((file, message)) =
            line.strip_prefix("[error] ").and_then(|rest| rest.split_once(": "))
        {
            let at =
                message.strip_suffix(')').and_then(|message| message.rsplit_once(" (")?.1.split_once(':'));
            let number = |text: &str| text.parse().ok();
            let (line, column) = at.map_or((None, None), |(line, column)| (number(line), number(column)));
            take(prettier(Severity::Error, file, message, line, column));
        }
    }

    fn end(&mut self, _: Take<'_>) {}
}

fn prettier(
    severity: Severity,
    file: &str,
    message: &str,
    line: Option<u32>,
    column: Option<u32>,
) -> Diagnostic {
    let (tool, file, message) = (String::new(), Some(file.to_owned()), message.to_owned());
    Diagnostic { tool, severity, code: None, message, file, line, column }
}

//! Python's compiler: `python -m compileall`.

use super::one_line::diagnostic;
use super::{Diagnostic, LineReader, Severity, Take};

/// `  File "a.py", line 3`, the line, a caret, and `SyntaxError: invalid syntax`.
#[derive(Debug, Default)]
pub(super) struct PythonCompiler {
    file: Option<String>,
    line: Option<u32>,
}

impl LineReader for PythonCompiler {
    fn line(&mut self, line: &str, take: Take<'_>) {
        if let Some(file) =
            line.strip_prefix("*** Error compiling '").and_then(|rest| rest.strip_suffix("'..."))
        {
            (self.file, self.line) = (Some(file.to_owned()), None);
        } else if let Some((file, number)) = place(line) {
            (self.file, self.line) = (Some(file.to_owned()), number);
        } else if let Some(message) = raised(line) {
            let (file, line) = (self.file.take(), self.line.take());
            let (tool, message) = (String::new(), message.to_owned());
            take(Diagnostic {
                tool,
                severity: Severity::Error,
                code: None,
                message,
                file,
                line,
                column: None,
            });
        } else if line.contains("Warning: ")
            && let Some(warning) = diagnostic(line, Severity::Warning)
        {
            take(warning);
        }
    }

    fn end(&mut self, _: Take<'_>) {}
}

fn place(line: &str) -> Option<(&str, Option<u32>)> {
    let (file, rest) =
        line.trim_start_matches('*').trim_start().strip_prefix("File \"")?.split_once("\", line ")?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    Some((file, rest[..digits].parse().ok()))
}

/// The last line of a traceback.
fn raised(line: &str) -> Option<&str> {
    let (name, _) = line.trim_start_matches('*').trim_start().split_once(": ")?;
    let is_error = name.ends_with("Error") && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_error.then(|| line.trim_start_matches('*').trim())
}

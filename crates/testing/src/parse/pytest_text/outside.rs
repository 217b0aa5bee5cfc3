//! What goes wrong outside of any test: configuration, `conftest.py`, pytest itself, the death of the process.

use crate::parse::python_crash::PythonCrash;
use crate::parse::python_failure;
use crate::{FailureKind, HeadTail, Problem, ProblemScope};

const ROOM: usize = 4 << 10;
/// More of them say no more.
const MOST: usize = 20;

/// What was seen.
#[derive(Debug, Default)]
pub(super) struct Outside {
    pub crash: Option<PythonCrash>,
    problems: Vec<Problem>,
    reading: Option<Reading>,
    internal: Option<HeadTail>,
}

/// A problem that goes over several lines.
#[derive(Debug)]
struct Reading {
    title: String,
    kind: FailureKind,
    text: HeadTail,
    lines: usize,
}

impl Outside {
    /// Takes a line; false if it is none of this.
    pub(super) fn line(&mut self, line: &str) -> bool {
        if let Some(crash) = &mut self.crash
            && crash.line(line)
        {
            return true;
        }
        if let Some(crash) = PythonCrash::begins(line) {
            // With characters for progress, they stand in the same line.
            let progress = !line.starts_with('+') && !line.starts_with("Fatal");
            self.crash = Some(crash);
            return !progress;
        }
        if let Some(text) = line.strip_prefix("INTERNALERROR>") {
            let internal = self.internal.get_or_insert_with(|| HeadTail::new(ROOM));
            internal.push_line(text.strip_prefix(' ').unwrap_or(text));
            return true;
        }
        self.problem(line)
    }

    fn problem(&mut self, line: &str) -> bool {
        let conftest = line.starts_with("ImportError while loading conftest '");
        let usage = line.starts_with("ERROR: usage: ");
        let error = line.strip_prefix("ERROR: ");
        let stopped = line.starts_with("!!!") && line.ends_with("!!!");
        if conftest || usage || error.is_some() || stopped {
            self.close();
            let title = if stopped { line.trim_matches(['!', ' ']) } else { error.unwrap_or(line) };
            if stopped && !(title == "KeyboardInterrupt" || title.starts_with("_pytest.outcomes.Exit")) {
                return true;
            }
            let kind = if conftest { FailureKind::Import } else { FailureKind::Config };
            let kind = if stopped { FailureKind::Error } else { kind };
            self.reading =
                Some(Reading { title: title.to_owned(), kind, text: HeadTail::new(ROOM), lines: 0 });
            return true;
        }
        let Some(reading) = &mut self.reading else { return false };
        if line.starts_with("===") || line.trim().is_empty() || reading.lines > 200 {
            self.close();
            return false;
        }
        reading.lines += 1;
        reading.text.push_line(line);
        true
    }

    fn close(&mut self) {
        let Some(reading) = self.reading.take() else { return };
        let text = reading.text.into_text();
        let at = python_failure::place(&text);
        let usage =
            text.lines().find_map(|line| line.split_once(": error: ")).map(|(_, error)| error.to_owned());
        let message = python_failure::marked_message(&text).or(usage).unwrap_or(reading.title);
        if self.problems.len() < MOST {
            self.problems.push(Problem::new(ProblemScope::Run, "", Some(reading.kind), message).at(at));
        }
    }

    pub(super) fn problems(&mut self) -> Vec<Problem> {
        self.close();
        if let Some(internal) = self.internal.take() {
            let text = internal.into_text();
            let at = python_failure::place(&text);
            self.problems.push(
                Problem::new(
                    ProblemScope::Run,
                    "",
                    Some(FailureKind::Error),
                    format!("pytest failed itself: {}", python_failure::exception(&text)),
                )
                .at(at),
            );
        }
        std::mem::take(&mut self.problems)
    }
}

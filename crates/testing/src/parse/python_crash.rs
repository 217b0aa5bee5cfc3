//! The death of a Python process, as the interpreter's fault handler or `pytest-timeout` prints it.

use super::place::is_own;
use super::python_failure::file_line;
use crate::{FailureKind, HeadTail, Place};

const ROOM: usize = 4 << 10;

/// What was printed of a death.
#[derive(Debug)]
pub(super) struct PythonCrash {
    pub message: String,
    pub kind: FailureKind,
    /// The project's own deepest frame.
    file: Option<String>,
    line: Option<u32>,
    /// The project's own function that is a test: its file and name.
    pub test: Option<(String, String)>,
    stack: HeadTail,
    /// Whether the frames of the thread that matters are being read, and whether the deepest comes first.
    reading: Reading,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    Header,
    DeepestFirst,
    DeepestLast,
    OtherThread,
    Done,
}

impl PythonCrash {
    /// Recognises the first line.
    pub(super) fn begins(line: &str) -> Option<Self> {
        let fatal = line.starts_with("Fatal Python error: ") || line.starts_with("Windows fatal exception: ");
        let timeout = line.ends_with("+++ Timeout ++++++++++++++++++++++++++++++++++++")
            || (line.contains("+++ Timeout +++") && line.ends_with('+'));
        let kind = if fatal { FailureKind::Crash } else { FailureKind::Timeout };
        let message = if fatal { line.trim_end() } else { "Timeout (pytest-timeout ended the process)" };
        (fatal || timeout).then(|| Self {
            message: message.to_owned(),
            kind,
            file: None,
            line: None,
            test: None,
            stack: HeadTail::new(ROOM),
            reading: Reading::Header,
        })
    }

    /// Takes a line that follows; false if it is none of it.
    pub(super) fn line(&mut self, line: &str) -> bool {
        let title = line.trim_matches(['~', '+', ' ']);
        if line.starts_with("Current thread ") || (line.starts_with("Stack (most recent call first)")) {
            self.reading = Reading::DeepestFirst;
        } else if line.starts_with("Thread 0x") || (line.starts_with("~~") && title.starts_with("Stack of "))
        {
            let main = title.starts_with("Stack of MainThread");
            self.reading = if main { Reading::DeepestLast } else { Reading::OtherThread };
        } else if line.starts_with("++") && title == "Timeout" {
            self.reading = Reading::Done;
        } else if let Some(place) = file_line(line) {
            self.frame(place, line);
        } else {
            let part = line.starts_with("    ") || line.is_empty() || line.starts_with("~~");
            return part || self.reading == Reading::Header;
        }
        self.stack.push_line(line);
        true
    }

    fn frame(&mut self, place: Place<'_>, line: &str) {
        let first = self.reading == Reading::DeepestFirst;
        if !(first || self.reading == Reading::DeepestLast) || !is_own(&place) {
            return;
        }
        let Some(file) = place.file else { return };
        if self.file.is_none() || !first {
            self.file = Some(file.to_owned());
            self.line = place.line;
        }
        let function = line.rsplit(" in ").next().unwrap_or_default().trim();
        if function.starts_with("test") && (self.test.is_none() || first) {
            self.test = Some((file.to_owned(), function.to_owned()));
        }
    }

    pub(super) fn place(&self) -> Place<'_> {
        Place { file: self.file.as_deref(), line: self.line }
    }

    pub(super) fn stack(&self) -> String {
        self.stack.clone().into_text()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thread_that_died_tells_the_test() {
        let mut crash = PythonCrash::begins("Fatal Python error: Segmentation fault").unwrap();
        for line in [
            "",
            "Thread 0x1 (most recent call first):",
            "  File \"/p/src/server.py\", line 3 in run",
            "",
            "Current thread 0x2 (most recent call first):",
            "  File \"/usr/lib/python3/ctypes/__init__.py\", line 519 in string_at",
            "  File \"/p/tests/test_crash.py\", line 9 in test_segv",
        ] {
            assert!(crash.line(line), "{line}");
        }
        assert!(!crash.line("collected 3 items"));
        assert_eq!(crash.place(), Place::new("/p/tests/test_crash.py", 9));
        assert_eq!(crash.test, Some(("/p/tests/test_crash.py".to_owned(), "test_segv".to_owned())));
    }

    #[test]
    fn a_timeout_tells_where_the_main_thread_was() {
        let mut crash = PythonCrash::begins("tests/t.py .F+++++++ Timeout +++++++").unwrap();
        for line in [
            "~~~~ Stack of MainThread (1) ~~~~",
            "  File \"/p/tests/test_slow.py\", line 14, in test_hangs",
            "    wait()",
            "  File \"/p/src/shop.py\", line 3, in wait",
            "+++++ Timeout +++++",
        ] {
            assert!(crash.line(line), "{line}");
        }
        assert_eq!((crash.place(), crash.kind), (Place::new("/p/src/shop.py", 3), FailureKind::Timeout));
        assert_eq!(crash.test.unwrap().1, "test_hangs");
    }
}

//! What Perl's tests say on standard error: why a test failed, and why a whole file died.

use super::reader::Reader;
use crate::parse::Stream;
use crate::{Event, Failure, FailureKind, Finished, Place, Problem, ProblemScope, Sink, TestId, TestStatus};

const MOST: usize = 2000;
const LONGEST: usize = 8 << 10;

/// `#   Failed test 'math'`, `#   at t/cart.t line 4.` and the lines below.
#[derive(Debug, Default, Clone)]
pub(super) struct Reason {
    pub name: String,
    pub file: String,
    pub line: u32,
    pub text: String,
    used: bool,
}

/// What was said on both streams. Each is read apart, so that the way in which they are mixed does not matter.
#[derive(Debug, Default)]
pub(super) struct Diagnostics {
    err: Said,
    out: Said,
}

#[derive(Debug, Default)]
struct Said {
    reasons: Vec<Reason>,
    /// Whether the last line was part of the last reason.
    open: bool,
    /// `boom at t/x.t line 5.`, outside of comments.
    deaths: Vec<Reason>,
    /// The names of parts that failed: the test that they are parts of comes after them.
    parts: String,
    /// Whether a file said that it ended early.
    died: bool,
}

impl Diagnostics {
    pub(super) fn line(&mut self, stream: Stream, line: &str) {
        match stream {
            Stream::Out => self.out.line(line),
            Stream::Err => self.err.line(line),
        }
    }

    /// Why a test failed; each reason is given once, so that tests of one name have their own.
    fn reason(&mut self, file: &str, name: &str) -> Option<&Reason> {
        let nameless = name.strip_prefix("test ").is_some_and(|number| number.parse::<u64>().is_ok());
        self.take(|reason| {
            let named = reason.name == name || (nameless && reason.name.is_empty());
            named && (file.is_empty() || reason.file.is_empty() || reason.file == file)
        })
    }

    /// The next reason of a file, where only numbers are told.
    pub(super) fn next_of(&mut self, file: &str) -> Option<&Reason> {
        self.take(|reason| reason.file == file)
    }

    fn take(&mut self, fits: impl Fn(&Reason) -> bool) -> Option<&Reason> {
        let mut all = self.err.reasons.iter_mut().chain(&mut self.out.reasons);
        let reason = all.find(|reason| !reason.used && fits(reason))?;
        reason.used = true;
        Some(reason)
    }

    /// Every reason that belongs to no test we know.
    pub(super) fn unused(&self) -> impl Iterator<Item = &Reason> {
        let all = self.err.reasons.iter().chain(&self.out.reasons);
        all.filter(|reason| !reason.used && !reason.name.is_empty())
    }

    /// The last words of a file.
    pub(super) fn death_of(&self, file: &str) -> Option<(String, u32)> {
        let mut deaths = self.err.deaths.iter().rev().chain(self.out.deaths.iter().rev());
        let death = deaths.find(|death| death.file == file)?;
        Some((format!("{} at {} line {}.", death.text, death.file, death.line), death.line))
    }

    /// The end of a test program that died, as a problem.
    pub(super) fn death(&self) -> Option<Problem> {
        let death = self.err.deaths.last().or(self.out.deaths.last());
        let death = death.filter(|_| self.err.died || self.out.died)?;
        Some(
            Problem::new(ProblemScope::Run, death.file.clone(), Some(FailureKind::Crash), death.text.clone())
                .placed(Some(death.file.clone()), Some(death.line)),
        )
    }
}

impl Said {
    fn line(&mut self, line: &str) {
        let Some(comment) = line.strip_prefix('#') else {
            self.open = false;
            self.part(line);
            if let Some((message, file, at)) = place(line)
                && !line.starts_with(' ')
                && self.deaths.len() < MOST
            {
                let text = message.to_owned();
                self.deaths.push(Reason { file, line: at, text, ..Reason::default() });
            }
            return;
        };
        if let Some(failed) = comment.trim_start().strip_prefix("Failed test") {
            self.begin(failed.trim());
        } else if comment.trim_start().starts_with("Failed (TODO) test") || comment.starts_with(" Subtest: ")
        {
            self.open = false;
        } else if comment.starts_with(" Looks like") {
            self.open = false;
            self.died |= comment.contains("your test exited with") || comment.contains("your test died");
        } else if self.open {
            self.more(comment);
        }
    }

    /// `    #   Failed test 'inner'`.
    fn part(&mut self, line: &str) {
        let failed =
            line.trim_start().strip_prefix('#').and_then(|it| it.trim_start().strip_prefix("Failed test "));
        if let Some(name) = failed.filter(|_| line.starts_with("    ") && self.parts.len() < LONGEST) {
            let between = if self.parts.is_empty() { "" } else { "\n" };
            self.parts.push_str(between);
            self.parts.push_str(name.trim().trim_matches('\''));
        }
    }

    fn begin(&mut self, failed: &str) {
        self.open = self.reasons.len() < MOST;
        if !self.open {
            return;
        }
        // Without a name the place stands on the same line.
        let name = failed.strip_prefix('\'').and_then(|name| name.rfind('\'').map(|end| &name[..end]));
        let text = std::mem::take(&mut self.parts);
        let mut reason = Reason { name: name.unwrap_or_default().to_owned(), text, ..Reason::default() };
        if let Some((_, file, line)) = place(failed).filter(|_| name.is_none()) {
            (reason.file, reason.line) = (file, line);
        }
        self.reasons.push(reason);
    }

    fn more(&mut self, comment: &str) {
        let Some(reason) = self.reasons.last_mut() else { return };
        if reason.file.is_empty()
            && let Some((_, file, line)) = place(&format!(" {}", comment.trim()))
        {
            (reason.file, reason.line) = (file, line);
        } else if reason.text.len() < LONGEST {
            if !reason.text.is_empty() {
                reason.text.push('\n');
            }
            reason.text.push_str(comment.trim());
        }
    }
}

/// `message at t/x.t line 5.`
fn place(text: &str) -> Option<(&str, String, u32)> {
    let text = text.trim_end().strip_suffix('.').unwrap_or(text.trim_end());
    let (rest, line) = text.rsplit_once(" line ")?;
    let (message, file) = match rest.rsplit_once(" at ") {
        Some(parts) => parts,
        None => ("", rest.trim_start().strip_prefix("at ")?),
    };
    Some((message, file.to_owned(), line.parse().ok()?))
}

/// Holds failures back until their reasons are known: they come on another stream, earlier or later.
#[derive(Debug)]
pub(super) struct Patient {
    pub diagnostics: Diagnostics,
    waiting: Vec<Waiting>,
    waits: bool,
}

#[derive(Debug)]
struct Waiting {
    suite: String,
    name: String,
    ms: u64,
    message: String,
    stack: String,
}

impl Patient {
    pub(super) fn new(waits: bool) -> Self {
        Self { diagnostics: Diagnostics::default(), waiting: Vec::new(), waits }
    }

    /// Reads a line of the stream itself; reasons may stand there too.
    pub(super) fn line(&mut self, line: &str, reader: &mut Reader, sink: &mut dyn Sink) {
        if self.waits && line.starts_with('#') {
            self.diagnostics.line(Stream::Out, line);
        }
        reader.line(line, &mut self.before(sink));
    }

    pub(super) fn before<'a>(&'a mut self, sink: &'a mut dyn Sink) -> impl Sink + 'a {
        Before { patient: self, sink }
    }

    pub(super) fn finish(&mut self, sink: &mut dyn Sink) {
        for waiting in std::mem::take(&mut self.waiting) {
            let reason = self.diagnostics.reason(&waiting.suite, &waiting.name);
            waiting.tell(reason, sink);
        }
    }
}

struct Before<'a> {
    patient: &'a mut Patient,
    sink: &'a mut dyn Sink,
}

impl Sink for Before<'_> {
    fn event(&mut self, event: Event<'_>) {
        let waiting = &mut self.patient.waiting;
        match event {
            Event::Finished(finished)
                if finished.status == TestStatus::Fail
                    && finished.failure.as_ref().is_none_or(|failure| failure.at.file.is_none())
                    && self.patient.waits
                    && waiting.len() < MOST =>
            {
                waiting.push(Waiting::of(&finished));
            }
            other => self.sink.event(other),
        }
    }
}

impl Waiting {
    fn of(finished: &Finished<'_>) -> Self {
        let failure = finished.failure.clone().unwrap_or_default();
        Self {
            suite: finished.test.suite.to_owned(),
            name: finished.test.name.to_owned(),
            ms: finished.ms,
            message: failure.message.to_owned(),
            stack: failure.stack.to_owned(),
        }
    }

    fn tell(mut self, reason: Option<&Reason>, sink: &mut dyn Sink) {
        let mut at = Place::default();
        if let Some(reason) = reason {
            if reason.text.contains(self.message.trim()) {
                self.message.clone_from(&reason.text);
            } else if !reason.text.is_empty() {
                self.message = format!("{}\n{}", reason.text, self.message);
            }
            at = reason.place();
        }
        let failure = Failure {
            kind: Some(FailureKind::Assertion),
            message: &self.message,
            stack: &self.stack,
            at,
            expected: value(&self.message, "expected: "),
            actual: value(&self.message, "got: "),
        };
        let test = TestId { suite: &self.suite, name: &self.name };
        sink.event(Event::Finished(Finished::new(test, TestStatus::Fail, self.ms).failure(failure)));
    }
}

impl Reason {
    pub(super) fn place(&self) -> Place<'_> {
        if self.file.is_empty() { Place::default() } else { Place::new(&self.file, self.line) }
    }
}

pub(super) fn value<'a>(message: &'a str, label: &str) -> Option<&'a str> {
    let value = message.lines().find_map(|line| line.trim_start().strip_prefix(label))?;
    Some(value.strip_prefix('\'').and_then(|value| value.strip_suffix('\'')).unwrap_or(value))
}

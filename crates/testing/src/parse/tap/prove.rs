//! What `prove` prints: with `-v` all the TAP of each file, without it only what failed; then a summary.

use super::dialect::Dialect;
use super::perl::{Patient, Reason, value};
use super::reader::{Reader, problem};
use crate::parse::{Head, Parser, Stream};
use crate::streak::Streak;
use crate::{
    Event, Failure, FailureKind, Finished, Line, Lines, ProblemScope, Sink, TestId, TestStatus, strip_ansi,
};

/// More tests than this are not told one by one, if all that is known of them is their number.
const MOST_NAMELESS: u64 = 100_000;
const MOST_FILES: usize = 100_000;
const MOST_FAILED: usize = 100_000;

/// Whether a text is what `prove` prints.
pub(in crate::parse) fn looks_like_prove(head: &Head<'_>) -> bool {
    let summary = head.text.contains("\nFiles=") && head.text.contains("\nResult: ");
    let after = ["ok ", "not ok ", "1..", "TAP version ", "Dubious, ", "# "];
    let mut lines = head.text.lines().peekable();
    let mut any_file = false;
    while let Some(line) = lines.next() {
        // Others end lines like this too, with names that hold spaces, or that are of Python.
        let Some((_, rest)) = heading(line).filter(|(name, _)| !name.contains(' ') && !name.ends_with(".py"))
        else {
            continue;
        };
        any_file |= match lines.peek() {
            Some(next) if rest.is_empty() => after.iter().any(|start| next.starts_with(start)),
            _ => !rest.is_empty(),
        };
    }
    summary || any_file
}

#[derive(Debug)]
pub(in crate::parse) struct Prove {
    out: Lines,
    err: Lines,
    state: State,
}

impl Default for Prove {
    fn default() -> Self {
        let state = State {
            reader: Reader::new(Dialect::Plain),
            patient: Patient::new(true),
            files: Streak::default(),
            current: String::new(),
            in_file: false,
            in_summary: false,
            tests: None,
            ended: None,
        };
        Self { out: Lines::default(), err: Lines::default(), state }
    }
}

#[derive(Debug)]
struct State {
    reader: Reader,
    patient: Patient,
    files: Streak<File>,
    /// The name of the file that is told of.
    current: String,
    in_file: bool,
    in_summary: bool,
    /// How many tests it counted.
    tests: Option<u64>,
    /// Whether all was good, once it says so.
    ended: Option<bool>,
}

#[derive(Debug, Default)]
struct File {
    name: String,
    /// Whether its results were told one by one.
    told: bool,
    good: bool,
    skipped_whole: bool,
    skipped: u64,
    tests: u64,
    failed: Vec<u64>,
    todo_passed: Vec<u64>,
    bad_exit: Option<String>,
    wrong: String,
}

impl Parser for Prove {
    fn feed(&mut self, stream: Stream, bytes: &[u8], sink: &mut dyn Sink) {
        let state = &mut self.state;
        match stream {
            Stream::Out => self.out.feed(bytes, |line| state.line(line, sink)),
            Stream::Err => {
                self.err.feed(bytes, |line| state.patient.diagnostics.line(Stream::Err, &line.text()))
            }
        }
    }

    fn finish(&mut self, sink: &mut dyn Sink) {
        let state = &mut self.state;
        self.out.finish(|line| state.line(line, sink));
        self.err.finish(|line| state.patient.diagnostics.line(Stream::Err, &line.text()));
        state.finish(sink);
    }
}

impl State {
    fn line(&mut self, line: Line<'_>, sink: &mut dyn Sink) {
        let text = line.text();
        let plain = strip_ansi(&text);
        // On a terminal its progress overwrites itself.
        let line = plain.rsplit('\r').next().unwrap_or(&plain);
        if let Some((name, rest)) = heading(line).filter(|_| !self.in_summary) {
            self.end_file(sink);
            self.select(name);
            name.clone_into(&mut self.reader.names.suite);
            self.in_file = true;
            self.file_status(rest, sink);
        } else if line == "Test Summary Report" {
            self.end_file(sink);
            self.in_summary = true;
        } else if let Some(rest) = line.strip_prefix("Files=") {
            self.end_file(sink);
            let tests = rest.split_once("Tests=").and_then(|(_, tests)| count(tests));
            self.tests = tests;
        } else if line.starts_with("Result: ") && self.tests.is_some() {
            self.ended = Some(line == "Result: PASS");
        } else if let Some(why) = line.strip_prefix("FAILED--Further testing stopped") {
            let message = format!("testing stopped{why}");
            sink.event(Event::Problem(problem(ProblemScope::Run, String::new(), FailureKind::Exit, message)));
        } else if self.in_summary {
            self.summary(line);
        } else if !(self.in_file && self.file_status(line, sink)) {
            self.patient.diagnostics.line(Stream::Out, line);
            self.reader.line(line, &mut self.patient.before(sink));
        }
    }

    /// How a file ended; says whether the line was about that.
    fn file_status(&mut self, line: &str, sink: &mut dyn Sink) -> bool {
        let plain_ok =
            line == "ok" || line.strip_prefix("ok ").is_some_and(|rest| rest.trim_start().contains(" ms"));
        if plain_ok && !self.is_result() {
            self.end_file(sink);
            if let Some(file) = self.file() {
                file.good = true;
            }
            return true;
        }
        let Some(file) = self.file() else { return false };
        if let Some(rest) = line.trim_start().strip_prefix("(less ") {
            file.skipped = count(rest).unwrap_or(0);
        } else if let Some(rest) = line.strip_prefix("Dubious, test returned ") {
            file.bad_exit = Some(rest.split(' ').next().unwrap_or(rest).to_owned());
        } else if line.starts_with("skipped: ") || line == "skipped" {
            file.good = true;
            file.skipped_whole = true;
            self.end_file(sink);
        } else {
            return line.starts_with("Failed ") && line.contains(" subtests")
                || line.starts_with("No subtests run");
        }
        true
    }

    /// Whether a bare `ok` may be a result: more are planned, or some came and there is no plan yet.
    fn is_result(&self) -> bool {
        !self.reader.is_untouched() && !self.reader.is_complete()
    }

    fn end_file(&mut self, sink: &mut dyn Sink) {
        if !std::mem::take(&mut self.in_file) {
            return;
        }
        let (_, points) = self.reader.restart(&mut self.patient.before(sink));
        if let Some(file) = self.file().filter(|_| points > 0) {
            file.told = true;
            file.tests = points;
        }
    }

    fn summary(&mut self, line: &str) {
        if let Some((name, rest)) = line.split_once(" (Wstat: ").filter(|_| !line.starts_with(' ')) {
            self.select(name);
            let tests = rest.split_once("Tests: ").and_then(|(_, tests)| count(tests));
            if let Some(file) = self.file() {
                file.tests = tests.unwrap_or(0);
            }
            return;
        }
        let Some(file) = self.file() else { return };
        let Some((label, rest)) = line.trim_start().split_once(':') else { return };
        match label {
            "Failed tests" | "Failed test" => file.failed = ranges(rest),
            "TODO passed" => file.todo_passed = ranges(rest),
            "Non-zero exit status" | "Non-zero wait status" => file.bad_exit = Some(rest.trim().to_owned()),
            "Parse errors" => rest.trim().clone_into(&mut file.wrong),
            _ => {}
        }
    }

    /// The file that is told of now.
    fn file(&mut self) -> Option<&mut File> {
        self.files.get_mut(&self.current)
    }

    fn select(&mut self, name: &str) {
        name.clone_into(&mut self.current);
        if self.files.len() < MOST_FILES {
            self.files.entry(name);
        }
    }

    fn finish(&mut self, sink: &mut dyn Sink) {
        let cut = self.in_file;
        self.end_file(sink);
        self.patient.finish(sink);
        let files: Vec<File> = std::mem::take(&mut self.files)
            .into_sorted()
            .into_iter()
            .map(|(name, file)| File { name: name.into(), ..file })
            .collect();
        let told = files.iter().filter(|file| file.told);
        let mut known = told.fold(0, |sum: u64, file| sum.saturating_add(file.tests));
        let mut room = MOST_NAMELESS;
        for file in files.iter().filter(|file| !file.told && !file.good) {
            known = known.saturating_add(file.tests);
            self.tell_numbers(file, &mut room, sink);
        }
        let good: Vec<&File> =
            files.iter().filter(|file| file.good && !file.told && !file.skipped_whole).collect();
        self.tell_good(&good, known, &mut room, sink);
        for file in &files {
            self.tell_problem(file, sink);
        }
        if files.is_empty() {
            self.tell_reasons_alone(sink);
        }
        // `prove -Q` names no file that is good.
        if self.ended == Some(true)
            && files.is_empty()
            && let Some(count) = self.tests
        {
            sink.event(Event::Counted { status: TestStatus::Pass, count });
        }
        if self.ended.is_some() && !cut {
            sink.event(Event::Ended { counted: self.tests });
        }
    }

    /// A file of which only numbers are known: which failed, and how many there were.
    fn tell_numbers(&mut self, file: &File, room: &mut u64, sink: &mut dyn Sink) {
        let (mut failed, mut todo) = (file.failed.iter().peekable(), file.todo_passed.iter().peekable());
        // Which ones were skipped is not told: the last of those that are nothing else.
        let others = file.tests.saturating_sub((file.failed.len() + file.todo_passed.len()) as u64);
        let mut left = others;
        for number in 1..=file.tests.min(*room) {
            if failed.next_if_eq(&&number).is_some() {
                let reason = self.patient.diagnostics.next_of(&file.name);
                tell_failed(&file.name, number, reason, sink);
                continue;
            }
            let todo = todo.next_if_eq(&&number).is_some();
            let skipped = todo || left <= file.skipped;
            left = left.saturating_sub(u64::from(!todo));
            let status = if skipped { TestStatus::Skip } else { TestStatus::Pass };
            tell_nameless(&file.name, number, status, sink);
        }
        *room = room.saturating_sub(file.tests);
    }

    /// Of files that passed not even the numbers are told: what is left of the total is theirs.
    fn tell_good(&self, good: &[&File], known: u64, room: &mut u64, sink: &mut dyn Sink) {
        let left = self.tests.map_or(good.len() as u64, |tests| tests.saturating_sub(known)).min(*room);
        let suite = if let [only] = good { only.name.as_str() } else { "" };
        for number in 1..=if good.is_empty() { 0 } else { left } {
            tell_nameless(suite, number, TestStatus::Pass, sink);
        }
    }

    fn tell_problem(&self, file: &File, sink: &mut dyn Sink) {
        let failed = !file.failed.is_empty();
        let death = self.patient.diagnostics.death_of(&file.name).filter(|_| file.bad_exit.is_some());
        let dead = file.bad_exit.as_ref().filter(|_| !failed || death.is_some());
        if dead.is_none() && file.wrong.is_empty() {
            return;
        }
        let exit = dead.map(|exit| format!("the file ended with exit status {exit}"));
        let words = death.iter().map(|(words, _)| words.clone());
        let wrong = Some(file.wrong.clone()).filter(|wrong| !wrong.is_empty());
        let message = words.chain(exit).chain(wrong).collect::<Vec<_>>().join("\n");
        let kind = if dead.is_some() { FailureKind::Crash } else { FailureKind::Error };
        let mut problem = problem(ProblemScope::Suite, file.name.clone(), kind, message);
        (problem.file, problem.line) = (Some(file.name.clone()), death.map(|(_, line)| line));
        sink.event(Event::Problem(problem));
    }

    /// Only what was said on standard error is here: it explains results that stand elsewhere.
    fn tell_reasons_alone(&self, sink: &mut dyn Sink) {
        let mut any = false;
        for (number, reason) in self.patient.diagnostics.unused().enumerate() {
            tell_failed("", number as u64 + 1, Some(reason), sink);
            any = true;
        }
        if let Some(death) = self.patient.diagnostics.death() {
            sink.event(Event::Problem(death));
        }
        if any {
            sink.event(Event::Ended { counted: None });
        }
    }
}

fn tell_failed(file: &str, number: u64, reason: Option<&Reason>, sink: &mut dyn Sink) {
    let nameless = format!("test {number}");
    let name = reason.map(|reason| reason.name.as_str()).filter(|name| !name.is_empty()).unwrap_or(&nameless);
    let message = reason.map_or("", |reason| reason.text.as_str());
    let failure = Failure {
        kind: Some(FailureKind::Assertion),
        message,
        at: reason.map(Reason::place).unwrap_or_default(),
        expected: value(message, "expected: "),
        actual: value(message, "got: "),
        ..Failure::default()
    };
    let test = TestId { suite: file, name };
    sink.event(Event::Finished(Finished::new(test, TestStatus::Fail, 0).failure(failure)));
}

fn tell_nameless(file: &str, number: u64, status: TestStatus, sink: &mut dyn Sink) {
    let name = format!("test {number}");
    sink.event(Event::Finished(Finished::new(TestId { suite: file, name: &name }, status, 0)));
}

/// `t/cart.t .. ok`: a file, and how it ended if that stands on the same line.
fn heading(line: &str) -> Option<(&str, &str)> {
    let line = match line.strip_prefix('[').and_then(|rest| rest.split_once("] ")) {
        Some((time, rest)) if time.bytes().all(|byte| byte.is_ascii_digit() || byte == b':') => rest,
        _ => line,
    };
    let (name, rest) = line.split_once(" ..")?;
    let rest = rest.trim_start_matches('.').trim();
    let ends = ["ok", "skipped", "Failed ", "Dubious", "No subtests", "All "];
    let fits = rest.is_empty() || ends.iter().any(|end| rest.starts_with(end));
    let is_file = !name.is_empty() && !name.starts_with(['#', ' ', '\t']);
    (fits && is_file && !name.starts_with("ok ") && !name.starts_with("not ok ")).then_some((name, rest))
}

/// `2-3, 8-9`. A line of many numbers is wrapped; what is left out still counts in the number of failures.
fn ranges(text: &str) -> Vec<u64> {
    let mut numbers = Vec::new();
    for part in text.split([',', ' ']).map(str::trim).filter(|part| !part.is_empty()) {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let (Ok(from), Ok(to)) = (from.parse::<u64>(), to.parse::<u64>()) else { continue };
        numbers.extend((from..=to).take(MOST_FAILED.saturating_sub(numbers.len())));
    }
    numbers
}

/// The number that a text begins with.
fn count(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text[..end].parse().ok()
}

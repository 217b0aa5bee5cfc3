//! `cargo test`: what cargo says on standard error, and what each test binary says on standard output, as text or JSON.

mod build;
mod libtest;
mod panics;

use std::collections::VecDeque;

use super::by_line::LineReader;
use super::libtest_json::LibtestJson;
use super::{Head, Stream};
use crate::{Event, Failure, FailureKind, Finished, Problem, ProblemScope, Sink, TestId, TestStatus};
pub(super) use build::Build;
use libtest::Libtest;
use panics::Panics;

/// Binaries whose names wait for their output, and crashes that wait for their binary.
const MOST_WAITING: usize = 1000;
/// Bytes of output that wait for the name of their binary. Cargo writes the name before the binary starts, so on a live
/// run only the order in which the two streams are read is in question.
const HELD: usize = 64 << 10;

pub(super) fn looks_like(head: &Head<'_>) -> bool {
    head.text.lines().any(|line| {
        line.starts_with("{\"reason\":\"")
            || libtest::header(line).is_some()
            || line.starts_with("test result: ok. ")
            || line.starts_with("error: could not compile `")
            || line.starts_with("error: could not find `Cargo.toml`")
            || line.starts_with("error: test failed, to rerun pass")
            || line.starts_with("error: no matching package")
            || line.starts_with("error: failed to parse manifest at")
            || line.starts_with("error: failed to select a version for")
            || line.starts_with("     Running unittests ")
            || line.starts_with("   Compiling ") && line.contains(" v")
    }) && !super::nextest::looks_like(head)
}

#[derive(Debug, Default)]
pub(super) struct CargoTest {
    /// By stream, as are those below that are of two.
    builds: [Build; 2],
    text: Libtest,
    json: LibtestJson,
    panics: [Panics; 2],
    /// Binaries that cargo has started on the other stream, and whose output has not begun.
    started: VecDeque<String>,
    /// The binary that cargo last started, by stream.
    latest: [Option<String>; 2],
    crashes: Vec<Crash>,
    /// Tests that are known to have ended their process, by binary.
    culprits: Vec<(String, String)>,
    held: Vec<String>,
    held_bytes: usize,
    /// Output came and no name did: whoever does not tell names will not tell them later.
    unnamed: bool,
    after_blank: bool,
}

#[derive(Debug)]
struct Crash {
    suite: String,
    message: String,
}

impl LineReader for CargoTest {
    fn line(&mut self, stream: Stream, line: &str, sink: &mut dyn Sink) {
        if !self.cargo_line(stream, line, sink) {
            match stream {
                Stream::Err => self.other_line(stream, line),
                Stream::Out => self.hold(line, sink),
            }
        }
    }

    fn end(&mut self, sink: &mut dyn Sink) {
        self.release(sink);
        self.json.end(sink);
        self.text.give_up(&mut self.panics, sink);
        for (suite, open) in self.text.take_unfinished() {
            self.settle_crash(&suite, open, sink);
        }
        self.text.end(&mut self.panics, sink);
        for crash in std::mem::take(&mut self.crashes) {
            sink.event(Event::Problem(crash.problem()));
        }
        let ran = self.text.totals.began > 0 || self.json.any();
        for build in &mut self.builds {
            build.end(ran, sink);
        }
    }
}

impl CargoTest {
    /// A line of cargo's own, which may stand on either stream.
    fn cargo_line(&mut self, stream: Stream, line: &str, sink: &mut dyn Sink) -> bool {
        if let Some(binary) = binary_of(line) {
            self.panics[stream as usize].line(line);
            self.builds[stream as usize].line(line);
            self.binary(stream, binary, sink);
            return true;
        }
        if let Some(rest) = line.strip_prefix("  process didn't exit successfully: `")
            && let Some(suite) = self.latest[stream as usize].clone()
            && self.crashes.len() < MOST_WAITING
        {
            let how = rest.rsplit_once("` ").map_or(rest, |(_, how)| how);
            self.crashes.push(Crash { suite, message: format!("process didn't exit successfully {how}") });
            return true;
        }
        if let Some(rest) = line.strip_prefix("thread '")
            && line.ends_with(" has overflowed its stack")
            && let Some((name, _)) = rest.split_once('\'')
            && let Some(suite) = self.latest[stream as usize].clone()
            && self.culprits.len() < MOST_WAITING
        {
            self.culprits.push((suite, name.to_owned()));
            return true;
        }
        false
    }

    fn binary(&mut self, stream: Stream, binary: String, sink: &mut dyn Sink) {
        if stream == Stream::Err && self.started.len() < MOST_WAITING {
            self.started.push_back(binary.clone());
        }
        self.latest[stream as usize] = Some(binary);
        self.retry(sink);
    }

    /// Output whose binary is not known yet waits for it.
    fn hold(&mut self, line: &str, sink: &mut dyn Sink) {
        let unknown = self.latest[Stream::Out as usize].is_none() && self.started.is_empty() && !self.unnamed;
        if self.held.is_empty() && !(unknown && self.begins(line).is_some()) {
            return self.out_line(line, sink);
        }
        self.held_bytes += line.len() + size_of::<String>();
        self.held.push(line.to_owned());
        if self.held_bytes > HELD {
            self.unnamed = self.latest.iter().all(Option::is_none);
            self.release(sink);
        }
    }

    fn begins(&self, line: &str) -> Option<u64> {
        if !self.text.is_running() && LibtestJson::begins(line) {
            return Some(0);
        }
        let count = libtest::header(line)?;
        ((self.after_blank || !self.text.is_running() || self.text.is_cut_off()) && self.may_begin())
            .then_some(count)
    }

    fn out_line(&mut self, line: &str, sink: &mut dyn Sink) {
        let begins = self.begins(line);
        self.after_blank = line.is_empty();
        if let Some(count) = begins {
            let suite = self.next_suite();
            if LibtestJson::begins(line) {
                self.json.line(line, &suite, sink);
            } else {
                self.text.begin(suite, count, &mut self.panics, sink);
            }
            return;
        }
        if line.starts_with('{') && !self.text.is_running() && line.contains("\"reason\":") {
            return self.builds[Stream::Out as usize].json(line);
        }
        if !self.text.is_running() && self.json.line(line, "", sink) {
            return;
        }
        self.other_line(Stream::Out, line);
        self.text.line(line, &mut self.panics, sink);
    }

    /// While a binary runs, another one begins only if cargo started one: else a test printed the line.
    fn may_begin(&self) -> bool {
        let cargo_tells = self.latest.iter().any(Option::is_some);
        let other =
            self.latest[Stream::Out as usize].as_deref().is_some_and(|latest| latest != self.text.suite());
        !self.text.is_running() || !cargo_tells || !self.started.is_empty() || other
    }

    fn next_suite(&mut self) -> String {
        self.builds[Stream::Out as usize].tests_begin();
        match &self.latest[Stream::Out as usize] {
            Some(latest) => latest.clone(),
            // Doctests may come in several parts, of one binary as cargo tells it.
            None => self.started.pop_front().unwrap_or_else(|| self.text.suite().to_owned()),
        }
    }

    /// Gives what waited another chance: the name of its binary may have come, and of the next one not yet.
    fn retry(&mut self, sink: &mut dyn Sink) {
        self.held_bytes = 0;
        for line in std::mem::take(&mut self.held) {
            self.hold(&line, sink);
        }
    }

    /// Lets go of what waited, name or not.
    fn release(&mut self, sink: &mut dyn Sink) {
        self.held_bytes = 0;
        for line in std::mem::take(&mut self.held) {
            self.out_line(&line, sink);
        }
    }

    fn other_line(&mut self, stream: Stream, line: &str) {
        self.builds[stream as usize].line(line);
        if stream == Stream::Err {
            self.panics[stream as usize].line(line);
        }
    }

    /// A binary ended without its own end: if cargo told why, and the test is known, the test is to blame.
    fn settle_crash(&mut self, suite: &str, open: Option<String>, sink: &mut dyn Sink) {
        let Some(at) = self.crashes.iter().position(|crash| crash.suite == suite) else { return };
        let mut names: Vec<String> = Vec::new();
        self.culprits.retain(|(of, name)| {
            if of == suite {
                names.push(name.clone());
            }
            of != suite
        });
        if names.is_empty() {
            names.extend(open);
        }
        if names.is_empty() {
            return;
        }
        let crash = self.crashes.remove(at);
        for name in names {
            let failure =
                Failure { kind: Some(FailureKind::Crash), message: &crash.message, ..Failure::default() };
            let test = TestId { suite, name: &name };
            sink.event(Event::Finished(Finished::new(test, TestStatus::Crash, 0).failure(failure)));
        }
    }
}

impl Crash {
    fn problem(self) -> Problem {
        let signal = self.message.contains("(signal: ");
        let kind = if signal { FailureKind::Crash } else { FailureKind::Exit };
        Problem::new(ProblemScope::Run, self.suite, Some(kind), self.message)
    }
}

/// The binary that cargo starts: `     Running unittests src/lib.rs (target/debug/deps/shop-507999230d6984fa)`.
fn binary_of(line: &str) -> Option<String> {
    if let Some(package) = line.strip_prefix("   Doc-tests ") {
        return Some(format!("{package} (doc)"));
    }
    let rest = line.strip_prefix("     Running ")?;
    let (source, program) = match rest.strip_suffix(')').and_then(|rest| rest.rsplit_once(" (")) {
        Some((source, program)) => (source, program),
        None => (rest, rest),
    };
    let file = program.rsplit(['/', '\\']).next().unwrap_or(program).trim_end_matches(".exe");
    let is_hash = |hash: &str| hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    match file.rsplit_once('-') {
        Some((name, hash)) if is_hash(hash) => Some(name.to_owned()),
        _ => Some(source.trim_start_matches("unittests ").to_owned()),
    }
}

#[cfg(test)]
mod tests;

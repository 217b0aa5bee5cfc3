//! What `go test` prints for people, with and without `-v`.
//!
//! A package is named only where it ends, so what its tests came to is held until then. Without `-v` only failures are
//! told: a package that passed counts as one test. What a test prints stands between the runner's lines, so a line
//! counts only where the runner could have printed it.

use std::collections::HashSet;

use super::build::{Build, tell};
use super::log::Mark;
use super::packages::{PackageEnd, Packages};
use super::recorder::Recorder;
use crate::parse::{Parser, Stream};
use crate::{Event, Finished, Line, Lines, Sink, TestId, TestStatus, strip_ansi};

const MOST_DOUBTFUL: usize = 10_000;
const MOST_NESTED: usize = 64;

/// The last line of a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::parse) struct Outcome<'a> {
    pub package: &'a str,
    pub end: PackageEnd,
    /// Whether tests ran, as far as the line tells.
    has_tests: bool,
    ms: u64,
}

impl<'a> Outcome<'a> {
    /// `ok  \texample.com/shop\t0.1s`, `FAIL\texample.com/shop [build failed]`, `?   \texample.com/shop\t[no test files]`.
    pub(super) fn of(line: &'a str) -> Option<Self> {
        let (word, rest) = line.split_once('\t')?;
        let (package, rest) = rest.split_once(['\t', ' '])?;
        let seconds = rest.split_once('s').and_then(|(seconds, _)| seconds.parse::<f64>().ok());
        let timed = seconds.is_some() || rest.starts_with("(cached)");
        let end = match word.trim_end() {
            "ok" if timed => PackageEnd::Good,
            "?" if rest.starts_with("[no test files]") => PackageEnd::Good,
            "FAIL" if rest.starts_with("[build failed]") || rest.starts_with("[setup failed]") => {
                PackageEnd::NotBuilt
            }
            "FAIL" if timed => PackageEnd::Bad,
            _ => return None,
        };
        let has_tests = word != "?   " && !rest.contains("[no tests to run]");
        let ms = crate::parse::milliseconds::of_seconds(seconds.unwrap_or(0.0));
        (!package.is_empty()).then_some(Self { package, end, has_tests, ms })
    }
}

#[derive(Debug, Default)]
pub(in crate::parse) struct GoText {
    out: Lines,
    err: Lines,
    state: State,
}

#[derive(Debug, Default)]
struct State {
    packages: Packages,
    held: Recorder,
    build: Build,
    on_err: Build,
    not_built: Option<String>,
    any_package: bool,
    /// Whether tests tell of their beginning; the first line about a test decides for the whole run.
    verbose: Option<bool>,
    /// The tests that run and do not wait.
    running: HashSet<Box<str>>,
    /// The test that lines of text belong to.
    current: String,
    /// Results below which lines of the same test, or of its subtests, may follow.
    results: Vec<Told>,
    /// Whether lines are the last words of the process.
    dying: bool,
    /// Ends of packages that came while a test ran.
    doubtful: Vec<String>,
}

/// A result, and how far it is indented.
#[derive(Debug)]
pub(super) struct Told {
    indent: usize,
    pub name: String,
    pub status: TestStatus,
    pub ms: u64,
}

impl Parser for GoText {
    fn feed(&mut self, stream: Stream, bytes: &[u8], sink: &mut dyn Sink) {
        let state = &mut self.state;
        match stream {
            Stream::Out => self.out.feed(bytes, |line| state.line(line, sink)),
            Stream::Err => self.err.feed(bytes, |line| state.err_line(line)),
        }
    }

    fn finish(&mut self, sink: &mut dyn Sink) {
        let state = &mut self.state;
        self.out.finish(|line| state.line(line, sink));
        self.err.finish(|line| state.err_line(line));
        state.finish(sink);
    }
}

impl State {
    fn line(&mut self, line: Line<'_>, sink: &mut dyn Sink) {
        let text = line.text();
        let plain = strip_ansi(&text);
        let line = plain.trim_start_matches('\u{feff}');
        self.settle_doubt(line, sink);
        if self.progress(line) || self.result(line) {
            return;
        }
        match Outcome::of(line) {
            Some(outcome) => self.outcome(line, outcome, sink),
            None => self.text(line),
        }
    }

    fn err_line(&mut self, line: Line<'_>) {
        self.on_err.line(&line.text(), &mut self.packages.modules);
    }

    /// The end of a package while a test runs is real if the process died, and printed if the test goes on.
    fn settle_doubt(&mut self, line: &str, sink: &mut dyn Sink) {
        if self.doubtful.is_empty() {
            return;
        }
        let progress = read_progress(line);
        let goes_on = match progress {
            Some(("RUN", name)) => self.runs_below(name),
            Some((_, name)) => self.packages.is_open(id(name)),
            None => read_result(line).is_some_and(|(_, result)| self.packages.is_open(id(&result.name))),
        };
        if goes_on {
            self.doubtful.clear();
        } else if progress.is_some() {
            self.believe(sink);
        }
    }

    fn believe(&mut self, sink: &mut dyn Sink) {
        for line in std::mem::take(&mut self.doubtful) {
            if let Some(outcome) = Outcome::of(&line) {
                self.end_package(outcome, sink);
            }
        }
    }

    /// `=== RUN   TestAdd` and its kind.
    fn progress(&mut self, line: &str) -> bool {
        let Some((word, name)) = read_progress(line) else { return false };
        let known = self.packages.is_open(id(name));
        match word {
            "RUN" if self.may_begin(name) && *self.verbose.get_or_insert(true) => {
                self.settle_results(0);
                self.packages.run(id(name), &mut self.held);
                self.running.insert(name.into());
            }
            "PAUSE" if known => {
                self.packages.pause(id(name), true);
                self.running.remove(name);
            }
            "CONT" if known => {
                self.settle_results(0);
                self.packages.pause(id(name), false);
                self.running.insert(name.into());
            }
            "NAME" if known => {}
            _ => return false,
        }
        name.clone_into(&mut self.current);
        self.dying = false;
        true
    }

    /// A test begins inside the one that runs, or when none does: one that waits for its turn does not run. Of a
    /// benchmark no end is told.
    fn may_begin(&self, name: &str) -> bool {
        let none_runs = self.running.iter().all(|running| running.starts_with("Benchmark"));
        !name.is_empty() && (none_runs || self.runs_below(name))
    }

    fn runs_below(&self, name: &str) -> bool {
        name.match_indices('/').take(MOST_NESTED).any(|(at, _)| self.running.contains(&name[..at]))
    }

    /// `--- FAIL: TestAdd (0.00s)`; what a test printed without a line end may stand before it.
    fn result(&mut self, line: &str) -> bool {
        let Some((before, result)) = read_result(line) else { return false };
        let indented = before.bytes().all(|byte| byte == b' ');
        let open = self.packages.is_open(id(&result.name));
        let told_already = self.results.iter().any(|it| it.name == result.name);
        let could_be = is_test_name(&result.name) && result.status == TestStatus::Fail;
        let believable = match self.verbose {
            // A benchmark does not tell that it begins.
            Some(true) => (open || could_be && result.name.starts_with("Benchmark")) && !told_already,
            _ => could_be && (indented || !before.ends_with(' ')),
        };
        let below = self.results.iter().any(|it| {
            it.indent < result.indent
                && result.name.strip_prefix(&it.name).is_some_and(|rest| rest.starts_with('/'))
        });
        if !believable || self.results.len() > MOST_NESTED || (indented && result.indent > 0 && !below) {
            return false;
        }
        let indent = if indented { result.indent } else { 0 };
        self.verbose.get_or_insert(false);
        self.settle_results(indent);
        if !open {
            self.packages.run(id(&result.name), &mut self.held);
        }
        if !indented {
            self.packages.output(id(&result.name), before, Mark::None, &mut self.held);
        }
        self.running.remove(result.name.as_str());
        self.dying = false;
        self.results.push(Told { indent, ..result });
        true
    }

    /// Any other line belongs to the test whose result stands above it, or that runs, or to no test.
    fn text(&mut self, line: &str) {
        let indent = line.len() - line.trim_start_matches(' ').len();
        self.dying |= super::stack::Death::begins(line);
        let example = |last: &&Told| last.name.starts_with("Example") && !is_end(line);
        let below = self.results.last().filter(|last| self.dying || indent > last.indent || example(last));
        let ended = is_end(line) && below.is_none();
        let owner = match below {
            Some(last) => last.name.clone(),
            None if !ended && self.running.contains(self.current.as_str()) => self.current.clone(),
            None => String::new(),
        };
        if owner.is_empty() {
            let idle = self.running.is_empty() && self.results.is_empty();
            if !(idle && self.build.line(line, &mut self.packages.modules)) {
                self.packages.package_output("", &format!("{line}\n"), Mark::None);
            }
            return;
        }
        self.packages.output(id(&owner), &format!("{line}\n"), Mark::None, &mut self.held);
    }

    fn outcome(&mut self, line: &str, outcome: Outcome<'_>, sink: &mut dyn Sink) {
        if !self.may_begin("a test of the next package") && outcome.end != PackageEnd::NotBuilt {
            if self.doubtful.len() < MOST_DOUBTFUL {
                self.doubtful.push(line.to_owned());
            }
            return;
        }
        self.end_package(outcome, sink);
    }

    /// Results that are indented as far, or further, have nothing more below them.
    fn settle_results(&mut self, indent: usize) {
        while let Some(told) = self.results.pop_if(|last| last.indent >= indent) {
            self.packages.finish(id(&told.name), told.status, told.ms, &mut self.held);
        }
    }

    fn end_package(&mut self, outcome: Outcome<'_>, sink: &mut dyn Sink) {
        self.settle_results(0);
        self.build.end_package();
        self.current.clear();
        self.running.clear();
        self.dying = false;
        if outcome.end == PackageEnd::NotBuilt {
            self.not_built = Some(outcome.package.to_owned());
        }
        let ran = outcome.end == PackageEnd::Good && outcome.has_tests;
        let whole = ran && !*self.verbose.get_or_insert(false);
        self.packages.end("", outcome.end, &mut self.held);
        sink.event(Event::SuiteStarted(outcome.package));
        self.held.tell(outcome.package, &self.packages.modules, sink);
        if whole {
            let test = TestId { suite: outcome.package, name: outcome.package };
            sink.event(Event::Finished(Finished::new(test, TestStatus::Pass, outcome.ms)));
        }
        sink.event(Event::SuiteEnded(outcome.package));
        self.any_package = true;
    }

    fn finish(&mut self, sink: &mut dyn Sink) {
        self.believe(sink);
        self.settle_results(0);
        if self.not_built.is_some() || !self.any_package {
            tell([&mut self.build, &mut self.on_err], self.not_built.as_deref(), sink);
        }
        self.packages.finish_all(&mut self.held);
        let ended = self.held.tell_unfinished(sink);
        if ended && self.any_package {
            sink.event(Event::Ended { counted: None });
        }
    }
}

fn read_progress(line: &str) -> Option<(&str, &str)> {
    let (word, name) = line.strip_prefix("=== ")?.split_once(' ')?;
    matches!(word, "RUN" | "PAUSE" | "CONT" | "NAME").then(|| (word, name.trim()))
}

/// A result, and what stands before it on its line.
pub(super) fn read_result(line: &str) -> Option<(&str, Told)> {
    let at = line.rfind("--- ")?;
    let (word, rest) = line[at + 4..].split_once(": ")?;
    let status = match word {
        "PASS" | "BENCH" => TestStatus::Pass,
        "FAIL" => TestStatus::Fail,
        "SKIP" => TestStatus::Skip,
        _ => return None,
    };
    let rest = rest.trim_end();
    // A benchmark that failed has no time.
    let timed = rest.strip_suffix("s)").and_then(|rest| rest.rsplit_once(" ("));
    let bare = (rest.starts_with("Benchmark") && !rest.contains(' ')).then_some((rest, "0"));
    let (name, seconds) = timed.or(bare)?;
    let ms = crate::parse::milliseconds::of_seconds(seconds.parse().ok()?);
    Some((&line[..at], Told { indent: at, name: name.to_owned(), status, ms }))
}

fn is_end(line: &str) -> bool {
    line == "PASS" || line == "FAIL" || line.starts_with("exit status ")
}

fn is_test_name(name: &str) -> bool {
    ["Test", "Example", "Fuzz", "Benchmark"].iter().any(|start| name.starts_with(start))
}

fn id(name: &str) -> TestId<'_> {
    TestId { suite: "", name }
}

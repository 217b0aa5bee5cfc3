//! What Maven prints: Surefire's and Failsafe's words, and why a build failed.

use std::collections::BTreeSet;

use super::by_line::LineReader;
use super::java;
use super::wording::{compared, kind_of};
use super::{Head, Stream};
use crate::{
    Event, Failure, FailureKind, Finished, HeadTail, Place, Problem, ProblemScope, Sink, TestId, TestStatus,
};

const ROOM: usize = 8 << 10;
/// No class has a longer name.
const LONGEST_NAME: usize = 1 << 10;
/// Classes that run at the same time.
const RUNNING: usize = 1024;

/// Whether this is such a text; with `-q` only Surefire's lines are left.
pub(super) fn looks_like(head: &Head<'_>) -> bool {
    head.text.lines().any(|line| {
        line.starts_with("[INFO] Scanning for projects")
            || line.starts_with("[INFO] Running ")
            || line == "[ERROR] COMPILATION ERROR : "
            || line.starts_with("[ERROR] Failed to execute goal ")
            || class_result(body(line)).is_some()
    })
}

#[derive(Debug, Default)]
pub(super) struct Maven {
    running: BTreeSet<String>,
    /// The class whose failures are listed.
    class: String,
    test: Option<Test>,
    section: Section,
    /// A compiler's error, while more lines of it may come.
    error: Option<Problem>,
    /// Why the build failed, in Maven's words.
    goal: Option<HeadTail>,
    crashed: Vec<String>,
    is_whole_build: bool,
    failed: u64,
    seen: u64,
    counted: Option<u64>,
    build_errors: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Section {
    #[default]
    Build,
    /// After the result of a class, where its failures stand.
    Failures,
    Compiler,
    /// The tests are over.
    Results,
    /// After the end of the build, where its reasons stand.
    Reasons,
    CrashedTests,
}

/// A failed test, while its trace comes.
#[derive(Debug)]
struct Test {
    name: String,
    is_error: bool,
    ms: u64,
    trace: HeadTail,
}

impl LineReader for Maven {
    fn line(&mut self, stream: Stream, line: &str, sink: &mut dyn Sink) {
        if stream == Stream::Err {
            return;
        }
        let text = body(line);
        if let Some(result) = class_result(text).filter(|it| self.is_expected(it.class)) {
            self.end_class(&result, sink);
        } else if let Some(class) = running(line) {
            self.end_test(sink);
            self.start_class(class, sink);
        } else {
            let is_trace = self.section == Section::Failures && self.failures(line, text, sink);
            // What a running class prints is not Maven's.
            let is_mavens = self.running.is_empty() || self.section != Section::Build || is_results(text);
            if is_mavens && !is_trace {
                self.build(line, text, sink);
            }
        }
    }

    fn end(&mut self, sink: &mut dyn Sink) {
        self.end_test(sink);
        self.end_error(sink);
        self.tell_reason(sink);
        if !self.is_whole_build && self.counted.is_some() {
            self.conclude(sink);
        }
    }
}

impl Maven {
    /// With `-q` nothing announces a class.
    fn is_expected(&self, class: &str) -> bool {
        self.running.is_empty() || self.running.contains(class)
    }

    fn start_class(&mut self, class: &str, sink: &mut dyn Sink) {
        self.section = Section::Build;
        if self.running.len() < RUNNING && self.running.insert(class.to_owned()) {
            sink.event(Event::SuiteStarted(class));
        }
    }

    fn end_class(&mut self, result: &ClassResult<'_>, sink: &mut dyn Sink) {
        self.end_test(sink);
        self.running.remove(result.class);
        result.class.clone_into(&mut self.class);
        self.section = Section::Failures;
        let failed = result.failures.saturating_add(result.errors);
        let passed = result.run.saturating_sub(failed).saturating_sub(result.skipped);
        self.seen = self.seen.saturating_add(result.run);
        for (status, count) in [(TestStatus::Pass, passed), (TestStatus::Skip, result.skipped)] {
            if count > 0 {
                sink.event(Event::Counted { status, count });
            }
        }
        sink.event(Event::SuiteEnded(result.class));
    }

    /// Failed tests of the class that ended, each with its trace; says whether the line was of these.
    fn failures(&mut self, line: &str, text: &str, sink: &mut dyn Sink) -> bool {
        if let Some(test) = failed_test(text) {
            self.end_test(sink);
            self.test = Some(test);
            return true;
        }
        if line.starts_with('[') && line != text {
            self.end_test(sink);
            self.section = Section::Build;
            return false;
        }
        let Some(test) = &mut self.test else { return false };
        // A trace ends with an empty line, but a message may hold one.
        test.trace.push_line(line);
        true
    }

    fn end_test(&mut self, sink: &mut dyn Sink) {
        let Some(test) = self.test.take() else { return };
        let trace = test.trace.into_text();
        let trace = trace.trim();
        // `shop.CartTest.adds`, `adds(shop.CartTest)` or only `adds`.
        let (class, method) = match test.name.strip_suffix(')').and_then(|name| name.rsplit_once('(')) {
            Some((method, class)) if class.ends_with(&self.class) => (class, method),
            _ => match test.name.strip_prefix(self.class.as_str()).and_then(|rest| rest.split_once('.')) {
                Some((nested, method)) => (&test.name[..self.class.len() + nested.len()], method),
                None => (self.class.as_str(), test.name.as_str()),
            },
        };
        let method = java::method(method);
        if test.name == class || method.is_empty() {
            return sink.event(Event::Problem(of_class(class, trace)));
        }
        let plain = method.split('[').next().unwrap_or(&method);
        let of_trace = java::class_of_method(trace, plain).filter(|it| it.starts_with(self.class.as_str()));
        let class = of_trace.unwrap_or(class);
        let name = format!("{class}.{method}");
        self.failed += 1;
        tell(class, &name, test.ms, trace, test.is_error, sink);
    }

    fn build(&mut self, line: &str, text: &str, sink: &mut dyn Sink) {
        if line.starts_with("[INFO] Scanning for projects") {
            self.is_whole_build = true;
        } else if is_results(text) {
            self.section = Section::Results;
        } else if line == "[INFO] BUILD SUCCESS" || line == "[INFO] BUILD FAILURE" {
            self.end_error(sink);
            self.is_whole_build = true;
            self.section = Section::Reasons;
            self.conclude(sink);
        } else if line.starts_with("[ERROR] COMPILATION ERROR") {
            self.section = Section::Compiler;
        } else if let Some(counts) = module_result(text) {
            self.counted = Some(self.counted.unwrap_or(0).saturating_add(counts));
        } else if self.section == Section::Compiler {
            self.compiler(line, text, sink);
        } else {
            self.reason(line, text, sink);
        }
    }

    fn compiler(&mut self, line: &str, text: &str, sink: &mut dyn Sink) {
        if let Some(error) = line.strip_prefix("[ERROR] ").and_then(compiler_error) {
            self.end_error(sink);
            self.error = Some(error);
        } else if line.starts_with("[INFO] ")
            && text.trim_end().ends_with(['r', 's'])
            && text.contains(" error")
        {
            self.end_error(sink);
            self.section = Section::Build;
        } else if let Some(error) = self.error.as_mut().filter(|_| line == text) {
            error.message.push('\n');
            error.message.extend(line.chars().take(ROOM.saturating_sub(error.message.len())));
        }
    }

    fn end_error(&mut self, sink: &mut dyn Sink) {
        if let Some(error) = self.error.take() {
            self.build_errors += 1;
            sink.event(Event::Problem(error));
        }
    }

    fn reason(&mut self, line: &str, text: &str, sink: &mut dyn Sink) {
        if !line.starts_with("[ERROR] ") && !line.starts_with("[FATAL] ") {
            return;
        }
        if self.section == Section::CrashedTests {
            if is_class_name(text) {
                if self.crashed.len() < RUNNING && !self.crashed.iter().any(|it| it == text) {
                    self.crashed.push(text.to_owned());
                }
                return;
            }
            self.section = Section::Reasons;
        }
        if let Some(reason) = text.strip_prefix("Failed to execute goal ") {
            self.tell_reason(sink);
            let mut goal = HeadTail::new(ROOM);
            goal.push(reason.split_once(" -> [Help").map_or(reason, |(reason, _)| reason));
            self.goal = Some(goal);
        } else if text == "Crashed tests:" {
            self.section = Section::CrashedTests;
        } else if text.starts_with("-> [Help") {
            self.tell_reason(sink);
        } else if let Some(goal) = &mut self.goal {
            goal.push("\n");
            goal.push(text);
        } else if text.starts_with("Some problems were encountered while processing the POM")
            || text.starts_with("Non-parseable POM")
            || text.starts_with("Non-resolvable ")
            || text.starts_with("No goals have been specified")
            || text.starts_with("The goal you specified requires a project")
        {
            sink.event(Event::Problem(of_run(text, Some(FailureKind::Config))));
        }
    }

    /// Failed tests and errors of the compiler are told already; every other reason is one of its own.
    fn tell_reason(&mut self, sink: &mut dyn Sink) {
        let Some(reason) = self.goal.take().map(HeadTail::into_text) else { return };
        let crashed = reason.contains("The forked VM terminated") || reason.contains("The fork crashed");
        if crashed {
            let message = reason.lines().find(|line| line.contains("fork")).unwrap_or(&reason).to_owned();
            let mut names = std::mem::take(&mut self.crashed);
            if names.is_empty() {
                names = self.running.iter().cloned().collect();
            }
            for name in &names {
                self.running.remove(name);
                sink.event(Event::SuiteEnded(name));
                let kind = Some(FailureKind::Crash);
                let (message, name) = (message.clone(), name.clone());
                let scope = ProblemScope::Suite;
                sink.event(Event::Problem(Problem::new(scope, name, kind, message)));
            }
            if names.is_empty() {
                sink.event(Event::Problem(of_run(&message, Some(FailureKind::Crash))));
            }
        } else if reason.contains("There was a timeout or other error in the fork") {
            sink.event(Event::Problem(of_run(&reason, Some(FailureKind::Timeout))));
        } else if is_unresolved(&reason) {
            sink.event(Event::Problem(of_run(&reason, Some(FailureKind::Dependency))));
        } else if !self.is_told(&reason) {
            sink.event(Event::Problem(of_run(&reason, None)));
        }
    }

    fn is_told(&self, reason: &str) -> bool {
        let by_compiler = self.build_errors > 0 && reason.contains("Compilation failure");
        by_compiler || (self.failed > 0 && reason.contains("There are test failures"))
    }

    fn conclude(&mut self, sink: &mut dyn Sink) {
        if self.counted.is_some_and(|counted| counted < self.seen) {
            sink.event(Event::Complaint("the results count fewer tests than the classes do"));
        }
        sink.event(Event::Ended { counted: None });
    }
}

/// A line without its level.
fn body(line: &str) -> &str {
    ["[INFO] ", "[ERROR] ", "[WARNING] ", "[FATAL] "]
        .iter()
        .find_map(|level| line.strip_prefix(level))
        .unwrap_or(line)
}

/// `[INFO] Running shop.CartTest`; before Surefire 2.20 without the level.
fn running(line: &str) -> Option<&str> {
    let class = body(line).strip_prefix("Running ")?;
    is_class_name(class).then_some(class)
}

/// What follows is Maven's, though a class never ended.
fn is_results(text: &str) -> bool {
    matches!(text.trim_end(), "Results:" | "Results :")
}

fn is_class_name(text: &str) -> bool {
    let is_short = text.len() <= LONGEST_NAME;
    is_short && !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '.' | '_' | '$'))
}

#[derive(Debug)]
struct ClassResult<'a> {
    run: u64,
    failures: u64,
    errors: u64,
    skipped: u64,
    class: &'a str,
}

/// `Tests run: 2, Failures: 0, Errors: 1, Skipped: 0, Time elapsed: 0.269 s <<< FAILURE! - in shop.ATest`.
fn class_result(text: &str) -> Option<ClassResult<'_>> {
    let (counts, rest) = text.split_once(", Time elapsed: ")?;
    let (_, class) = rest.rsplit_once("- in ")?;
    let [run, failures, errors, skipped] = counts_of(counts)?;
    is_class_name(class).then_some(ClassResult { run, failures, errors, skipped, class })
}

/// `Tests run: 13, Failures: 5, Errors: 2, Skipped: 2`: the results of a module.
fn module_result(text: &str) -> Option<u64> {
    let [run, ..] = counts_of(text.trim_end())?;
    Some(run)
}

fn counts_of(text: &str) -> Option<[u64; 4]> {
    let mut counts = [0; 4];
    let mut parts = text.split(", ");
    for (count, label) in counts.iter_mut().zip(["Tests run: ", "Failures: ", "Errors: ", "Skipped: "]) {
        *count = parts.next()?.strip_prefix(label)?.parse().ok()?;
    }
    parts.all(|more| more.starts_with("Flakes: ")).then_some(counts)
}

/// `bad  Time elapsed: 0.181 s  <<< ERROR!`, and since 3.0 `shop.ATest.bad -- Time elapsed: 0.181 s <<< ERROR!`.
fn failed_test(text: &str) -> Option<Test> {
    let (rest, what) = text.rsplit_once("<<< ")?;
    let is_error = match what.trim_end() {
        "ERROR!" => true,
        "FAILURE!" => false,
        _ => return None,
    };
    let (name, time) = rest.split_once("Time elapsed: ")?;
    let name = name.trim_end().trim_end_matches("--").trim_end().to_owned();
    let seconds: f64 = time.split(' ').next()?.replace(',', "").parse().ok()?;
    let time = std::time::Duration::try_from_secs_f64(seconds).ok()?;
    Some(Test { name, is_error, ms: u64::try_from(time.as_millis()).ok()?, trace: HeadTail::new(ROOM) })
}

fn tell(class: &str, name: &str, ms: u64, trace: &str, is_error: bool, sink: &mut dyn Sink) {
    let (exception, message) = java::exception(trace);
    let place = java::place_in(trace, class);
    let (expected, actual) = compared(message).unzip();
    let other = if is_error { FailureKind::Error } else { FailureKind::Assertion };
    let failure = Failure {
        kind: kind_of(exception, message).or(Some(other)),
        message,
        stack: trace,
        at: place.as_ref().map_or(Place::default(), |place| Place::new(&place.file, place.line)),
        expected,
        actual,
    };
    let test = TestId { suite: class, name };
    sink.event(Event::Finished(Finished::new(test, TestStatus::Fail, ms).failure(failure)));
    sink.event(Event::SuiteEnded(class));
}

fn of_class(class: &str, trace: &str) -> Problem {
    let place = java::place_in(trace, class);
    Problem {
        scope: ProblemScope::Suite,
        name: class.to_owned(),
        kind: Some(FailureKind::Setup),
        message: java::before_frames(trace).trim().to_owned(),
        line: place.as_ref().map(|place| place.line),
        file: place.map(|place| place.file),
    }
}

fn of_run(message: &str, kind: Option<FailureKind>) -> Problem {
    let message = message.to_owned();
    Problem::new(ProblemScope::Run, "", kind, message)
}

fn is_unresolved(reason: &str) -> bool {
    ["Could not resolve", "could not be resolved", "Could not find artifact", "Could not transfer artifact"]
        .iter()
        .any(|words| reason.contains(words))
}

/// `/p/src/main/java/shop/Cart.java:[4,50] incompatible types`.
fn compiler_error(text: &str) -> Option<Problem> {
    let (file, rest) = text.split_once(":[").or_else(|| text.split_once(": ("))?;
    let (place, message) = rest.split_once([']', ')'])?;
    let line = place.split(',').next()?.trim().parse().ok()?;
    Some(
        Problem::new(
            ProblemScope::Build,
            "",
            Some(FailureKind::Compile),
            message.trim_start_matches([':', ' ']),
        )
        .placed(Some(file.to_owned()), Some(line)),
    )
}

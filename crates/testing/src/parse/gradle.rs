//! What Gradle prints.

use super::by_line::LineReader;
use super::java;
use super::wording::kind_of;
use super::{Head, Stream};
use crate::{
    Event, Failure, FailureKind, Finished, HeadTail, Place, Problem, ProblemScope, Sink, TestId, TestStatus,
};

const ROOM: usize = 8 << 10;

/// Whether this is such a text.
pub(super) fn looks_like(head: &Head<'_>) -> bool {
    head.text.lines().any(|line| {
        line.starts_with("> Task :")
            || line.starts_with("BUILD SUCCESSFUL in ")
            || line.starts_with("BUILD FAILED in ")
            || line == "FAILURE: Build failed with an exception."
            || (line.starts_with(':') && (line.ends_with(" UP-TO-DATE") || line.ends_with(" FAILED")))
    })
}

#[derive(Debug, Default)]
pub(super) struct Gradle {
    test: Option<Test>,
    /// What went wrong, in Gradle's words.
    reason: Option<HeadTail>,
    error: Option<Problem>,
    told: [u64; 3],
    of_classes: u64,
    build_errors: u64,
}

/// A failed test, while its indented trace comes.
#[derive(Debug)]
struct Test {
    path: String,
    trace: HeadTail,
}

impl LineReader for Gradle {
    fn line(&mut self, _: Stream, line: &str, sink: &mut dyn Sink) {
        if let Some(test) = &mut self.test {
            if line.starts_with("    ") || line.is_empty() {
                test.trace.push_line(line.trim_start());
                return;
            }
            self.end_test(sink);
        }
        if let Some((path, status)) = test_result(line) {
            self.result(path, status, sink);
        } else if let Some(error) = compiler_error(line) {
            self.end_error(sink);
            self.error = Some(error);
        } else if self.error.is_some() && line.starts_with(' ') {
            if let Some(error) = self.error.as_mut().filter(|error| error.message.len() < ROOM) {
                error.message.push('\n');
                error.message.extend(line.chars().take(ROOM));
            }
        } else {
            self.end_error(sink);
            self.build(line, sink);
        }
    }

    fn end(&mut self, sink: &mut dyn Sink) {
        self.end_test(sink);
        self.end_error(sink);
        self.tell_reason(sink);
    }
}

impl Gradle {
    fn result(&mut self, path: &str, status: TestStatus, sink: &mut dyn Sink) {
        match status {
            TestStatus::Fail => {
                self.test = Some(Test { path: path.to_owned(), trace: HeadTail::new(ROOM) });
            }
            _ => {
                self.told[usize::from(status == TestStatus::Skip) * 2] += 1;
                let (class, method) = class_and_method(path);
                let name = format!("{class}.{method}");
                let test = TestId { suite: &class, name: &name };
                sink.event(Event::Finished(Finished::new(test, status, 0)));
                sink.event(Event::SuiteEnded(&class));
            }
        }
    }

    fn end_test(&mut self, sink: &mut dyn Sink) {
        let Some(test) = self.test.take() else { return };
        let trace = test.trace.into_text();
        let (class, method) = class_and_method(&test.path);
        let class = java::full_name(&trace, &class).map_or(class, str::to_owned);
        let place =
            java::place_in(&trace, &class).map(|it| (it.file, it.line)).or_else(|| short_place(&trace));
        let (exception, message) = java::exception(&trace);
        if matches!(&*method, "initializationError" | "executionError" | "classMethod" | "") {
            self.of_classes += 1;
            return sink.event(Event::Problem(Problem {
                scope: ProblemScope::Suite,
                name: class,
                kind: Some(FailureKind::Setup),
                message: message.to_owned(),
                line: place.as_ref().map(|it| it.1),
                file: place.map(|it| it.0),
            }));
        }
        self.told[1] += 1;
        let name = format!("{class}.{method}");
        let failure = Failure {
            kind: kind_of(exception, &trace).or(Some(FailureKind::Error)),
            message,
            stack: &trace,
            at: place.as_ref().map_or(Place::default(), |(file, line)| Place::new(file, *line)),
            ..Failure::default()
        };
        let test = TestId { suite: &class, name: &name };
        sink.event(Event::Finished(Finished::new(test, TestStatus::Fail, 0).failure(failure)));
        sink.event(Event::SuiteEnded(&class));
    }

    fn end_error(&mut self, sink: &mut dyn Sink) {
        if let Some(error) = self.error.take() {
            self.build_errors += 1;
            sink.event(Event::Problem(error));
        }
    }

    fn build(&mut self, line: &str, sink: &mut dyn Sink) {
        if line.starts_with("BUILD SUCCESSFUL") || line.starts_with("BUILD FAILED") {
            self.tell_reason(sink);
            sink.event(Event::Ended { counted: None });
        } else if let Some(counts) = completed(line) {
            self.complete(counts, sink);
        } else if line == "* What went wrong:" {
            self.tell_reason(sink);
            self.reason = Some(HeadTail::new(ROOM));
        } else if line.starts_with("* ") {
            self.tell_reason(sink);
        } else if let Some(reason) = &mut self.reason {
            reason.push_line(line);
        }
    }

    /// Only a task that failed counts its tests.
    fn complete(&mut self, counts: [u64; 3], sink: &mut dyn Sink) {
        let [total, failed, skipped] = counts;
        let passed = total.saturating_sub(failed).saturating_sub(skipped);
        let named = [self.told[0], self.told[1].saturating_add(self.of_classes), self.told[2]];
        for ((status, counted), named) in
            [(TestStatus::Pass, passed), (TestStatus::Fail, failed), (TestStatus::Skip, skipped)]
                .into_iter()
                .zip(named)
        {
            let count = counted.saturating_sub(named);
            if count > 0 {
                sink.event(Event::Counted { status, count });
            }
        }
        if named[1] > failed {
            sink.event(Event::Complaint("Gradle counts fewer failed tests than it names"));
        }
        (self.told, self.of_classes) = ([0; 3], 0);
    }

    fn tell_reason(&mut self, sink: &mut dyn Sink) {
        let Some(reason) = self.reason.take().map(HeadTail::into_text) else { return };
        let is_told = reason.contains("There were failing tests")
            || (self.build_errors > 0 && reason.contains("Compilation "));
        if is_told || reason.trim().is_empty() {
            return;
        }
        let kind = if reason.contains("finished with non-zero exit value") {
            Some(FailureKind::Crash)
        } else if reason.contains("Could not resolve") || reason.contains("Could not find ") {
            Some(FailureKind::Dependency)
        } else if reason.contains("Could not compile build file") || reason.contains("occurred evaluating") {
            Some(FailureKind::Config)
        } else {
            None
        };
        let message = reason.trim().to_owned();
        let scope = ProblemScope::Run;
        sink.event(Event::Problem(Problem::new(scope, "", kind, message)));
    }
}

/// `shop.CartTest > adds() FAILED`.
fn test_result(line: &str) -> Option<(&str, TestStatus)> {
    let (path, status) = line.rsplit_once(' ')?;
    let status = match status {
        "PASSED" => TestStatus::Pass,
        "FAILED" => TestStatus::Fail,
        "SKIPPED" => TestStatus::Skip,
        _ => return None,
    };
    let is_path = !line.starts_with(' ') && !line.starts_with("> ") && path.contains(" > ");
    is_path.then_some((path, status))
}

/// `CartTest > Inner > nestedFail()` and `CartTest > param(int) > [3] 3` as class and method.
fn class_and_method(path: &str) -> (String, String) {
    let parts: Vec<&str> = path.split(" > ").collect();
    let Some((last, before)) = parts.split_last() else { return (String::new(), path.to_owned()) };
    let index = last.find('[').filter(|_| before.len() > 1).and_then(|at| last[at + 1..].split(']').next());
    let template = before.last().filter(|it| before.len() > 1 && it.ends_with(')'));
    let (classes, method) = match (template, index) {
        (Some(template), Some(index)) if index.parse::<u32>().is_ok() => {
            (&before[..before.len() - 1], format!("{}[{index}]", java::method(template)))
        }
        _ => (before, java::method(last).into_owned()),
    };
    (classes.join("$"), method)
}

/// `org.opentest4j.AssertionFailedError at CartTest.java:15`, Gradle's short form.
fn short_place(trace: &str) -> Option<(String, u32)> {
    let (_, place) = trace.lines().next()?.rsplit_once(" at ")?;
    let (file, line) = place.rsplit_once(':')?;
    Some((file.to_owned(), line.parse().ok()?))
}

/// `12 tests completed, 6 failed, 2 skipped`.
fn completed(line: &str) -> Option<[u64; 3]> {
    let mut counts = [0; 3];
    for (at, part) in line.split(", ").enumerate() {
        let (number, what) = part.split_once(' ')?;
        let number = number.parse().ok()?;
        match (at, what) {
            (0, "tests completed" | "test completed") => counts[0] = number,
            (1.., "failed") => counts[1] = number,
            (1.., "skipped") => counts[2] = number,
            _ => return None,
        }
    }
    Some(counts)
}

/// `/p/Cart.java:4: error: incompatible types` and `e: file:///p/Cart.kt:4:9 message`.
fn compiler_error(line: &str) -> Option<Problem> {
    let (file, number, message) = if let Some(rest) = line.strip_prefix("e: ") {
        let place = super::frames::place_of_line(rest.split(' ').next()?)?;
        (place.file?, place.line?, rest.split_once(' ')?.1)
    } else {
        let (place, message) = line.split_once(": error: ")?;
        let (file, number) = place.rsplit_once(':')?;
        (file, number.parse().ok()?, message)
    };
    (file.ends_with(".java")
        || file.ends_with(".kt")
        || file.ends_with(".groovy")
        || file.ends_with(".scala"))
    .then(|| {
        Problem::new(ProblemScope::Build, "", Some(FailureKind::Compile), message)
            .placed(Some(file.strip_prefix("file://").unwrap_or(file).to_owned()), Some(number))
    })
}

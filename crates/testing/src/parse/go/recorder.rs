//! What the tests of a package came to, until the package has a name.

use super::modules::Modules;
use crate::streak::Streak;
use crate::{
    Attempt, Event, Failure, FailureKind, Finished, HeadTail, Place, Problem, Sink, TestId, TestStatus,
};

/// More than this is not held of a package, and the run is not green then.
const ROOM: usize = 8 << 20;

#[derive(Debug, Default)]
pub(super) struct Recorder {
    held: Vec<Held>,
    bytes: usize,
    left_out: u64,
    open: Streak<Option<HeadTail>>,
}

#[derive(Debug)]
enum Held {
    Passed(Box<str>, u64),
    Test(Box<HeldTest>),
    NotRun(String),
    Problem(Box<Problem>),
}

#[derive(Debug)]
struct HeldTest {
    name: String,
    status: TestStatus,
    ms: u64,
    output: String,
    kind: Option<FailureKind>,
    message: String,
    stack: String,
    file: Option<String>,
    line: Option<u32>,
    expected: Option<String>,
    actual: Option<String>,
}

impl Recorder {
    /// Tells it all, now that the package has a name.
    pub(super) fn tell(&mut self, package: &str, modules: &Modules, sink: &mut dyn Sink) {
        self.open = Streak::default();
        self.bytes = 0;
        if self.left_out > 0 {
            let tests = std::mem::take(&mut self.left_out);
            sink.event(Event::Complaint(&format!("{tests} tests of {package} are more than could be held")));
        }
        for held in self.held.drain(..) {
            match held {
                Held::Passed(name, ms) => {
                    let test = TestId { suite: package, name: &name };
                    let passed = Finished::new(test, TestStatus::Pass, ms);
                    sink.event(Event::Finished(Finished { attempt: Attempt::Repeat, ..passed }));
                }
                Held::Test(test) => test.tell(package, modules, sink),
                Held::NotRun(name) => sink.event(Event::NotRun(TestId { suite: package, name: &name })),
                Held::Problem(mut problem) => {
                    package.clone_into(&mut problem.name);
                    sink.event(Event::Problem(*problem));
                }
            }
        }
    }

    /// Tells what is left at the end of the output, of a package without an end; says whether nothing was left.
    pub(super) fn tell_unfinished(&mut self, sink: &mut dyn Sink) -> bool {
        let open = std::mem::take(&mut self.open).into_sorted();
        let nothing = open.is_empty() && self.held.is_empty();
        self.tell("", &Modules::default(), sink);
        for (name, output) in open {
            let test = TestId { suite: "", name: &name };
            sink.event(Event::Started { test, at: Place::default() });
            if let Some(output) = output {
                sink.event(Event::Output { test, text: &output.into_text() });
            }
        }
        nothing
    }

    fn hold(&mut self, held: Held, size: usize) {
        let extra = if matches!(held, Held::Passed(..)) { 0 } else { size_of::<HeldTest>() };
        self.bytes += size + extra + size_of::<Held>();
        if self.bytes < ROOM {
            self.held.push(held);
        } else {
            self.left_out += 1;
        }
    }
}

impl Sink for Recorder {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Started { test, .. } => drop(self.open.entry(test.name)),
            Event::Output { test, text } => {
                self.open.entry(test.name).get_or_insert_with(|| HeadTail::new(4 << 10)).push(text);
            }
            Event::Container(test) => drop(self.open.remove(test.name)),
            Event::NotRun(test) => self.hold(Held::NotRun(test.name.to_owned()), test.name.len()),
            Event::Finished(finished) => {
                let output = self.open.remove(finished.test.name).flatten();
                if finished.status == TestStatus::Pass {
                    let name = finished.test.name;
                    self.hold(Held::Passed(name.into(), finished.ms), name.len());
                    return;
                }
                let test = HeldTest::of(&finished, output);
                let size = test.name.len() + test.output.len() + test.message.len() + test.stack.len();
                self.hold(Held::Test(Box::new(test)), size);
            }
            Event::Problem(problem) => {
                let size = problem.message.len();
                self.hold(Held::Problem(Box::new(problem)), size);
            }
            _ => {}
        }
    }
}

impl HeldTest {
    fn of(finished: &Finished<'_>, output: Option<HeadTail>) -> Self {
        let failure = finished.failure.clone().unwrap_or_default();
        Self {
            name: finished.test.name.to_owned(),
            status: finished.status,
            ms: finished.ms,
            output: output.map(HeadTail::into_text).unwrap_or_default(),
            kind: failure.kind,
            message: failure.message.to_owned(),
            stack: failure.stack.to_owned(),
            file: failure.at.file.map(str::to_owned),
            line: failure.at.line,
            expected: failure.expected.map(str::to_owned),
            actual: failure.actual.map(str::to_owned),
        }
    }

    fn tell(&self, package: &str, modules: &Modules, sink: &mut dyn Sink) {
        let test = TestId { suite: package, name: &self.name };
        if !self.output.is_empty() {
            sink.event(Event::Output { test, text: &self.output });
        }
        let finished = Finished { attempt: Attempt::Repeat, ..Finished::new(test, self.status, self.ms) };
        let file = self.file.as_ref().map(|file| modules.file(package, file));
        sink.event(Event::Finished(finished.failure(Failure {
            kind: self.kind,
            message: &self.message,
            stack: &self.stack,
            at: Place { file: file.as_deref(), line: self.line },
            expected: self.expected.as_deref(),
            actual: self.actual.as_deref(),
        })));
    }
}

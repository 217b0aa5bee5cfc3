//! From events to results: keeps what a report needs, in memory that does not grow with the run.

mod open;

use std::io::Write;

use camino::Utf8Path;
use rehearsal_core::Exit;

use crate::paths::Root;
use crate::text::shortened;
use crate::{
    Attempt, Event, Failure, Finished, Problem, ProblemScope, Sink, TestCase, TestId, TestStatus, TestSummary,
};
use open::{Ended, OpenTests, Running};

/// How much is kept.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes of failed tests, and as many again of all others.
    pub kept: usize,
    /// Bytes at each end of what one test printed, and of a message or stack.
    pub text: usize,
    /// Problems outside of tests.
    pub problems: usize,
}

impl Default for Limits {
    /// A report of the largest run stays below ten megabytes, and one test's text within a screenful or two.
    fn default() -> Self {
        Self { kept: 3 << 20, text: 4 << 10, problems: 200 }
    }
}

/// How the process ended, and who ended it.
#[derive(Debug, Clone, Default)]
pub struct Ending {
    /// None if it is not known (an old log).
    pub exit: Option<Exit>,
    /// Whether we ended it.
    pub stopped: Option<Stopped>,
    /// Whether the kernel killed it for its memory.
    pub out_of_memory: bool,
    /// Why the runner could not be started.
    pub runner_missing: Option<String>,
    /// A limit of the sandbox that it ran into, in words.
    pub limit: Option<String>,
}

impl Ending {
    /// An old exit status as people write it: 124 is what `timeout` returns, above 128 it tells a signal.
    pub fn of_status(code: i32) -> Self {
        let exit = if (129..=159).contains(&code) { Exit::Signal(code - 128) } else { Exit::Code(code) };
        let stopped = (code == 124).then_some(Stopped::TimeLimit);
        Self { exit: Some(exit), stopped, ..Self::default() }
    }

    pub(crate) fn exit_code(&self) -> Option<i32> {
        match self.exit? {
            Exit::Code(code) => Some(code),
            Exit::Signal(_) => None,
        }
    }

    pub(crate) fn signal(&self) -> Option<i32> {
        match self.exit? {
            Exit::Signal(signal) => Some(signal),
            Exit::Code(_) => None,
        }
    }
}

/// Why we ended a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// It took too long.
    TimeLimit,
    /// Someone asked for it.
    Cancelled,
}

/// What happens, for those who watch.
#[derive(Debug)]
pub enum Progress<'a> {
    /// So many tests are expected in all.
    Declared(u64),
    /// A test began.
    Started(TestId<'a>),
    /// A test ended (perhaps not for the last time).
    Finished(&'a TestCase),
    /// Something is wrong outside of any test.
    Problem(&'a Problem),
}

/// Watches.
pub(crate) type Watcher = Box<dyn FnMut(Progress<'_>) + Send>;

/// Takes events, keeps results.
pub struct Collector {
    root: Root,
    limits: Limits,
    open: OpenTests,
    run: Collected,
    /// What explains a bad exit status, if it is one.
    hints: Vec<Problem>,
    claimed: Option<TestSummary>,
    room_for_failures: usize,
    room_for_others: usize,
    all_tests: Option<Box<dyn Write + Send>>,
    watcher: Option<Watcher>,
    stopping: bool,
}

/// What a run came to.
#[derive(Debug, Clone, Default)]
pub struct Collected {
    /// The runner's version.
    pub version: Option<String>,
    /// How many tests were announced.
    pub declared: Option<u64>,
    /// How many the runner itself counted in the end.
    pub counted: Option<u64>,
    /// Whether the runner said that it is at its end.
    pub ended: bool,
    /// As many as there was room for.
    pub tests: Vec<TestCase>,
    /// All of them.
    pub summary: TestSummary,
    /// What went wrong outside of tests.
    pub problems: Vec<Problem>,
    /// Whether nothing but the exit status is known, since the output has no format that we read.
    pub exit_decides: bool,
    /// What does not fit together in the output itself (a number twice, a plan that changed).
    pub complaints: Vec<String>,
}

impl Collected {
    /// How many tests were seen, those included that never began but have a name.
    pub fn seen(&self) -> u64 {
        self.summary.total + self.summary.not_run
    }
}

impl Collector {
    /// For a run in this directory, if it is known.
    pub fn new(root: Option<&Utf8Path>, limits: Limits) -> Self {
        Self {
            root: Root::new(root),
            limits,
            open: OpenTests::default(),
            run: Collected::default(),
            hints: Vec::new(),
            claimed: None,
            room_for_failures: limits.kept,
            room_for_others: limits.kept,
            all_tests: None,
            watcher: None,
            stopping: false,
        }
    }

    /// Also writes every test that ends, as a line of JSON; a later line of the same test replaces an earlier one.
    pub fn write_all_to(mut self, file: Box<dyn Write + Send>) -> Self {
        self.all_tests = Some(file);
        self
    }

    /// Also tells this one.
    pub fn watched_by(mut self, watcher: Watcher) -> Self {
        self.watcher = Some(watcher);
        self
    }

    /// From now on we are ending the run: a test that fails now does so because of that.
    pub fn stopping(&mut self) {
        self.stopping = true;
    }

    /// The output is over, and the process has ended like this: what is still open is decided now.
    pub fn finish(mut self, ending: &Ending) -> Collected {
        let status = if self.was_stopped(ending) { TestStatus::Timeout } else { TestStatus::Crash };
        let (running, suites) = self.open.take_running();
        for (suite, name, running) in running {
            self.left_open(TestId { suite: &suite, name: &name }, running, status);
        }
        for name in suites {
            let message = "it was running when the run ended".to_owned();
            self.problem(Problem::new(ProblemScope::Suite, name, None, message));
        }
        self.weigh(ending);
        if let Some(file) = &mut self.all_tests {
            let _ = file.flush();
        }
        self.with_relative_names()
    }

    /// Hints and claims count only if the exit status says the same.
    fn weigh(&mut self, ending: &Ending) {
        let Some(exit) = ending.exit else { return };
        if !exit.is_success() {
            for hint in std::mem::take(&mut self.hints) {
                self.problem(hint);
            }
        }
        if let Some(claimed) = self.claimed.take()
            && self.run.seen() == 0
            && exit.is_success() == (claimed.failed == 0)
        {
            self.run.summary = claimed;
        }
    }

    /// Whether the run was ended from outside, so that a test which was running is not to blame. An old log that
    /// stops in the middle was most likely cut.
    fn was_stopped(&self, ending: &Ending) -> bool {
        const FROM_OUTSIDE: [i32; 4] = [2, 9, 15, 1];
        let by_signal = match ending.exit {
            Some(Exit::Signal(signal)) => FROM_OUTSIDE.contains(&signal),
            // What a shell makes of a signal, and what `timeout` returns.
            Some(Exit::Code(code)) => code == 124 || FROM_OUTSIDE.contains(&(code - 128)),
            None => !self.run.ended,
        };
        ending.stopped.is_some() || by_signal
    }

    fn left_open(&mut self, test: TestId<'_>, running: Running, status: TestStatus) {
        let message = match status {
            TestStatus::Timeout => "it was still running when the run was stopped",
            _ => "the process ended while it ran",
        };
        let failure = Failure { message, ..Failure::default() };
        let case = self.case(&Finished::new(test, status, 0).failure(failure), Some(running));
        self.settle(case, None, Attempt::Only);
    }

    fn with_relative_names(mut self) -> Collected {
        for case in &mut self.run.tests {
            case.file = case.file.take().map(|file| self.root.relative(&file));
            case.package = self.root.relative(&case.package);
        }
        for problem in &mut self.run.problems {
            problem.file = problem.file.take().map(|file| self.root.relative(&file));
            problem.name = self.root.relative(&problem.name);
        }
        self.run
    }

    fn finished(&mut self, finished: &Finished<'_>) {
        let (running, ended) = self.open.take(finished.test);
        let case = self.case(finished, running);
        let ended = self.settle(case, ended, finished.attempt);
        if finished.attempt != Attempt::Only {
            self.open.remember(finished.test, ended);
        }
    }

    fn case(&mut self, finished: &Finished<'_>, running: Option<Running>) -> TestCase {
        let stopped = self.stopping && finished.status.is_failure();
        let mut case = TestCase {
            name: finished.test.name.to_owned(),
            package: finished.test.suite.to_owned(),
            status: if stopped { TestStatus::Timeout } else { finished.status },
            duration: finished.ms,
            ..TestCase::default()
        };
        self.root.note(finished.test.suite);
        if let Some(running) = running {
            case.file = running.file;
            case.line = running.line;
            // What a good test printed is in the whole output, for the few who look.
            if finished.status != TestStatus::Pass {
                case.output = running.output.into_text();
            }
        }
        if let Some(failure) = &finished.failure {
            self.explain(&mut case, failure);
        }
        if let Some(file) = &case.file {
            self.root.note(file);
        }
        case
    }

    fn explain(&self, case: &mut TestCase, failure: &Failure<'_>) {
        let room = self.limits.text;
        case.error = shortened(failure.message.trim_end(), room);
        case.stack_trace = shortened(failure.stack.trim_end(), room);
        case.kind = failure.kind;
        case.expected = failure.expected.map(|text| shortened(text, room));
        case.actual = failure.actual.map(|text| shortened(text, room));
        if let Some(file) = failure.at.file {
            case.file = Some(file.to_owned());
            case.line = failure.at.line;
        }
    }

    /// Counts a test that ended, tells it on, and keeps it if there is room.
    fn settle(&mut self, mut case: TestCase, earlier: Option<Ended>, attempt: Attempt) -> Ended {
        let attempts = earlier.map_or(1, |earlier| earlier.attempts + 1);
        if let Some(earlier) = earlier {
            case.status = together(earlier.status, case.status, attempt);
            case.attempts = Some(attempts);
            self.run.summary.remove(earlier.status);
        }
        self.run.summary.add(case.status);
        if let Some(file) = &mut self.all_tests
            && serde_json::to_writer(&mut *file, &case).is_ok()
        {
            let _ = file.write_all(b"\n");
        }
        if let Some(watcher) = &mut self.watcher {
            watcher(Progress::Finished(&case));
        }
        let (status, kept) = (case.status, earlier.and_then(|earlier| earlier.kept));
        let kept = match kept {
            Some(at) => {
                self.replace(at, case, earlier.map(|earlier| earlier.status));
                Some(at)
            }
            None => self.keep(case),
        };
        Ended { status, attempts, kept }
    }

    fn keep(&mut self, case: TestCase) -> Option<usize> {
        let size = size_of::<TestCase>()
            + case.name.len()
            + case.package.len()
            + case.output.len()
            + case.error.len()
            + case.stack_trace.len();
        let failed = case.status.is_failure() || case.status == TestStatus::Timeout;
        let room = if failed { &mut self.room_for_failures } else { &mut self.room_for_others };
        *room = room.checked_sub(size)?;
        self.run.tests.push(case);
        Some(self.run.tests.len() - 1)
    }

    /// A later attempt joins an earlier one: what went wrong in the worse of them stays told.
    fn replace(&mut self, at: usize, case: TestCase, earlier: Option<TestStatus>) {
        let kept = &mut self.run.tests[at];
        let told = earlier.is_some_and(TestStatus::is_failure) && case.error.is_empty();
        if told || earlier == Some(TestStatus::Flaky) {
            (kept.status, kept.attempts, kept.duration) = (case.status, case.attempts, case.duration);
        } else {
            *kept = case;
        }
    }

    fn problem(&mut self, mut problem: Problem) {
        problem.message = shortened(problem.message.trim(), self.limits.text);
        self.root.note(problem.file.as_deref().unwrap_or(&problem.name));
        if self.run.problems.len() >= self.limits.problems || self.run.problems.contains(&problem) {
            return;
        }
        if let Some(watcher) = &mut self.watcher {
            watcher(Progress::Problem(&problem));
        }
        self.run.problems.push(problem);
    }

    fn suite_ended(&mut self, suite: &str) {
        let status = if self.stopping { TestStatus::Timeout } else { TestStatus::Crash };
        for (name, running) in self.open.end_suite(suite) {
            self.left_open(TestId { suite, name: &name }, running, status);
        }
    }
}

impl Sink for Collector {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Version(version) => self.run.version = Some(version.to_owned()),
            Event::Declared(more) => {
                let declared = self.run.declared.get_or_insert(0);
                *declared = declared.saturating_add(more);
                if let Some(watcher) = &mut self.watcher {
                    watcher(Progress::Declared(*declared));
                }
            }
            Event::SuiteStarted(suite) => self.open.start_suite(suite),
            Event::SuiteEnded(suite) => self.suite_ended(suite),
            Event::Started { test, at } => {
                self.open.start(test, at, self.limits.text);
                if let Some(watcher) = &mut self.watcher {
                    watcher(Progress::Started(test));
                }
            }
            Event::Output { test, text } => self.open.output(test, text, self.limits.text),
            Event::Finished(finished) => self.finished(&finished),
            Event::Container(test) => drop(self.open.take(test)),
            Event::NotRun(test) => {
                let case = self.case(&Finished::new(test, TestStatus::NotRun, 0), None);
                self.settle(case, None, Attempt::Only);
            }
            Event::Counted { status, count } => self.run.summary.add_many(status, count),
            Event::Problem(problem) => self.problem(problem),
            Event::Hint(hint) => {
                if self.hints.len() < self.limits.problems {
                    self.hints.push(hint);
                }
            }
            Event::Claimed { passed, failed, skipped } => {
                let mut claimed = TestSummary::default();
                claimed.add_many(TestStatus::Pass, passed);
                claimed.add_many(TestStatus::Fail, failed);
                claimed.add_many(TestStatus::Skip, skipped);
                self.claimed = Some(claimed);
            }
            Event::Complaint(complaint) => self.run.complaints.push(complaint.to_owned()),
            Event::Ended { counted } => {
                self.run.ended = true;
                self.run.counted = counted;
            }
        }
    }
}

/// What two ends of the same test come to.
fn together(earlier: TestStatus, later: TestStatus, attempt: Attempt) -> TestStatus {
    use TestStatus::{Flaky, Pass};
    match attempt {
        Attempt::Retry if later == Pass && (earlier.is_failure() || earlier == Flaky) => Flaky,
        Attempt::Only | Attempt::Repeat if earlier.is_failure() => earlier,
        Attempt::Only | Attempt::Repeat | Attempt::Retry => later,
    }
}

#[cfg(test)]
mod tests;

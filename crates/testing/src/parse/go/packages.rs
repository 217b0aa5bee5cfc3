//! Packages and their tests while they run: what their events mean.

use super::log::{Log, Mark, Told};
use super::modules::Modules;
use super::stack::Death;
use super::text::read_result;
use crate::streak::Streak;
use crate::{Attempt, Event, FailureKind, Finished, Place, Problem, ProblemScope, Sink, TestId, TestStatus};

/// A subtest's name has slashes of its own; its parent is looked for behind so many.
const DEEPEST: usize = 32;
/// More tests of one package do not run at once.
const MOST_OPEN: usize = 200_000;
/// More results of tests that never began are not kept.
const MOST_DOUBTFUL: usize = 1000;

#[derive(Debug, Default)]
pub(super) struct Packages {
    open: Streak<Package>,
    pub modules: Modules,
    /// Whether any package came to its end.
    pub any_ended: bool,
}

#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each was seen or not, whatever the others are")]
struct Package {
    announced: bool,
    tests: Streak<Open>,
    /// What was printed outside of any test.
    log: Log,
    ran: bool,
    failed: bool,
    /// Whether tests tell of their beginning.
    announces: bool,
    /// How many outermost tests run and do not wait.
    running: usize,
    /// Failures of tests that never began. With `-json -v` Go takes lines that a test printed for its own.
    doubtful: Vec<(String, u64)>,
}

/// A test that has begun.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each was seen or not, whatever the others are")]
struct Open {
    log: Log,
    paused: bool,
    has_subtests: bool,
    has_bad_subtest: bool,
    /// Whether it began where none could: inside of a test that it is no part of. A line that was printed looks so.
    doubtful: bool,
    /// A result that stands behind something that was printed without a line end: Go does not see it.
    unseen: Option<(TestStatus, u64)>,
    /// Subtests that failed without a word, and how long they took: a panic's words come after the end of its test,
    /// and go to the outermost.
    unexplained: Vec<(String, u64)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PackageEnd {
    Good,
    Bad,
    /// Bad, and why is told by the compiler.
    NotBuilt,
}

impl Package {
    fn begin(&mut self, name: &str) {
        if self.tests.get_mut(name).is_some() {
            return;
        }
        let root = name.split('/').next().unwrap_or(name);
        let doubtful = if root == name { self.running > 0 } else { self.tests.get_mut(root).is_none() };
        self.tests.entry(name).doubtful = doubtful;
        self.running += usize::from(Open::default().runs(name));
    }

    fn change(&mut self, name: &str, change: impl FnOnce(&mut Open)) {
        let Some(open) = self.tests.get_mut(name) else { return };
        let before = open.runs(name);
        change(open);
        let after = open.runs(name);
        self.running = (self.running + usize::from(after)).saturating_sub(usize::from(before));
    }

    fn take(&mut self, name: &str) -> Option<Open> {
        let open = self.tests.remove(name)?;
        self.running = self.running.saturating_sub(usize::from(open.runs(name)));
        Some(open)
    }

    /// Whether a result may be of this test: it began, or tests do not tell when they begin. Old versions of Go do not
    /// tell of benchmarks.
    fn may_end(&mut self, name: &str) -> bool {
        !self.announces
            || name.starts_with("Benchmark")
            || self.tests.len() >= MOST_OPEN
            || self.tests.get_mut(name).is_some()
    }

    fn look_for_result(&mut self, text: &str) {
        if !text.ends_with("s)\n") {
            return;
        }
        let Some((before, result)) = read_result(text.trim_end()) else { return };
        if !before.trim().is_empty() {
            self.change(&result.name, |open| open.unseen = Some((result.status, result.ms)));
        }
    }
}

impl Open {
    /// Whether it keeps another outermost test from beginning.
    fn runs(&self, name: &str) -> bool {
        !self.paused && self.unseen.is_none() && !name.contains('/') && !name.starts_with("Benchmark")
    }
}

impl Packages {
    pub(super) fn start(&mut self, package: &str, sink: &mut dyn Sink) {
        let state = self.open.entry(package);
        if !state.announced {
            state.announced = true;
            sink.event(Event::SuiteStarted(package));
        }
    }

    pub(super) fn run(&mut self, test: TestId<'_>, sink: &mut dyn Sink) {
        self.start(test.suite, sink);
        let state = self.open.entry(test.suite);
        if let Some(parent) = parent_of(&mut state.tests, test.name) {
            parent.has_subtests = true;
        }
        state.ran = true;
        state.announces = true;
        if state.tests.len() < MOST_OPEN {
            state.begin(test.name);
        }
        sink.event(Event::Started { test, at: Place::default() });
    }

    pub(super) fn pause(&mut self, test: TestId<'_>, paused: bool) {
        self.open.entry(test.suite).change(test.name, |open| open.paused = paused);
    }

    pub(super) fn output(&mut self, test: TestId<'_>, text: &str, mark: Mark, sink: &mut dyn Sink) {
        let package = self.open.entry(test.suite);
        package.look_for_result(text);
        let may_end = !package.announces || test.name.starts_with("Benchmark");
        match package.tests.get_mut(test.name) {
            Some(open) => {
                open.log.push(text, mark);
                sink.event(Event::Output { test, text });
            }
            // Without `-v` a test begins with its result.
            None if may_end && text.trim_start().starts_with("--- FAIL: ") => {
                package.tests.entry(test.name);
                sink.event(Event::Output { test, text });
            }
            None => package.log.push(text, mark),
        }
    }

    pub(super) fn is_open(&mut self, test: TestId<'_>) -> bool {
        self.open.entry(test.suite).tests.get_mut(test.name).is_some()
    }

    pub(super) fn package_output(&mut self, package: &str, text: &str, mark: Mark) {
        let package = self.open.entry(package);
        package.look_for_result(text);
        package.log.push(text, mark);
    }

    pub(super) fn finish(&mut self, test: TestId<'_>, status: TestStatus, ms: u64, sink: &mut dyn Sink) {
        let package = self.open.entry(test.suite);
        package.ran = true;
        if !package.may_end(test.name) {
            if status == TestStatus::Fail && package.doubtful.len() < MOST_DOUBTFUL {
                package.doubtful.push((test.name.to_owned(), ms));
            }
            return;
        }
        let open = package.take(test.name).unwrap_or_default();
        if status == TestStatus::Fail {
            package.failed = true;
            if let Some(parent) = parent_of(&mut package.tests, test.name) {
                parent.has_bad_subtest = true;
            }
        }
        let mut told = Told::default();
        if status != TestStatus::Pass {
            told = open.log.told(test.name, test.suite, &self.modules);
            told.kind = told.kind.filter(|_| status == TestStatus::Fail);
        }
        let package = self.open.entry(test.suite);
        tell_unexplained(test.suite, &open, &told, sink);
        // A test with subtests is their group, unless it failed by itself. A benchmark is no test, unless it fails.
        let only_a_group = open.has_subtests && (status != TestStatus::Fail || open.has_bad_subtest);
        let only_measured = status != TestStatus::Fail && test.name.starts_with("Benchmark");
        if only_a_group || only_measured {
            sink.event(Event::Container(test));
            return;
        }
        if status == TestStatus::Fail
            && told == Told::default()
            && let Some(parent) = parent_of(&mut package.tests, test.name)
        {
            parent.unexplained.push((test.name.to_owned(), ms));
            return;
        }
        let mut finished = Finished { attempt: Attempt::Repeat, ..Finished::new(test, status, ms) };
        if status != TestStatus::Pass {
            finished = finished.failure(told.failure());
        }
        sink.event(Event::Finished(finished));
    }

    pub(super) fn end(&mut self, package: &str, end: PackageEnd, sink: &mut dyn Sink) {
        self.any_ended = true;
        self.start(package, sink);
        let mut state = self.open.remove(package).unwrap_or_default();
        self.end_open_tests(package, &mut state, sink);
        if end == PackageEnd::Bad && !state.failed {
            state.failed = tell_doubtful(package, &state, sink);
        }
        if end == PackageEnd::Bad && !state.failed && !self.tell_victims(package, &state, sink) {
            sink.event(Event::Problem(self.package_problem(package, &state)));
        }
        sink.event(Event::SuiteEnded(package));
    }

    /// The end of the output: whoever knows how the process ended decides about what still runs.
    pub(super) fn finish_all(&mut self, sink: &mut dyn Sink) {
        let mut none_open = true;
        for (package, state) in std::mem::take(&mut self.open).into_sorted() {
            none_open &= !state.announced && !state.ran;
            for (name, open) in state.tests.into_sorted() {
                let test = TestId { suite: &package, name: &name };
                tell_unexplained(&package, &open, &Told::default(), sink);
                if open.has_subtests {
                    sink.event(Event::Container(test));
                } else if open.paused {
                    not_run(test, sink);
                }
            }
        }
        if none_open && self.any_ended {
            sink.event(Event::Ended { counted: None });
        }
    }

    /// What runs when its package ends went down with it. A goroutine's panic, `os.Exit` and `-timeout` end the
    /// process without a word on the tests that ran.
    fn end_open_tests(&self, package: &str, state: &mut Package, sink: &mut dyn Sink) {
        let tests = std::mem::take(&mut state.tests).into_sorted();
        let words = tests.iter().find_map(|(_, open)| open.log.death()).or_else(|| state.log.death());
        let death = words.as_deref().and_then(Death::read);
        for (name, open) in tests {
            let test = TestId { suite: package, name: &name };
            let told = death.as_ref().map(|death| Told::of_death(death, &name, package, &self.modules));
            tell_unexplained(package, &open, &told.unwrap_or_default(), sink);
            if open.has_subtests || name.starts_with("Benchmark") {
                sink.event(Event::Container(test));
            } else if open.paused {
                not_run(test, sink);
            } else if let Some((status, ms)) = open.unseen {
                state.failed |= status == TestStatus::Fail;
                let told = open.log.told(&name, package, &self.modules);
                let failure = (status != TestStatus::Pass).then(|| told.failure());
                let finished = Finished::new(test, status, ms);
                sink.event(Event::Finished(Finished { attempt: Attempt::Repeat, failure, ..finished }));
            } else if open.doubtful {
                sink.event(Event::Container(test));
            } else {
                state.failed = true;
                self.died(test, death.as_ref(), &open.log, sink);
            }
        }
    }

    fn died(&self, test: TestId<'_>, death: Option<&Death<'_>>, log: &Log, sink: &mut dyn Sink) {
        let mut told = match death {
            Some(death) => Told::of_death(death, test.name, test.suite, &self.modules),
            None => log.told(test.name, test.suite, &self.modules),
        };
        let timed_out = death.is_some_and(|death| {
            let mut named = death.running_tests().peekable();
            death.timed_out && (named.peek().is_none() || named.any(|name| name == test.name))
        });
        let to_blame = death.is_none_or(|death| timed_out || death.mentions(test.name));
        let status = if timed_out { TestStatus::Fail } else { TestStatus::Crash };
        if death.is_none() || !to_blame {
            told.kind = Some(FailureKind::Crash);
            told.message = format!("the process ended while it ran\n{}", told.message);
        }
        let finished = Finished { attempt: Attempt::Repeat, ..Finished::new(test, status, 0) };
        sink.event(Event::Finished(finished.failure(told.failure())));
    }

    /// Without `-v` the tests that died are named only in the process's last words.
    fn tell_victims(&self, package: &str, state: &Package, sink: &mut dyn Sink) -> bool {
        let words = state.log.death();
        let Some(death) = words.as_deref().and_then(Death::read).filter(|_| !state.ran) else { return false };
        let victims = death.victims();
        for name in &victims {
            self.died(TestId { suite: package, name }, Some(&death), &state.log, sink);
        }
        !victims.is_empty()
    }

    /// A package failed though none of its tests did: its set-up, its `TestMain`, a check after the tests.
    fn package_problem(&self, package: &str, state: &Package) -> Problem {
        let text = state.log.all();
        let death = Death::read(text.find("panic: ").map_or(&text, |at| &text[at..]));
        let at = death.as_ref().and_then(|death| death.place(None, package, &self.modules));
        let said: Vec<&str> = text.lines().filter(|line| !is_package_line(line)).collect();
        let message = match &death {
            Some(death) => format!("panic: {}", death.message),
            None if said.is_empty() => "the package failed without a failing test".to_owned(),
            None => said.join("\n"),
        };
        let (file, line) = at.unzip();
        Problem::new(
            if state.ran { ProblemScope::Run } else { ProblemScope::Suite },
            package,
            Some(if death.is_some() { FailureKind::Crash } else { FailureKind::Exit }),
            message,
        )
        .placed(file, line)
    }
}

fn tell_unexplained(package: &str, open: &Open, told: &Told, sink: &mut dyn Sink) {
    for (name, ms) in &open.unexplained {
        let test = TestId { suite: package, name };
        let finished = Finished { attempt: Attempt::Repeat, ..Finished::new(test, TestStatus::Fail, *ms) };
        sink.event(Event::Finished(finished.failure(told.failure())));
    }
}

/// A package failed, and nothing else says why: then these are real.
fn tell_doubtful(package: &str, state: &Package, sink: &mut dyn Sink) -> bool {
    for (name, ms) in &state.doubtful {
        let finished = Finished::new(TestId { suite: package, name }, TestStatus::Fail, *ms);
        sink.event(Event::Finished(Finished { attempt: Attempt::Repeat, ..finished }));
    }
    !state.doubtful.is_empty()
}

fn not_run(test: TestId<'_>, sink: &mut dyn Sink) {
    sink.event(Event::Container(test));
    sink.event(Event::NotRun(test));
}

/// The test that a subtest is part of. A subtest's own name may hold slashes.
fn parent_of<'a>(tests: &'a mut Streak<Open>, name: &str) -> Option<&'a mut Open> {
    let is_open = |tests: &mut Streak<Open>, end: &usize| tests.get_mut(&name[..*end]).is_some();
    let mut ends = name.rmatch_indices('/').map(|(at, _)| at).take(DEEPEST);
    let end = ends.find(|end| is_open(tests, end))?;
    tests.get_mut(&name[..end])
}

fn is_package_line(line: &str) -> bool {
    line.trim().is_empty()
        || line == "FAIL"
        || line == "PASS"
        || line.starts_with("FAIL\t")
        || line.starts_with("ok  \t")
        || line.starts_with("coverage: ")
}

//! One plan, carried out once.

use std::io::BufWriter;
use std::sync::Mutex;

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_core::Exit;
use rehearsal_sandbox::{SandboxReport, Written};
use tokio::time::Instant;

use super::drive::{Driven, Listener, Surroundings, drive};
use super::follow::Followed;
use super::printed::Printed;
use super::raw::Raw;
use super::reports::read_reports;
use super::{LONGEST_TIMEOUT, RunEvent, RunWatcher, Session, coverage};
use crate::combine::combine;
use crate::parse::{Format, Stream, Trust};
use crate::{
    Collected, Collector, CommandLine, Coverage, Ending, FailureKind, Framework, Problem, ProblemScope,
    RunPlan,
};

/// Of a preparation that failed, the end of what it printed is its message.
const LAST_LINES: usize = 40;

/// What a plan came to.
#[derive(Default)]
pub(super) struct Outcome {
    pub framework: Framework,
    pub run: Collected,
    pub ending: Ending,
    pub raw_output: String,
    pub raw_output_file: Option<Utf8PathBuf>,
    pub tests_file: Option<Utf8PathBuf>,
    pub coverage: Option<Coverage>,
    pub sandbox: Option<SandboxReport>,
    pub sandbox_refused: Option<String>,
    pub written: Written,
    pub notes: Vec<String>,
}

/// `label` tells the outputs of several plans and of their retries apart.
pub(super) async fn execute(
    session: &Session<'_>,
    plan: &RunPlan,
    scratch: &Utf8Path,
    label: &str,
) -> Outcome {
    session.watcher.tell(RunEvent::Started(plan));
    let mut outcome = Outcome { framework: plan.framework, ..Outcome::default() };
    if let Some(missing) = &plan.missing {
        outcome.ending.runner_missing = Some(missing.clone());
        return outcome;
    }
    if let Err(error) = lay_out(plan, scratch) {
        outcome.ending.runner_missing = Some(format!("the run could not be prepared: {error}"));
        return outcome;
    }
    let keep = session.request.keep.as_ref();
    let raw_file = keep.map(|directory| directory.join(format!("output-{label}.log")));
    let tests_file = keep.map(|directory| directory.join(format!("tests-{label}.jsonl")));
    let around = session.surroundings(plan, scratch);
    let mut raw = Raw::new(raw_file.as_deref());
    for command in &plan.prepare {
        if let Err(failed) = prepare(plan, command, &around, &mut raw, session.watcher).await {
            outcome.run.problems.push(failed.problem);
            outcome.ending = failed.ending;
            (outcome.raw_output, outcome.raw_output_file, outcome.notes) = raw.finish();
            return outcome;
        }
    }
    let collectors = Collectors::new(session, plan, tests_file.as_deref());
    let make = |trust| collectors.printed(trust);
    let make_followed = |_| collectors.primary();
    let mut listening = Listening {
        raw,
        printed: Printed::new(plan.framework, &make),
        followed: None,
        watcher: session.watcher,
    };
    if let Some(events) = &plan.events {
        match Followed::create(events, plan.framework, &make_followed) {
            Ok(followed) => listening.followed = Some(followed),
            Err(error) => outcome.notes.push(format!("events cannot be followed: {error}")),
        }
    }
    let driven = drive(plan, &plan.command, &around, &mut listening).await;
    conclude_run(plan, scratch, listening, driven, &mut outcome);
    outcome.tests_file = tests_file.filter(|file| settle(file, &outcome.run));
    outcome
}

/// Writes our files, makes the directories that must be writable.
pub(crate) fn lay_out(plan: &RunPlan, scratch: &Utf8Path) -> std::io::Result<()> {
    for file in &plan.files {
        fs_err::write(&file.path, &file.content)?;
    }
    for directory in &plan.writable {
        fs_err::create_dir_all(directory)?;
    }
    // Its time is when the run began, by the clock of the file system that reports are on.
    fs_err::write(scratch.join(STARTED), "")
}

const STARTED: &str = "started";

impl Session<'_> {
    pub(super) fn surroundings(&self, plan: &RunPlan, scratch: &Utf8Path) -> Surroundings<'_> {
        let mut env = self.machine.variables.clone();
        env.extend(plan.env.clone());
        Surroundings {
            spawner: self.spawner,
            project: &self.request.root,
            env,
            writable: plan.writable.iter().cloned().chain([scratch.to_owned()]).collect(),
            readable: plan.readable.clone(),
            until: Instant::now() + self.request.timeout.min(LONGEST_TIMEOUT),
            cancel: self.cancel,
        }
    }
}

fn conclude_run(
    plan: &RunPlan,
    scratch: &Utf8Path,
    listening: Listening<'_>,
    driven: Result<Driven, super::SpawnError>,
    outcome: &mut Outcome,
) {
    let Listening { raw, printed, followed, .. } = listening;
    let notes;
    (outcome.raw_output, outcome.raw_output_file, notes) = raw.finish();
    outcome.notes.extend(notes);
    match driven {
        Ok(driven) => {
            outcome.ending = ending_of(plan, &driven, &outcome.raw_output);
            outcome.notes.extend(driven.notes);
            (outcome.sandbox, outcome.written) = (driven.sandbox, driven.written);
        }
        Err(error) => {
            let why = in_words(&error);
            if matches!(error, super::SpawnError::Sandbox(_)) {
                outcome.sandbox_refused = Some(why.clone());
            }
            outcome.ending.runner_missing = Some(why);
            return;
        }
    }
    let mut tellings = printed.finish(&outcome.ending);
    tellings.extend(followed.and_then(|followed| followed.finish(&outcome.ending)));
    if let Ok(since) = scratch.join(STARTED).metadata().and_then(|it| it.modified()) {
        tellings.extend(read_reports(plan, since, &outcome.ending, &mut outcome.notes));
    }
    if plan.framework == Framework::Generic {
        outcome.framework = told_framework(&tellings);
    }
    outcome.run = combine(tellings);
    // Of a selection, Mocha announces all tests that there are; its own end says that it ran what was selected.
    if plan.selected && plan.framework == Framework::Mocha && outcome.run.ended {
        outcome.run.declared = None;
    }
    if let Some(file) = &plan.coverage {
        match coverage::read(file, &plan.root) {
            Ok(coverage) => outcome.coverage = Some(coverage),
            Err(why) => outcome.notes.push(why),
        }
    }
}

/// The runner behind a command, if its output shows one.
fn told_framework(tellings: &[crate::combine::Telling]) -> Framework {
    let seen = tellings.iter().filter(|telling| telling.run.seen() > 0 || !telling.run.problems.is_empty());
    let best = seen.max_by_key(|telling| telling.trust).and_then(|telling| Format::named(telling.format));
    best.map_or(Framework::Generic, |format| format.framework)
}

fn ending_of(plan: &RunPlan, driven: &Driven, output: &str) -> Ending {
    let end = &driven.end;
    let failed = !end.exit.is_some_and(Exit::is_success);
    Ending {
        exit: end.exit,
        stopped: driven.stopped,
        out_of_memory: end.out_of_memory && failed,
        runner_missing: not_found(plan, end.exit, output),
        limit: end.limits.first().cloned().filter(|_| failed),
    }
}

/// Whether the program that was started did not find the runner.
fn not_found(plan: &RunPlan, exit: Option<Exit>, output: &str) -> Option<String> {
    let last_line = || output.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    match exit? {
        Exit::Code(127) => Some(format!("a command was not found: {}", last_line())),
        Exit::Code(1)
            if plan.framework == Framework::Pytest && last_line().ends_with("No module named pytest") =>
        {
            Some(format!("pytest is not installed: {}", last_line()))
        }
        _ => None,
    }
}

pub(crate) fn in_words(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        words.push_str(&format!(": {error}"));
        source = error.source();
    }
    words
}

struct PrepareFailed {
    problem: Problem,
    ending: Ending,
}

async fn prepare(
    plan: &RunPlan,
    command: &CommandLine,
    around: &Surroundings<'_>,
    raw: &mut Raw,
    watcher: &RunWatcher,
) -> Result<(), PrepareFailed> {
    let mut listener = Preparing { raw, watcher, last: crate::HeadTail::new(4 << 10) };
    let driven = drive(plan, command, around, &mut listener).await;
    let printed = listener.last.into_text();
    let (said, ending) = match driven {
        Ok(driven) if driven.end.exit.is_some_and(Exit::is_success) => return Ok(()),
        Ok(driven) => (printed, ending_of(plan, &driven, "")),
        Err(error) => {
            let ending = Ending { runner_missing: Some(in_words(&error)), ..Ending::default() };
            (in_words(&error), ending)
        }
    };
    let lines: Vec<&str> = said.lines().collect();
    let message = lines[lines.len().saturating_sub(LAST_LINES)..].join("\n");
    let problem = Problem::new(ProblemScope::Build, command.to_string(), Some(FailureKind::Compile), message);
    Err(PrepareFailed { problem, ending })
}

struct Preparing<'a> {
    raw: &'a mut Raw,
    watcher: &'a RunWatcher,
    last: crate::HeadTail,
}

impl Listener for Preparing<'_> {
    fn printed(&mut self, stream: Stream, bytes: &[u8]) {
        self.raw.push(bytes);
        self.last.push(&String::from_utf8_lossy(bytes));
        self.watcher.tell(RunEvent::Printed(stream, bytes));
    }

    fn look(&mut self) {}

    fn stopping(&mut self) {}
}

/// Everything that listens to a run.
struct Listening<'a> {
    raw: Raw,
    printed: Printed<'a>,
    followed: Option<Followed<'a>>,
    watcher: &'a RunWatcher,
}

impl Listener for Listening<'_> {
    fn printed(&mut self, stream: Stream, bytes: &[u8]) {
        self.raw.push(bytes);
        self.printed.feed(stream, bytes);
        self.watcher.tell(RunEvent::Printed(stream, bytes));
    }

    fn stopping(&mut self) {
        self.printed.stopping();
        if let Some(followed) = &mut self.followed {
            followed.stopping();
        }
    }

    fn look(&mut self) {
        /// So that a runner that writes faster than we read does not keep us from its pipes.
        const AT_ONCE: usize = 16;
        if let Some(followed) = &mut self.followed {
            for _ in 0..AT_ONCE {
                if !followed.read() {
                    return;
                }
            }
        }
    }
}

/// Makes collectors. One of them, that of the most telling source, tells the watcher and writes the list of all tests.
struct Collectors<'a> {
    session: &'a Session<'a>,
    plan: &'a RunPlan,
    /// Taken by the first that is primary.
    tests_file: Mutex<Option<BufWriter<fs_err::File>>>,
}

impl<'a> Collectors<'a> {
    fn new(session: &'a Session<'a>, plan: &'a RunPlan, tests_file: Option<&Utf8Path>) -> Self {
        let file = tests_file.and_then(|path| fs_err::File::create(path).ok()).map(BufWriter::new);
        Self { session, plan, tests_file: Mutex::new(file) }
    }

    fn plain(&self) -> Collector {
        Collector::new(Some(&self.plan.root), self.session.request.limits)
    }

    fn primary(&self) -> Collector {
        let watcher = self.session.watcher.clone();
        let mut collector =
            self.plain().watched_by(Box::new(move |progress| watcher.tell(RunEvent::Progress(progress))));
        let file = self.tests_file.lock().ok().and_then(|mut file| file.take());
        if let Some(file) = file {
            collector = collector.write_all_to(Box::new(file));
        }
        collector
    }

    /// For something that is printed: text is primary only where nothing better is to come.
    fn printed(&self, trust: Trust) -> Collector {
        use Framework::{Ava, Bats, Busted, Go, Mocha, Nextest};
        let prints_structure = matches!(self.plan.framework, Go | Mocha | Nextest | Ava | Bats | Busted);
        let better_comes = self.plan.events.is_some() || (prints_structure && trust <= Trust::Text);
        if better_comes { self.plain() } else { self.primary() }
    }
}

/// Sees to it that the list has the tests of the report, if another source than the primary one told most. Says
/// whether there is a list.
fn settle(path: &Utf8Path, run: &Collected) -> bool {
    if run.seen() == 0 || path.metadata().is_ok_and(|it| it.len() > 0) {
        return path.is_file();
    }
    let lines = run.tests.iter().filter_map(|test| serde_json::to_string(test).ok());
    fs_err::write(path, lines.map(|line| line + "\n").collect::<String>()).is_ok()
}

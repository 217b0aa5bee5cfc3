//! Runs a repository's tests and says what came of them.
//!
//! **Invariant:** a report always comes back: for a runner that is not there, one that is killed, one that floods us, and
//! for a reader of ours that breaks. No process of a run outlives it.

mod coverage;
mod drive;
mod execute;
mod follow;
mod printed;
mod raw;
mod reports;
mod retry;
mod spawn;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use camino::Utf8PathBuf;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use spawn::{Launch, SandboxSpawner, SpawnEnd, SpawnError, Spawned, Spawner};

use crate::read::conclude;
use crate::{
    Candidate, Framework, Limits, Machine, Pattern, Progress, RunPlan, Selection, Stream, TestReport,
    TestSummary, Verdict, Wish, detect, plan,
};
pub(crate) use drive::{Driven, Listener, Surroundings, drive};
use execute::{Outcome, execute};
pub(crate) use execute::{in_words, lay_out};
pub(crate) use raw::Raw;

/// Without a word of the user.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(5 * 60);
/// Whatever the user says: an agent that waits longer is lost.
pub const LONGEST_TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// What to run.
#[derive(Debug, Clone)]
pub struct TestRequest {
    /// The repository.
    pub root: Utf8PathBuf,
    /// A runner that was chosen.
    pub framework: Option<Framework>,
    /// A command that was given: it runs instead of what would be found.
    pub command: Option<String>,
    /// Only tests that fit one of these.
    pub patterns: Vec<Pattern>,
    /// No tests that fit one of these.
    pub exclude: Vec<Pattern>,
    /// Variables beside those of the machine.
    pub environment: BTreeMap<String, String>,
    /// For each project; at most [`LONGEST_TIMEOUT`].
    pub timeout: Duration,
    /// How many tests at a time.
    pub parallel: Option<u32>,
    /// How often a test that failed is run again.
    pub retries: u32,
    /// Whether to measure coverage.
    pub coverage: bool,
    /// The machine's programs and variables.
    pub machine: Machine,
    /// Where whole outputs and lists of tests are kept. It exists.
    pub keep: Option<Utf8PathBuf>,
    /// How much of the results is kept in memory.
    pub limits: Limits,
}

impl TestRequest {
    /// All tests of a repository, with what the machine has.
    pub fn new(root: impl Into<Utf8PathBuf>, machine: Machine) -> Self {
        Self {
            root: root.into(),
            framework: None,
            command: None,
            patterns: Vec::new(),
            exclude: Vec::new(),
            environment: BTreeMap::new(),
            timeout: DEFAULT_TIMEOUT,
            parallel: None,
            retries: 0,
            coverage: false,
            machine,
            keep: None,
            limits: Limits::default(),
        }
    }

    /// The projects whose tests are to be run, and what is to be said about the choice.
    pub fn candidates(&self) -> (Vec<Candidate>, Vec<String>) {
        if let Some(command) = &self.command {
            return (vec![Candidate::of_command(command, self.framework)], Vec::new());
        }
        let detection = detect(&self.root, &|program| self.machine.has(program));
        let candidates = match self.framework {
            Some(framework) => detection.chosen_by(framework),
            None => detection.chosen().cloned().collect(),
        };
        (candidates, detection.notes)
    }

    /// Everything that was found, also what is not to be run.
    pub fn found(&self) -> Vec<Candidate> {
        detect(&self.root, &|program| self.machine.has(program)).candidates
    }

    /// What is wanted of each project.
    pub fn wish(&self) -> Wish {
        let selection =
            Selection { patterns: self.patterns.clone(), exclude: self.exclude.clone(), tests: Vec::new() };
        Wish { selection, parallel: self.parallel, coverage: self.coverage }
    }

    /// The machine with the variables of this request.
    fn machine(&self) -> Machine {
        let mut machine = self.machine.clone();
        machine.variables.extend(self.environment.clone());
        machine
    }
}

/// What happens in a run, for those who watch.
#[derive(Debug)]
pub enum RunEvent<'a> {
    /// A command begins.
    Started(&'a RunPlan),
    /// A test began, ended, or something is wrong.
    Progress(Progress<'a>),
    /// Something was printed.
    Printed(Stream, &'a [u8]),
    /// Tests that failed are run again.
    Retrying(&'a [crate::TestCase]),
    /// A project is done.
    Ended(&'a TestReport),
}

/// Watches a run.
#[derive(Clone)]
pub struct RunWatcher(Arc<Mutex<dyn FnMut(RunEvent<'_>) + Send>>);

impl RunWatcher {
    /// Tells this one.
    pub fn new(watch: impl FnMut(RunEvent<'_>) + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(watch)))
    }

    /// Tells no one.
    pub fn none() -> Self {
        Self::new(|_| {})
    }

    pub(crate) fn tell(&self, event: RunEvent<'_>) {
        // A watcher that panicked once may do so again: it is no reason to lose the run.
        (self.0.lock().unwrap_or_else(PoisonError::into_inner))(event);
    }
}

/// The tests of a whole repository.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TestRun {
    /// Whether every project passed.
    pub success: bool,
    /// The worst of all projects.
    pub verdict: Verdict,
    /// Why it is not better.
    pub reasons: Vec<String>,
    /// All together.
    pub summary: TestSummary,
    /// In milliseconds.
    pub duration: u64,
    /// Each project, in the order in which they ran.
    pub projects: Vec<TestReport>,
    /// What else the reader should know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Everything that the parts of one run share.
struct Session<'a> {
    request: &'a TestRequest,
    machine: Machine,
    spawner: &'a dyn Spawner,
    watcher: &'a RunWatcher,
    cancel: &'a CancellationToken,
}

/// Runs the tests of a repository: project after project.
pub async fn run(
    request: &TestRequest,
    spawner: &dyn Spawner,
    watcher: &RunWatcher,
    cancel: &CancellationToken,
) -> TestRun {
    let began = Instant::now();
    let session = Session { request, machine: request.machine(), spawner, watcher, cancel };
    let (candidates, notes) = request.candidates();
    let mut projects = Vec::new();
    for candidate in &candidates {
        if cancel.is_cancelled() && !projects.is_empty() {
            break;
        }
        projects.extend(session.run_candidate(candidate, projects.len()).await);
    }
    together(projects, notes, milliseconds(began))
}

impl Session<'_> {
    async fn run_candidate(&self, candidate: &Candidate, already: usize) -> Vec<TestReport> {
        let mut reports: Vec<TestReport> = Vec::new();
        let scratch = match tempfile::Builder::new().prefix("rehearsal-test-").tempdir() {
            Ok(scratch) => scratch,
            Err(error) => return vec![self.not_started(candidate, &error.to_string())],
        };
        let Some(directory) = camino::Utf8Path::from_path(scratch.path()) else {
            return vec![self.not_started(candidate, "the temporary directory has no UTF-8 name")];
        };
        let plans = plan(candidate, &self.request.wish(), &self.machine, &self.request.root, directory);
        for plan in plans {
            let began = Instant::now();
            let mut outcome = execute(self, &plan, directory, already + reports.len()).await;
            retry::retry(self, candidate, &plan, &mut outcome).await;
            let report = report_of(&plan, outcome, milliseconds(began));
            let nothing =
                plan.may_be_empty && report.verdict == Verdict::NoTests && report.exit_code == Some(0);
            if !nothing {
                self.watcher.tell(RunEvent::Ended(&report));
                reports.push(report);
            }
            if self.cancel.is_cancelled() {
                break;
            }
        }
        reports
    }

    fn not_started(&self, candidate: &Candidate, why: &str) -> TestReport {
        let missing = format!("no temporary directory could be made: {why}");
        let ending = crate::Ending { runner_missing: Some(missing), ..crate::Ending::default() };
        let mut report = conclude(candidate.framework, crate::Collected::default(), &ending, String::new());
        report.root = Some(self.request.root.join(&candidate.root).into_string());
        report
    }
}

fn report_of(plan: &RunPlan, outcome: Outcome, duration: u64) -> TestReport {
    let mut report = conclude(outcome.framework, outcome.run, &outcome.ending, outcome.raw_output);
    report.root = Some(plan.root.to_string());
    report.command = Some(plan.command.to_string());
    report.duration = duration;
    report.raw_output_file = outcome.raw_output_file.map(Utf8PathBuf::into_string);
    report.tests_file = outcome.tests_file.map(Utf8PathBuf::into_string);
    report.coverage = outcome.coverage;
    report.sandbox = outcome.sandbox;
    report.sandbox_refused = outcome.sandbox_refused;
    report.files_written = outcome.written;
    report.notes = plan.notes.iter().cloned().chain(outcome.notes).collect();
    report
}

fn together(projects: Vec<TestReport>, notes: Vec<String>, duration: u64) -> TestRun {
    let mut summary = TestSummary::default();
    for project in &projects {
        summary.merge(&project.summary);
    }
    let worst = projects.iter().max_by_key(|project| project.verdict.weight());
    let (verdict, reasons) = match worst {
        Some(project) => (project.verdict, project.reasons.clone()),
        None => (Verdict::NoTests, vec!["no tests were found".to_owned()]),
    };
    TestRun { success: verdict == Verdict::Passed, verdict, reasons, summary, duration, projects, notes }
}

pub(crate) fn milliseconds(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;

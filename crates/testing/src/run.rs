//! Runs a repository's tests and says what came of them.
//!
//! **Invariant:** a report always comes back: for a runner that is not there, one that is killed, one that floods us, and
//! for a reader of ours that breaks. No process of a run outlives it.

mod coverage;
mod dependencies;
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

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_core::BoxFuture;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use dependencies::{KnownDependencies, dependencies};
pub use spawn::SandboxSpawner;
pub(crate) use spawn::{SpawnError, Spawner};

use crate::read::conclude;
use crate::{
    Affected, Candidate, Framework, Limits, Machine, Pattern, Progress, RunPlan, Selection, Stream,
    TestReport, TestSummary, Verdict, Wish, detect, plan,
};
pub(crate) use drive::{Driven, Listener, Surroundings, drive};
use execute::{Outcome, execute};
pub(crate) use execute::{in_words, lay_out};
pub(crate) use raw::Raw;

/// Without a word of the user.
pub(crate) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(5 * 60);
/// Whatever the user says: an agent that waits longer is lost.
pub(crate) const LONGEST_TIMEOUT: Duration = Duration::from_secs(15 * 60);

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

    /// What is wanted of a project.
    pub fn wish(&self, project: &Project) -> Wish {
        let (patterns, exclude) = (self.patterns.clone(), self.exclude.clone());
        let mut selection = Selection { patterns, exclude, ..Selection::default() };
        if let Some(affected) = &project.affected {
            selection.narrow(affected);
        }
        Wish { selection, parallel: self.parallel, coverage: self.coverage }
    }

    /// What would run of a project, with its own files in that directory.
    pub fn plans(&self, project: &Project, scratch: &Utf8Path) -> Vec<RunPlan> {
        plan(&project.candidate, &self.wish(project), &self.machine(), &self.root, scratch)
    }

    /// Names all that a project's tests run with beside the repository's files: commands and variables.
    pub fn fingerprint(&self, candidate: &Candidate) -> String {
        /// They tell where the user sits, not what the tests do.
        const OF_THE_TERMINAL: [&str; 7] =
            ["COLORTERM", "COLUMNS", "LINES", "OLDPWD", "PWD", "SHLVL", "TERM"];
        let mut hash = Sha256::new();
        let mut add = |text: &str| {
            hash.update(text.as_bytes());
            hash.update([0]);
        };
        for (name, value) in self.machine().variables {
            if !OF_THE_TERMINAL.contains(&name.as_str()) {
                add(&name);
                add(&value);
            }
        }
        for plan in self.plans(&Project::from(candidate.clone()), Utf8Path::new("SCRATCH")) {
            add(plan.framework.name());
            plan.prepare.iter().chain([&plan.command]).for_each(|command| add(&command.to_string()));
            plan.env.iter().for_each(|(name, value)| add(&format!("{name}={value}")));
        }
        hash.finalize().iter().take(20).map(|byte| format!("{byte:02x}")).collect()
    }

    /// The machine with the variables of this request.
    fn machine(&self) -> Machine {
        let mut machine = self.machine.clone();
        machine.variables.extend(self.environment.clone());
        machine
    }
}

/// A project whose tests are to be run.
#[derive(Debug, Clone)]
pub struct Project {
    /// How they run.
    pub candidate: Candidate,
    /// Which of them, if only those are wanted that a change reaches.
    pub affected: Option<Affected>,
}

impl From<Candidate> for Project {
    fn from(candidate: Candidate) -> Self {
        Self { candidate, affected: None }
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
pub struct RunWatcher(Arc<Mutex<Watch>>);

type Watch = dyn FnMut(RunEvent<'_>) + Send;

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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
pub fn run<'a>(
    request: &'a TestRequest,
    spawner: &'a dyn Spawner,
    watcher: &'a RunWatcher,
    cancel: &'a CancellationToken,
) -> BoxFuture<'a, TestRun> {
    Box::pin(async move {
        let (candidates, notes) = request.candidates();
        let projects: Vec<Project> = candidates.into_iter().map(Project::from).collect();
        let mut run = run_projects(request, &projects, spawner, watcher, cancel).await;
        run.notes.extend(notes);
        run
    })
}

/// Runs the tests of these projects.
pub fn run_projects<'a>(
    request: &'a TestRequest,
    projects: &'a [Project],
    spawner: &'a dyn Spawner,
    watcher: &'a RunWatcher,
    cancel: &'a CancellationToken,
) -> BoxFuture<'a, TestRun> {
    Box::pin(async move {
        let began = Instant::now();
        let session = Session { request, machine: request.machine(), spawner, watcher, cancel };
        let mut reports = Vec::new();
        for project in projects {
            if cancel.is_cancelled() && !reports.is_empty() {
                break;
            }
            reports.extend(session.run_project(project, reports.len()).await);
        }
        together(reports, milliseconds(began))
    })
}

impl Session<'_> {
    async fn run_project(&self, project: &Project, already: usize) -> Vec<TestReport> {
        let candidate = &project.candidate;
        let mut reports: Vec<TestReport> = Vec::new();
        let scratch = match tempfile::Builder::new().prefix("rehearsal-test-").tempdir() {
            Ok(scratch) => scratch,
            Err(error) => return vec![self.not_started(candidate, &error.to_string())],
        };
        let Some(directory) = Utf8Path::from_path(scratch.path()) else {
            return vec![self.not_started(candidate, "the temporary directory has no UTF-8 name")];
        };
        for plan in self.request.plans(project, directory) {
            let began = Instant::now();
            let label = (already + reports.len()).to_string();
            let mut outcome = execute(self, &plan, directory, &label).await;
            retry::retry(self, candidate, &plan, &label, &mut outcome).await;
            let mut report = report_of(&plan, outcome, milliseconds(began));
            let nothing =
                plan.may_be_empty && report.verdict == Verdict::NoTests && report.exit_code == Some(0);
            if let Some(affected) = &project.affected {
                selected(&mut report, affected);
            }
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
    let asked =
        |sandbox: &&rehearsal_sandbox::SandboxReport| sandbox.requested != rehearsal_sandbox::Demand::Off;
    report.notes.extend(report.sandbox.iter().filter(asked).flat_map(lacking));
    report
}

/// Says which tests were chosen. That a runner finds none among those that a change may reach is no fault.
fn selected(report: &mut TestReport, affected: &Affected) {
    /// pytest and unittest have a status for it.
    const NO_TESTS: i32 = 5;
    let by_python = matches!(report.framework, Framework::Pytest | Framework::Unittest);
    let calm = report.exit_code == Some(0) || by_python && report.exit_code == Some(NO_TESTS);
    if !affected.all && report.verdict == Verdict::NoTests && report.summary.total == 0 && calm {
        report.become_unaffected(format!("{}: the runner found no tests there", affected.words()));
    }
    report.affected = Some(affected.clone());
}

/// The layers that the sandbox could not give, or not fully.
fn lacking(sandbox: &rehearsal_sandbox::SandboxReport) -> Vec<String> {
    let words = |(layer, report): (rehearsal_sandbox::Layer, &rehearsal_sandbox::LayerReport)| {
        let partial = report.state == rehearsal_sandbox::State::Partial;
        let how = if partial { "holds only in part" } else { "is missing" };
        let why = report.why.as_deref().map_or_else(String::new, |why| format!(": {why}"));
        format!("the sandbox's layer `{layer}` {how}{why}")
    };
    sandbox.missing().into_iter().map(words).collect()
}

fn together(projects: Vec<TestReport>, duration: u64) -> TestRun {
    let mut summary = TestSummary::default();
    for project in &projects {
        summary.merge(&project.summary);
    }
    let worst = projects.iter().max_by_key(|project| project.verdict.weight());
    let (verdict, reasons) = match worst {
        Some(project) => (project.verdict, project.reasons.clone()),
        None => (Verdict::NoTests, vec!["no tests were found".to_owned()]),
    };
    let success = verdict.is_green();
    TestRun { success, verdict, reasons, summary, duration, projects, notes: Vec::new() }
}

pub(crate) fn milliseconds(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;

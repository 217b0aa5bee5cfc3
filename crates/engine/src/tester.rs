//! Runs a repository's tests as the configuration says, remembers what came of them, and finds what is behind the
//! failures. The command line, the MCP server and the step `run_tests` all come here.

mod affected;
mod baseline;
mod remember;

pub(crate) use remember::directory as directory_for_output;

use std::sync::Arc;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_agent::environment::{Variables, tool_environment};
use rehearsal_core::config::{ProjectAccess, SandboxLevel, SandboxSettings, TestingSettings};
use rehearsal_core::{BoxFuture, Clock};
use rehearsal_sandbox::{Demand, Network, ProjectMode};
use rehearsal_store::{Store, StoreError};
use rehearsal_testing::{
    Changes, Comparison, FailureAnalysis, FailureContext, Framework, Machine, Pattern, RunWatcher,
    SandboxSpawner, Since, TestReport, TestRequest, Verdict, Withheld, WorkingTree, analyse,
    blocked_by_sandbox,
};
use tokio_util::sync::CancellationToken;

pub use affected::{ChangedSince, Choice};
use remember::Ran;

/// Runs the tests of one repository.
pub struct Tester {
    /// The repository.
    pub root: Utf8PathBuf,
    /// How they run.
    pub settings: TestingSettings,
    /// The branch that work goes into, if the configuration names one.
    pub base_branch: Option<String>,
    /// Where whole outputs are kept.
    pub keep: Utf8PathBuf,
    /// Our environment, as it was when the program began.
    pub variables: Variables,
    /// Where results are remembered.
    pub store: Arc<dyn Store>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// What the ids of test runs are drawn from.
    pub draws: crate::Draws,
}

/// What is wanted of one run, beyond the configuration.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// Only tests that fit one of these; none: the configured ones.
    pub patterns: Vec<String>,
    /// What the failures are compared with: a branch or a commit.
    pub baseline: Option<String>,
    /// Only tests that what changed since then can reach.
    pub affected: Option<ChangedSince>,
    /// Whether to measure coverage.
    pub coverage: bool,
}

/// What came of it.
#[derive(Debug)]
pub struct Tested {
    /// The worst verdict of all projects.
    pub verdict: Verdict,
    /// Each project.
    pub projects: Vec<TestedProject>,
    /// What else there is to know.
    pub notes: Vec<String>,
}

/// One project.
#[derive(Debug)]
pub struct TestedProject {
    /// The results.
    pub report: TestReport,
    /// What is behind the failures.
    pub analysis: FailureAnalysis,
    /// How they stand to the base, if that was asked.
    pub comparison: Option<Comparison>,
}

/// Why tests could not even be tried.
#[derive(Debug, thiserror::Error)]
pub enum TesterError {
    /// The configuration names a runner that we do not know.
    #[error("unknown test framework `{name}`")]
    UnknownFramework {
        /// The name.
        name: String,
        /// The file that has it, and the line and column.
        place: Option<String>,
    },
    /// What was asked needs git.
    #[error(transparent)]
    Changes(#[from] rehearsal_git::GitError),
    /// The base could not be checked out.
    #[error("cannot check out `{revision}`: {reason}")]
    Baseline {
        /// Which.
        revision: String,
        /// What git said.
        reason: String,
    },
    /// The store did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A directory could not be made.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

impl Tester {
    /// Runs the tests.
    pub fn test<'a>(
        &'a self,
        wanted: &'a Wanted,
        watcher: &'a RunWatcher,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Tested, TesterError>> {
        Box::pin(async move {
            let mut request = self.request(wanted)?;
            let base = match &wanted.baseline {
                Some(revision) => Some(self.baseline(revision).await?),
                None => None,
            };
            request.keep = Some(remember::directory(&self.keep, &self.draws)?);
            let tree = WorkingTree::read(&self.root).await.ok();
            let Choice { projects: to_run, not_run, mut notes } =
                self.choose(&request, wanted.affected.as_ref(), tree.as_ref(), cancel).await?;
            let (began, began_monotonic) = (self.clock.now(), self.clock.monotonic());
            let spawner = self.spawner();
            let mut run = rehearsal_testing::run_projects(&request, &to_run, &spawner, watcher, cancel).await;
            self.clock_in(&mut run.projects, began_monotonic);
            let ran = Ran { request: &request, projects: &to_run, tree: tree.as_ref(), began };
            self.remember(&run.projects, &ran, &mut notes).await;
            let reports: Vec<TestReport> =
                std::mem::take(&mut run.projects).into_iter().chain(not_run).collect();
            // Only failures are compared with what changed.
            let is_red = reports.iter().any(|report| !report.success);
            let changes = if is_red { Changes::read(&self.root, Since::LastCommit).await.ok() } else { None };
            let mut projects = Vec::new();
            for report in reports {
                projects.push(self.explained(report, changes.as_ref()));
            }
            if let Some(base) = base.filter(|_| !cancel.is_cancelled()) {
                self.compare(&base, &request, &mut projects, &mut notes, cancel).await?;
            }
            notes.extend(run.notes);
            let worst =
                projects.iter().map(|project| project.report.verdict).max_by_key(|verdict| verdict.weight());
            Ok(Tested { verdict: worst.unwrap_or(run.verdict), projects, notes })
        })
    }

    /// In a rehearsal no time passes, however long it takes: else its log would be another one each time.
    fn clock_in(&self, reports: &mut [TestReport], began: Duration) {
        let elapsed = self.clock.monotonic().saturating_sub(began);
        let elapsed = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        for report in reports {
            report.duration = report.duration.min(elapsed);
            for test in &mut report.tests {
                test.duration = test.duration.min(elapsed);
            }
        }
    }

    /// What would be run, and why.
    pub fn request(&self, wanted: &Wanted) -> Result<TestRequest, TesterError> {
        let settings = &self.settings;
        let machine = Machine::new(tool_environment(&self.variables));
        let mut request = TestRequest::new(self.root.clone(), machine);
        request.framework = match &settings.framework {
            None => None,
            Some(name) => {
                let place = settings.origins.get("framework").place();
                let unknown = || TesterError::UnknownFramework { name: name.clone(), place };
                Some(Framework::named(name).ok_or_else(unknown)?)
            }
        };
        let patterns = if wanted.patterns.is_empty() { &settings.patterns } else { &wanted.patterns };
        let pattern = |text: &String| Pattern(text.clone());
        request.command.clone_from(&settings.command);
        request.patterns = patterns.iter().map(pattern).collect();
        request.exclude = settings.exclude.iter().map(pattern).collect();
        request.environment.clone_from(&settings.environment);
        request.timeout = settings.timeout.0;
        request.parallel = settings.parallel;
        request.retries = settings.retries;
        request.coverage = wanted.coverage;
        Ok(request)
    }

    /// How commands are confined.
    pub fn spawner(&self) -> SandboxSpawner {
        let sandbox = &self.settings.sandbox;
        if sandbox.level == SandboxLevel::Off {
            return SandboxSpawner::unconfined();
        }
        let mut spawner = SandboxSpawner {
            mode: mode_of(sandbox),
            demand: match sandbox.level {
                SandboxLevel::Required => Demand::Required,
                SandboxLevel::Auto | SandboxLevel::BestEffort | SandboxLevel::Off => Demand::BestEffort,
            },
            network: if sandbox.allow_network { Network::Allowed } else { Network::Private },
            home: self.variables.get("HOME").map(Utf8PathBuf::from),
            readable: tool_directories(&self.variables),
            ..SandboxSpawner::default()
        };
        spawner.limits.memory = sandbox.max_memory.map(|size| size.0);
        spawner.limits.cpus = sandbox.max_cpus;
        spawner.limits.processes = sandbox.max_processes.map(u64::from);
        spawner
    }

    /// What is behind a report's failures.
    fn explained(&self, mut report: TestReport, changes: Option<&Changes>) -> TestedProject {
        let withheld = report.sandbox.is_some().then(|| self.withheld(&report)).flatten();
        if let Some(withheld) = &withheld {
            blocked_by_sandbox(&mut report, withheld);
        }
        let root = report.root.clone().map_or_else(|| self.root.clone(), Utf8PathBuf::from);
        let source = |file: &str, line: u32| source_line(&root, file, line);
        let context =
            FailureContext { root: Some(&root), changes, withheld: withheld.as_ref(), source: Some(&source) };
        let analysis = analyse(&report, &context);
        TestedProject { report, analysis, comparison: None }
    }

    fn withheld(&self, report: &TestReport) -> Option<Withheld> {
        let sandbox = &self.settings.sandbox;
        let layers = &report.sandbox.as_ref()?.layers;
        let holds =
            |layer: &rehearsal_sandbox::LayerReport| layer.state == rehearsal_sandbox::State::Enforced;
        Some(Withheld {
            network: holds(&layers.network) && !sandbox.allow_network,
            filesystem: holds(&layers.files),
            writable: Vec::new(),
            memory: sandbox.max_memory.filter(|_| holds(&layers.memory)).map(|size| size.0),
            open_files: Some(8192),
            processes: sandbox.max_processes.filter(|_| holds(&layers.processes)).map(u64::from),
        })
    }
}

/// Where the `PATH` leads: programs stay usable wherever they are installed, with the libraries beside their `bin`.
fn tool_directories(variables: &Variables) -> Vec<Utf8PathBuf> {
    let home = variables.get("HOME").map(Utf8PathBuf::from);
    // A home, a temporary directory or the root as a whole would show what is to be hidden.
    let too_much = |directory: &Utf8Path| {
        directory.components().count() < 3
            || Some(directory) == home.as_deref()
            || directory.starts_with("/usr")
    };
    let path = variables.get("PATH").map_or("", String::as_str);
    let mut directories = Vec::new();
    for entry in path.split(':').map(Utf8Path::new).filter(|entry| entry.is_absolute()) {
        let beside = entry.parent().filter(|parent| entry.file_name() == Some("bin") && !too_much(parent));
        let shown = beside.unwrap_or(entry).to_owned();
        if !too_much(&shown) && !directories.contains(&shown) {
            directories.push(shown);
        }
    }
    directories
}

fn mode_of(sandbox: &SandboxSettings) -> ProjectMode {
    match sandbox.project {
        None | Some(ProjectAccess::Overlay) => ProjectMode::Overlay,
        Some(ProjectAccess::ReadOnly) => ProjectMode::ReadOnly,
        Some(ProjectAccess::Writable) => ProjectMode::Writable,
    }
}

/// One line of the project's source; never of a file elsewhere, whatever the report names.
fn source_line(root: &Utf8Path, file: &str, line: u32) -> Option<String> {
    const LARGEST: u64 = 4 << 20;
    let path = root.join(file).canonicalize_utf8().ok()?;
    let inside = path.starts_with(root.canonicalize_utf8().ok()?);
    let metadata = path.metadata().ok()?;
    if !inside || !metadata.is_file() || metadata.len() > LARGEST {
        return None;
    }
    let text = fs_err::read_to_string(path).ok()?;
    text.lines().nth(usize::try_from(line).ok()?.checked_sub(1)?).map(str::to_owned)
}

//! A real agent: a driver says how it is called and read, a supervised process does the work, and what it
//! left behind is the evidence.

mod adopt;
mod calls;
mod drive;
mod files;
mod hidden;
mod hindrance;
mod spool;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use camino::Utf8Path;
use rehearsal_core::{
    Clock, Evidence, Exit, Notice, Outcome, Promise, ReportedTask, ResultFile, Stop, WireReport, judge,
    without_prompt,
};
use rehearsal_git::{GitError, Released, release_locks};
use rehearsal_process::{Adoptable, Ended, Escaped, Launcher, SpawnSpec, Supervised};
use rehearsal_sandbox::SandboxReport;
use tokio_util::sync::CancellationToken;

use crate::clis::Sessions;
use crate::confinement::{ConfinedBy, Confinement, Containment, NoSandbox};
use crate::driver::Here;
use crate::environment::{Variables, agent_environment};
use crate::git::Snapshot;
use crate::policy::{LINGER_GRACE, TERMINATE_GRACE};
use crate::redact::Redactor;
use crate::result_file::{read_report, read_result, scrub};
use crate::{Agent, CommandLine, Driver, Lease, Permission, RunReport, RunRequest, Watch};
use adopt::Memo;
use drive::{Drive, Driven};
use files::{PROMPT_FILE, RunFiles, STDOUT_LOG};
use hindrance::Hindrance;
use spool::Spool;

pub use adopt::Orphan;

/// Runs a [`Driver`]'s command as a process.
pub struct ProcessAgent {
    driver: Driver,
    ours: Variables,
    grants: &'static [&'static str],
    clock: Arc<dyn Clock>,
    launcher: Launcher,
    graces: Graces,
    containment: Containment,
    redactor: Mutex<Option<Redactor>>,
}

/// How long we are patient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Graces {
    /// From SIGTERM to SIGKILL.
    pub terminate: Duration,
    /// From the agent's final event to SIGTERM.
    pub linger: Duration,
}

impl Default for Graces {
    fn default() -> Self {
        Self { terminate: TERMINATE_GRACE, linger: LINGER_GRACE }
    }
}

impl ProcessAgent {
    /// An agent of the driver's kind. `ours` is our own environment, of which it sees what is harmless and what
    /// its kind needs.
    pub fn new(driver: Driver, ours: Variables, clock: Arc<dyn Clock>) -> Self {
        let grants = driver.cli().variables;
        let (launcher, graces, containment, redactor) = Default::default();
        Self { driver, ours, grants, clock, launcher, graces, containment, redactor }
    }

    /// The same under another shim.
    pub fn with_launcher(mut self, launcher: Launcher) -> Self {
        self.launcher = launcher;
        self
    }

    /// The same within bounds. Without this, only the rules of its CLI hold.
    pub fn contained(mut self, containment: Containment) -> Self {
        self.containment = containment;
        self
    }

    /// The same without the variables that its kind needs to reach its model: the request has all that it is to get.
    pub fn without_grants(mut self) -> Self {
        self.grants = &[];
        self
    }

    /// The same with other patience.
    pub fn with_graces(mut self, graces: Graces) -> Self {
        self.graces = graces;
        self
    }
}

impl ProcessAgent {
    fn redactor<'a>(&self, variables: impl Iterator<Item = (&'a String, &'a String)>) -> Redactor {
        let mut last = self.redactor.lock().unwrap_or_else(PoisonError::into_inner);
        let redactor = Redactor::renewed(last.take(), variables);
        *last = Some(redactor.clone());
        redactor
    }
}

#[async_trait::async_trait]
impl Agent for ProcessAgent {
    async fn run(&self, request: RunRequest, watch: Watch, cancel: CancellationToken) -> RunReport {
        let command = self.containment.command_line(&self.driver, &request);
        let redactor = self.redactor(self.ours.iter().chain(&command.env).chain(&request.env));
        let mut found = Findings { warnings: command.warnings.clone(), ..Findings::default() };
        let attempt = Attempt { agent: self, request: &request, redactor: &redactor, watch, cancel };
        if let Err(hindrance) = attempt.carry_out(command, &mut found).await {
            found.warnings.push(*hindrance.notice);
            found.evidence.stop = Some(Stop::Hindered(hindrance.outcome));
        }
        found.into_report(&request, &redactor)
    }

    async fn adopt(
        &self,
        orphan: Orphan,
        lease: Lease,
        watch: Watch,
        cancel: CancellationToken,
    ) -> Option<RunReport> {
        self.go_on_with(orphan, lease, watch, cancel).await
    }

    fn driver(&self) -> &str {
        self.driver.cli().name
    }

    fn sessions(&self) -> Sessions {
        self.driver.cli().sessions
    }

    fn confined_by(&self) -> ConfinedBy {
        self.containment.confined_by()
    }
}

/// What is known of a run so far.
#[derive(Default)]
struct Findings {
    evidence: Evidence,
    tasks: Vec<ReportedTask>,
    progress: Vec<String>,
    warnings: Vec<Notice>,
    sandbox: Option<SandboxReport>,
}

impl Findings {
    /// Judges what was found.
    fn into_report(mut self, request: &RunRequest, redactor: &Redactor) -> RunReport {
        self.warnings.extend(scrub(&request.run_dir, redactor).err());
        self.evidence.read_only = request.permission == Permission::Plan;
        self.evidence.wire.final_text = without_prompt(&self.evidence.wire.final_text, &request.prompt);
        let evidence = redactor.redact_all(&self.evidence).unwrap_or_else(|| unspeakable(&self.evidence));
        RunReport {
            verdict: judge(&evidence),
            promise: Promise::find(&evidence.wire.final_text),
            evidence,
            tasks: redactor.redact_all(&self.tasks).unwrap_or_default(),
            progress: redactor.redact_all(&self.progress).unwrap_or_default(),
            tries: 1,
            warnings: redactor.redact_all(&self.warnings).unwrap_or_default(),
            sandbox: self.sandbox,
        }
    }
}

/// What can be told of evidence whose texts cannot be cleared of secrets.
fn unspeakable(evidence: &Evidence) -> Evidence {
    let reason = "the evidence of the run could not be written down".to_owned();
    let stop = Some(Stop::Hindered(Outcome::ProtocolError { reason }));
    Evidence { exit: evidence.exit, stop, ..Evidence::default() }
}

/// One run under way.
struct Attempt<'a> {
    agent: &'a ProcessAgent,
    request: &'a RunRequest,
    redactor: &'a Redactor,
    watch: Watch,
    cancel: CancellationToken,
}

impl Attempt<'_> {
    async fn carry_out(self, command: CommandLine, found: &mut Findings) -> Result<(), Hindrance> {
        let request = self.request;
        let mut files = RunFiles::create(&request.run_dir, &request.prompt, self.redactor)?;
        let CommandLine { program, args, env, stdin, warnings: _ } = command;
        let mut env = agent_environment(&self.agent.ours, self.agent.grants, &env, request);
        let policy = |confinement: &Confinement| confinement.policy(request, &env);
        if let Containment::OwnRules(NoSandbox::Unavailable { why }) = &self.agent.containment {
            found.warnings.push(Notice::NotSandboxed { why: why.clone() });
        }
        let sandbox = self.agent.containment.sandbox().map(policy);
        if sandbox.is_some() {
            // It has a temporary directory of its own, where everybody looks for one.
            env.remove("TMPDIR");
        }
        let policy = sandbox.clone();
        let spec = SpawnSpec { program, args, cwd: request.working_dir.clone(), env, sandbox };
        let beginning = Box::pin(self.begin(spec, &mut files, found));
        let Some(started) = self.cancel.run_until_cancelled(beginning).await else {
            found.evidence.stop = Some(Stop::Cancelled);
            return Ok(());
        };
        let (process, before) = started?;
        found.note_sandbox(&process);
        let drive = self.drive(files);
        let driven = drive.until_over(process, stdin, &self.cancel).await;
        let concluded = self.conclude(driven, before, found).await;
        let log = request.run_dir.join(STDOUT_LOG);
        found.warnings.extend(policy.and_then(|policy| hidden::withheld(&log, &policy)));
        concluded
    }

    fn drive(&self, files: RunFiles) -> Drive {
        let clock = Arc::clone(&self.agent.clock);
        let here = Here::of(Arc::clone(&clock), &self.agent.ours);
        let (parser, graces) = (self.agent.driver.parser(here), self.agent.graces);
        let (redactor, watch) = (self.redactor.clone(), self.watch.clone());
        Drive::new(self.request, parser, files, redactor, watch, clock, graces)
    }

    /// Starts the process; a new shim gets ready while git looks around.
    async fn begin(
        &self,
        spec: SpawnSpec,
        files: &mut RunFiles,
        found: &mut Findings,
    ) -> Result<(Supervised, Option<Snapshot>), Hindrance> {
        let shim = self.agent.launcher.start()?;
        let before = match Snapshot::take(&self.request.working_dir).await {
            Ok(before) => before,
            Err(GitError::Io { .. }) if !self.request.working_dir.is_dir() => None,
            Err(error) => {
                found.warnings.push(changes_unknown(&error));
                None
            }
        };
        let adoptable = self.adoptable(&spec, before.as_ref(), files, found);
        Ok((shim.run_adoptable(spec, adoptable).await?, before))
    }

    /// What lets the next worker go on with the run, should this one die.
    fn adoptable(
        &self,
        spec: &SpawnSpec,
        before: Option<&Snapshot>,
        files: &mut RunFiles,
        found: &mut Findings,
    ) -> Option<Adoptable> {
        let rendezvous = self.request.rendezvous.as_ref().filter(|_| self.request.lease.is_some())?;
        let prepared = Spool::new(files.lengths().stdout()).and_then(|spool| {
            let memo = Memo::new(self, spec, before, files.lengths(), &found.warnings);
            let adoptable = Adoptable::new(&rendezvous.socket, memo.encode()?, spool.duplicates()?)?;
            Ok((adoptable, spool))
        });
        match prepared {
            Ok((adoptable, spool)) => {
                files.stdout.spool = Some(spool);
                Some(adoptable)
            }
            Err(error) => {
                found.warnings.push(Notice::NotAdoptable { error: error.to_string() });
                None
            }
        }
    }

    /// Gathers what the run left behind.
    async fn conclude(
        &self,
        driven: Driven,
        before: Option<Snapshot>,
        found: &mut Findings,
    ) -> Result<(), Hindrance> {
        let Driven { ended, stop, wire, warnings, process } = driven;
        found.warnings.extend(warnings);
        // Whoever would adopt the run has all of it until we have gathered what it left.
        let gathered = self.gather(ended, stop, wire, before, found).await;
        drop(process);
        gathered
    }

    async fn gather(
        &self,
        ended: Ended,
        stop: Option<Stop>,
        wire: WireReport,
        before: Option<Snapshot>,
        found: &mut Findings,
    ) -> Result<(), Hindrance> {
        found.warnings.extend(leftovers(&ended));
        found.note_wire(wire, &ended, stop);
        if !self.request.working_dir.is_dir() {
            return Err(Hindrance::working_dir_deleted(&self.request.working_dir));
        }
        if was_killed(&ended, found.evidence.stop.as_ref()) {
            found.warnings.extend(release_git_locks(&self.request.working_dir, &self.request.run_dir).await);
        }
        if let Some(before) = before {
            match before.facts_since(&self.request.working_dir).await {
                Ok(facts) => found.evidence.git = Some(facts),
                Err(error) => found.warnings.push(changes_unknown(&error)),
            }
        }
        found.read_run_dir(self.request);
        Ok(())
    }
}

impl Findings {
    fn note_sandbox(&mut self, process: &Supervised) {
        self.sandbox = process.sandbox().cloned();
        self.warnings.extend(self.sandbox.as_ref().and_then(not_held));
    }

    fn note_wire(&mut self, wire: WireReport, ended: &Ended, stop: Option<Stop>) {
        self.evidence.exit = Some(ended.exit);
        self.evidence.stop = stop;
        self.evidence.wire = wire;
    }

    fn read_run_dir(&mut self, request: &RunRequest) {
        let report = read_report(&request.run_dir);
        self.tasks = report.tasks;
        self.progress = report.progress;
        self.warnings.extend(report.unreadable);
        self.evidence.result_file = read_result(&request.run_dir);
        if let Some(Ok(ResultFile { tasks, progress, .. })) = &self.evidence.result_file {
            self.tasks.extend(tasks.iter().cloned());
            self.progress.extend(progress.iter().cloned());
        }
    }
}

/// Removes the lock files that a killed git of a run left in its repository, once all processes of the run are
/// gone; what it did.
pub async fn release_git_locks(working_dir: &Utf8Path, run_dir: &Utf8Path) -> Option<Notice> {
    match release_locks(working_dir, &run_dir.join(PROMPT_FILE)).await {
        Released::Nothing => None,
        Released::Removed(locks) => {
            Some(Notice::GitLocksRemoved { locks: locks.iter().map(ToString::to_string).collect() })
        }
        Released::InUse(directory) => Some(Notice::GitLocksInUse { directory: directory.to_string() }),
    }
}

/// Whether any process of the run may have died without the time to tidy up.
fn was_killed(ended: &Ended, stop: Option<&Stop>) -> bool {
    let by_signal = matches!(ended.exit, Exit::Signal(_));
    stop.is_some() || by_signal || ended.supervisor_lost || ended.escaped.count > 0
}

fn changes_unknown(error: &GitError) -> Notice {
    Notice::ChangesUnknown { error: error.to_string() }
}

/// What was asked of the sandbox and is not to be had here.
fn not_held(sandbox: &SandboxReport) -> Option<Notice> {
    let missing = sandbox.missing().into_iter().map(|(layer, report)| (layer, report.why.clone()));
    let missing: BTreeMap<_, _> = missing.collect();
    (!missing.is_empty()).then_some(Notice::SandboxIncomplete { missing })
}

/// What a person should know about how the processes ended.
fn leftovers(ended: &Ended) -> Vec<Notice> {
    let Escaped { count, names } = ended.escaped.clone();
    let supervisor = ended.supervisor_lost.then_some(Notice::SupervisorKilled);
    let killed = (count > 0).then_some(Notice::LeftoversKilled { count, names });
    let limits = ended.limits.iter().map(|limit| Notice::LimitReached { limit: *limit });
    let stuck = (ended.left > 0).then_some(Notice::ProcessesStuck { count: ended.left });
    supervisor.into_iter().chain(killed).chain(limits).chain(stuck).collect()
}

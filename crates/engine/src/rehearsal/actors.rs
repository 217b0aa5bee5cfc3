//! The agents of a rehearsal: real processes that do as the scenario says, call by call, in its time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use camino::Utf8PathBuf;
use rehearsal_agent::driver::driver_with;
use rehearsal_agent::environment::Variables;
use rehearsal_agent::mock::{CLOCK_VARIABLE, RunScript};
use rehearsal_agent::process::{Launcher, SHIM_ARGUMENT};
use rehearsal_agent::{Agent, Driver, Graces, ProcessAgent, Retrying, RunReport, RunRequest, Watch};
use rehearsal_core::config::{DriverKind, Settings};
use rehearsal_core::{AgentName, Clock, Outcome, Stop, TimeLimit, Timestamp, judge};
use tokio_util::sync::CancellationToken;

use super::clock::{InsideClock, StageClock, Who, WorkerClock};
use super::clock_socket::ClockSocket;
use super::runs::{Calls, RoleScript};
use super::vendor::{self, Vendor};
use crate::{Role, Roles, SetupError};

/// Real time that an agent may take, in case it does not ask the rehearsal's clock: far more than any needs.
const SAFETY: Duration = Duration::from_secs(60);
/// Real time that an agent gets to end; no scripted one needs any.
const GRACES: Graces = Graces { terminate: Duration::from_secs(1), linger: Duration::from_secs(1) };

/// What all agents of a rehearsal share.
pub(super) struct Actors {
    pub(super) clock: StageClock,
    pub(super) socket: ClockSocket,
    pub(super) calls: Calls,
    pub(super) scripts: Utf8PathBuf,
    /// What went wrong with the rehearsal itself.
    pub(super) problems: Problems,
    /// Our program, which plays the agents.
    pub(super) program: Utf8PathBuf,
    pub(super) variables: Variables,
    pub(super) settings: Settings,
    pub(super) roles: BTreeMap<AgentName, RoleScript>,
    /// Those that are played by a model's answers.
    pub(super) staged: BTreeSet<AgentName>,
    /// Who has the answers.
    pub(super) vendor: Option<Vendor>,
    pub(super) seed: u64,
    /// There is no room for what agents say until then.
    pub(super) full_until: AtomicI64,
    /// One process after another can serve the same role, whichever worker asks.
    pub(super) processes: Mutex<BTreeMap<(DriverKind, String), Arc<ProcessAgent>>>,
}

/// What went wrong with the rehearsal itself; the first such thing ends it.
#[derive(Debug, Default)]
pub(super) struct Problems {
    told: Mutex<Vec<String>>,
    pub(super) halt: CancellationToken,
}

impl Problems {
    pub(super) fn tell(&self, problem: impl Into<String>) {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).push(problem.into());
        self.halt.cancel();
    }

    pub(super) fn told(&self) -> Vec<String> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Actors {
    /// What agents say cannot be kept for so long.
    pub(super) fn fill_disk(&self, span: Duration) {
        self.full_until.store(self.clock.now().plus(span).0, Ordering::SeqCst);
    }

    fn is_disk_full(&self) -> bool {
        Timestamp(self.full_until.load(Ordering::SeqCst)) > self.clock.now()
    }

    /// The process behind a role.
    fn process(&self, name: &AgentName) -> Arc<ProcessAgent> {
        let role = self.roles.get(name).map(|role| role.0.clone()).unwrap_or_default();
        let is_staged = self.staged.contains(name);
        let (kind, program, args) = match role.program {
            Some(program) => (role.plays.unwrap_or(DriverKind::Command), program, Vec::new()),
            None if is_staged => (DriverKind::Crew, self.program.to_string(), Vec::new()),
            None => {
                let kind = role.plays.unwrap_or(DriverKind::Claude);
                let played: &[&str] =
                    if kind == DriverKind::Command { &[] } else { &["--as", kind.as_str()] };
                let args = ["mock-agent"].iter().chain(played).map(|arg| (*arg).to_owned()).collect();
                (kind, self.program.to_string(), args)
            }
        };
        let mut processes = self.processes.lock().unwrap_or_else(PoisonError::into_inner);
        // A member of the crew is told its role by its command line.
        let key = if is_staged { name.to_string() } else { program.clone() };
        let made = processes.entry((kind, key)).or_insert_with(|| {
            let launcher = Launcher::new(self.program.clone(), [SHIM_ARGUMENT.to_owned()]);
            let driver: Box<dyn Driver> = if is_staged {
                Box::new(vendor::driver(name, &program, &self.settings))
            } else {
                driver_with(kind, Some(program), args, None)
            };
            let clock = WorkerClock { stage: self.clock.clone(), worker: 0 };
            let process = ProcessAgent::new(driver, self.variables.clone(), Arc::new(clock));
            Arc::new(process.with_launcher(launcher).with_graces(GRACES))
        });
        Arc::clone(made)
    }
}

/// The agents of one worker.
pub(super) struct StageRoles {
    pub(super) actors: Arc<Actors>,
    pub(super) worker: usize,
}

#[async_trait]
impl Roles for StageRoles {
    async fn role(&self, name: &AgentName) -> Option<Result<Role, SetupError>> {
        let profile = self.actors.settings.profile_of(name)?.clone();
        let clock = WorkerClock { stage: self.actors.clock.clone(), worker: self.worker };
        let agent = StageAgent {
            name: name.clone(),
            process: self.actors.process(name),
            actors: Arc::clone(&self.actors),
            clock: clock.clone(),
        };
        let agent = Retrying::new(agent, Arc::new(InsideClock(clock)), self.actors.seed);
        Some(Ok(Role { agent: Arc::new(agent), profile, template: None }))
    }
}

/// An agent whose limits are kept by the rehearsal's clock.
struct StageAgent {
    name: AgentName,
    process: Arc<ProcessAgent>,
    actors: Arc<Actors>,
    clock: WorkerClock,
}

/// Limits of one run, in the rehearsal's time.
struct Limits {
    began: Timestamp,
    heard: Arc<AtomicI64>,
    total: Option<Duration>,
    idle: Option<Duration>,
}

impl Limits {
    fn next(&self) -> Option<(Timestamp, TimeLimit)> {
        let heard = Timestamp(self.heard.load(Ordering::Relaxed));
        let total = self.total.map(|limit| (self.began.plus(limit), TimeLimit::Total));
        let idle = self.idle.map(|limit| (heard.plus(limit), TimeLimit::Idle));
        [total, idle].into_iter().flatten().min_by_key(|(at, _)| *at)
    }

    /// Returns when one of them is reached.
    async fn reached(&self, clock: &WorkerClock) -> Stop {
        while let Some((at, limit)) = self.next() {
            let awake = clock.stage.awake();
            if awake >= at {
                let since = match limit {
                    TimeLimit::Total => self.began,
                    TimeLimit::Idle => Timestamp(self.heard.load(Ordering::Relaxed)),
                };
                let after = awake.since(since);
                return Stop::TimedOut {
                    limit,
                    after_ms: u64::try_from(after.as_millis()).unwrap_or(u64::MAX),
                };
            }
            clock.sleep_until(clock.now().plus(at.since(awake))).await;
        }
        std::future::pending().await
    }
}

#[async_trait]
impl Agent for StageAgent {
    async fn run(&self, request: RunRequest, watch: Watch, cancel: CancellationToken) -> RunReport {
        let stage = &self.clock.stage;
        let Some(ticket) = stage.holder() else {
            self.actors.problems.tell("an agent was run by someone who did not have the turn");
            return cancelled();
        };
        if self.actors.is_disk_full() {
            // Its first word would find no room, and it would be ended: so it is not begun.
            return hindered(Outcome::DiskFull { path: request.run_dir.join("stdout.log").to_string() });
        }
        let Some(request) = self.as_told(request) else { return cancelled() };
        let (began, run) = (stage.awake(), request.run.clone());
        let heard = Arc::new(AtomicI64::new(began.0));
        let limits =
            Limits { began, heard: Arc::clone(&heard), total: request.timeout, idle: request.idle_timeout };
        let watch = heard_by(watch, stage.clone(), heard);
        // Leases are kept by the rehearsal's clock, too.
        let request =
            RunRequest { timeout: Some(SAFETY), idle_timeout: Some(SAFETY), lease: None, ..request };
        let sleeps = self.actors.socket.running(run.as_str(), ticket, self.clock.worker);
        let stop = CancellationToken::new();
        let running = self.process.run(request, watch, stop.clone());
        tokio::pin!(running);
        let who = Who::Worker(self.clock.worker);
        let stopped = tokio::select! {
            biased;
            report = &mut running => {
                if matches!(report.evidence.stop, Some(Stop::TimedOut { .. })) {
                    let told = format!("agent `{}` did not end in {} s of real time", self.name, SAFETY.as_secs());
                    self.actors.problems.tell(told);
                }
                stage.regain(ticket, who).await;
                stage.yield_turn(who).await;
                return report;
            }
            () = cancel.cancelled() => Stop::Cancelled,
            stopped = limits.reached(&self.clock) => stopped,
        };
        sleeps.stop();
        stage.regain(ticket, who).await;
        stop.cancel();
        let mut report = running.await;
        report.evidence.stop = Some(stopped);
        report.verdict = judge(&report.evidence);
        report
    }

    fn driver(&self) -> &str {
        self.process.driver()
    }
}

impl StageAgent {
    /// The request with what the scenario tells the agent; none if it tells nothing more.
    fn as_told(&self, mut request: RunRequest) -> Option<RunRequest> {
        request.env.insert(CLOCK_VARIABLE.to_owned(), self.actors.socket.path.to_string());
        let date = format!("@{} +0000", self.clock.now().0 / 1000);
        for name in ["GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"] {
            request.env.insert(name.to_owned(), date.clone());
        }
        if self.actors.staged.contains(&self.name) {
            request.env.extend(self.actors.vendor.iter().flat_map(Vendor::variables));
            return Some(request);
        }
        let problems = &self.actors.problems;
        let Some(call) = self.actors.calls.next(&self.name, &request.task) else {
            let name = &self.name;
            problems.tell(format!(
                "agent `{name}` was asked for task {} more often than the scenario tells",
                request.task
            ));
            return None;
        };
        match &call.script.script {
            None => request.env.extend(call.script.variables()),
            Some(actions) => {
                let path = self.actors.scripts.join(format!("{}-{}.json", self.name, call.number));
                let written = serde_json::to_vec(&RunScript { run: actions }).map_err(std::io::Error::other);
                if let Err(error) = written.and_then(|text| fs_err::write(&path, text)) {
                    problems.tell(error.to_string());
                    return None;
                }
                request.env.insert("REHEARSAL_MOCK_SCRIPT".to_owned(), path.to_string());
                request.env.insert("REHEARSAL_MOCK_STATE".to_owned(), format!("{path}.calls"));
            }
        }
        Some(request)
    }
}

/// Notes when an agent was last heard of.
fn heard_by(watch: Watch, clock: StageClock, heard: Arc<AtomicI64>) -> Watch {
    Arc::new(move |activity| {
        heard.store(clock.awake().0, Ordering::Relaxed);
        watch(activity);
    })
}

/// The report of a run that the rehearsal itself stopped.
fn cancelled() -> RunReport {
    hindered(Outcome::Cancelled)
}

/// The report of a run that did not begin.
fn hindered(outcome: Outcome) -> RunReport {
    let evidence = rehearsal_core::Evidence {
        stop: Some(Stop::Hindered(outcome)),
        ..rehearsal_core::Evidence::default()
    };
    RunReport {
        verdict: judge(&evidence),
        evidence,
        promise: None,
        tasks: Vec::new(),
        progress: Vec::new(),
        tries: 1,
        warnings: Vec::new(),
        sandbox: None,
    }
}

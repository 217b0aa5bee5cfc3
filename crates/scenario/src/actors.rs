//! The scripted agents: real processes that follow the scenario call by call, on its clock.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use camino::Utf8PathBuf;
use rehearsal_agent::clis::Sessions;
use rehearsal_agent::driver::Program;
use rehearsal_agent::environment::Variables;
use rehearsal_agent::mock::{CLOCK_VARIABLE, RunScript};
use rehearsal_agent::{Agent, Driver, Graces, ProcessAgent, Retrying, RunReport, RunRequest, Watch, cli_of};
use rehearsal_core::config::{DriverKind, Settings};
use rehearsal_core::{AgentName, Clock, Outcome, Stop, TimeLimit, Timestamp, judge};
use rehearsal_process::{Launcher, SHIM_ARGUMENT};
use tokio_util::sync::CancellationToken;

use crate::calls::{Calls, RoleScript};
use crate::clock::{InsideClock, ScenarioClock, Who, WorkerClock};
use crate::clock_socket::ClockSocket;
use crate::fake_model::{self, FakeModel};
use rehearsal_engine::{Role, Roles, SetupError};

/// The longest an agent may take in real time, if it never asks the virtual clock. Far more than any needs.
const SAFETY: Duration = Duration::from_secs(60);
/// The grace period to end an agent, in real time. No scripted agent needs it.
const GRACES: Graces = Graces { terminate: Duration::from_secs(1), linger: Duration::from_secs(1) };

/// What all agents of a rehearsal share.
pub(crate) struct Actors {
    pub(crate) clock: ScenarioClock,
    pub(crate) socket: ClockSocket,
    pub(crate) calls: Calls,
    pub(crate) scripts: Utf8PathBuf,
    /// What went wrong with the rehearsal itself.
    pub(crate) problems: Problems,
    /// Our program, which plays the agents.
    pub(crate) program: Utf8PathBuf,
    pub(crate) variables: Variables,
    pub(crate) settings: Settings,
    pub(crate) roles: BTreeMap<AgentName, RoleScript>,
    /// The agents that use the fake model.
    pub(crate) staged: BTreeSet<AgentName>,
    pub(crate) vendor: Option<FakeModel>,
    pub(crate) seed: u64,
    /// Until then the disk of agent output is full.
    pub(crate) full_until: AtomicI64,
    /// The processes by role, shared by all workers.
    pub(crate) processes: Mutex<BTreeMap<(DriverKind, String), Arc<ProcessAgent>>>,
}

/// What went wrong with the rehearsal itself; the first problem ends it.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    list: Mutex<Vec<String>>,
    pub(crate) halt: CancellationToken,
}

impl Problems {
    pub(crate) fn add(&self, problem: impl Into<String>) {
        self.list.lock().unwrap_or_else(PoisonError::into_inner).push(problem.into());
        self.halt.cancel();
    }

    pub(crate) fn all(&self) -> Vec<String> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Actors {
    /// Makes the disk of agent output full for a while.
    pub(crate) fn fill_disk(&self, span: Duration) {
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
            Some(program) => (role.plays.unwrap_or(DriverKind::COMMAND), program, Vec::new()),
            None if is_staged => (DriverKind::CREW, self.program.to_string(), Vec::new()),
            None => {
                let kind = role.plays.unwrap_or(DriverKind::CLAUDE);
                let args = ["mock-agent", "--as", kind.as_str()].map(str::to_owned).to_vec();
                (kind, self.program.to_string(), args)
            }
        };
        let mut processes = self.processes.lock().unwrap_or_else(PoisonError::into_inner);
        // A crew agent gets its role from its command line.
        let key = if is_staged { name.to_string() } else { program.clone() };
        let made = processes.entry((kind, key)).or_insert_with(|| {
            let launcher = Launcher::new(self.program.clone(), [SHIM_ARGUMENT.to_owned()]);
            let driver = if is_staged {
                fake_model::driver(name, &program, &self.settings)
            } else {
                Driver::new(cli_of(kind), Program::from(program).with_args(args))
            };
            let clock = WorkerClock { environment: self.clock.clone(), worker: 0 };
            let process = ProcessAgent::new(driver, self.variables.clone(), Arc::new(clock));
            Arc::new(process.with_launcher(launcher).with_graces(GRACES))
        });
        Arc::clone(made)
    }
}

/// The agents of one worker.
pub(crate) struct ScriptedRoles {
    pub(crate) actors: Arc<Actors>,
    pub(crate) worker: usize,
}

#[async_trait]
impl Roles for ScriptedRoles {
    async fn role(&self, name: &AgentName) -> Option<Result<Role, SetupError>> {
        let profile = self.actors.settings.profile_of(name)?.clone();
        let clock = WorkerClock { environment: self.actors.clock.clone(), worker: self.worker };
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

/// An agent whose limits follow the virtual clock.
struct StageAgent {
    name: AgentName,
    process: Arc<ProcessAgent>,
    actors: Arc<Actors>,
    clock: WorkerClock,
}

/// The limits of one run, in virtual time.
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

    /// Returns when a limit is reached.
    async fn reached(&self, clock: &WorkerClock) -> Stop {
        while let Some((at, limit)) = self.next() {
            let awake = clock.environment.awake();
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
        let environment = &self.clock.environment;
        let Some(ticket) = environment.holder() else {
            self.actors.problems.add("an agent was run by someone who did not have the turn");
            return cancelled();
        };
        if self.actors.is_disk_full() {
            // Its first output would fail and end it, so it does not start.
            return hindered(Outcome::DiskFull { path: request.run_dir.join("stdout.log").to_string() });
        }
        let Some(request) = self.scripted_request(request) else { return cancelled() };
        let (began, run) = (environment.awake(), request.run.clone());
        let heard = Arc::new(AtomicI64::new(began.0));
        let limits =
            Limits { began, heard: Arc::clone(&heard), total: request.timeout, idle: request.idle_timeout };
        let watch = heard_by(watch, environment.clone(), heard);
        // Leases follow the virtual clock, too.
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
                    self.actors.problems.add(told);
                }
                environment.regain(ticket, who).await;
                environment.yield_turn(who).await;
                return report;
            }
            () = cancel.cancelled() => Stop::Cancelled,
            stopped = limits.reached(&self.clock) => stopped,
        };
        sleeps.stop();
        environment.regain(ticket, who).await;
        stop.cancel();
        let mut report = running.await;
        report.evidence.stop = Some(stopped);
        report.verdict = judge(&report.evidence);
        report
    }

    fn driver(&self) -> &str {
        self.process.driver()
    }

    fn sessions(&self) -> Sessions {
        self.process.sessions()
    }
}

impl StageAgent {
    /// The request with the script of this call; none if the scenario has no more calls.
    fn scripted_request(&self, mut request: RunRequest) -> Option<RunRequest> {
        request.env.insert(CLOCK_VARIABLE.to_owned(), self.actors.socket.path.to_string());
        let date = format!("@{} +0000", self.clock.now().0 / 1000);
        for name in ["GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"] {
            request.env.insert(name.to_owned(), date.clone());
        }
        if self.actors.staged.contains(&self.name) {
            request.env.extend(self.actors.vendor.iter().flat_map(FakeModel::variables));
            return Some(request);
        }
        let problems = &self.actors.problems;
        let Some(call) = self.actors.calls.next(&self.name, &request.task) else {
            let name = &self.name;
            problems.add(format!(
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
                    problems.add(error.to_string());
                    return None;
                }
                request.env.insert("REHEARSAL_MOCK_SCRIPT".to_owned(), path.to_string());
                request.env.insert("REHEARSAL_MOCK_STATE".to_owned(), format!("{path}.calls"));
            }
        }
        Some(request)
    }
}

/// Notes when an agent last said something.
fn heard_by(watch: Watch, clock: ScenarioClock, heard: Arc<AtomicI64>) -> Watch {
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

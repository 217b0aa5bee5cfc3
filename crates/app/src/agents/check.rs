//! What an installed CLI can do, and whether it behaves.

use std::sync::Arc;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_agent::clis::{Endpoint, Retries, StageModel, StageSetup};
use rehearsal_agent::driver::check::{CapabilityRow, Need, capability_table};
use rehearsal_agent::environment::Variables;
use rehearsal_agent::probe::{Probed, probe};
use rehearsal_agent::{Agent, AgentCli, Permission, ProcessAgent, RunReport, RunRequest, cli_of};
use rehearsal_core::config::{DriverKind, Overrides, Profile};
use rehearsal_core::{AgentName, Budget, Outcome, RunId, TaskId, WireShape};
use rehearsal_engine::{SetupError, driver_of, program_of};
use rehearsal_git::GitError;
use rehearsal_git::scratch::init_repository;
use rehearsal_process::{Launcher, processes_of_run};
use serde::Serialize;
use tokio::net::TcpListener;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::places::scratch;
use crate::project::{Project, ProjectError};
use crate::text::cost;

/// `agent check --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CheckDocument {
    /// The agent.
    pub agent: String,
    /// Its driver.
    pub driver: String,
    /// Where its program is.
    pub program: Option<String>,
    /// Its version, as it says it.
    pub version: Option<String>,
    /// Whether all that is needed works.
    pub conforms: bool,
    /// What was tried.
    pub checks: Vec<CheckRow>,
    /// Its flags.
    pub capabilities: Vec<CapabilityRow>,
}

/// Something that was tried.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CheckRow {
    /// What was tried.
    pub what: &'static str,
    /// Whether it works.
    pub ok: bool,
    /// What was seen.
    pub seen: String,
}

/// Why an agent cannot be checked.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the words of `Display` say what each is")]
pub enum CheckError {
    #[error(transparent)]
    Program(#[from] SetupError),
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Project(ProjectError),
}

impl<E: Into<ProjectError>> From<E> for CheckError {
    fn from(error: E) -> Self {
        Self::Project(error.into())
    }
}

/// Longer than the slowest CLI needs to find out that there is no model.
const PATIENCE: Duration = Duration::from_secs(60);

/// The discard port: nobody listens there.
const NOBODY: u16 = 9;

/// Runs an agent's CLI through a short list of what it must be able to do. No tokens, unless its model is asked for one word.
pub async fn check(project: &Project, agent: &AgentName, live: bool) -> Result<CheckDocument, CheckError> {
    let settings = project.settings_with(Overrides::default().set("agent", Some(agent)))?;
    let unknown = || ProjectError::UnknownAgent { name: agent.clone(), near: None };
    let profile = settings.profile().ok_or_else(unknown)?;
    let (scratch, _deleted) = scratch("rehearsal-check-")?;
    let checker = Checker { profile, project, scratch: &scratch };
    let mut document = CheckDocument {
        agent: agent.to_string(),
        driver: profile.driver.to_string(),
        program: None,
        version: None,
        conforms: false,
        checks: Vec::new(),
        capabilities: Vec::new(),
    };
    checker.check(&mut document, live).await?;
    document.conforms = document.checks.iter().all(|row| row.ok);
    Ok(document)
}

struct Checker<'a> {
    profile: &'a Profile,
    project: &'a Project,
    scratch: &'a Utf8Path,
}

impl Checker<'_> {
    async fn check(&self, document: &mut CheckDocument, live: bool) -> Result<(), CheckError> {
        let cli = cli_of(self.profile.driver);
        let (name, args, caller) = (program_of(self.profile)?, &self.profile.args, &self.project.caller);
        let probed =
            probe(cli, &name, args, &caller.environment, &Launcher::default(), &caller.directory).await;
        let probed = match probed {
            Ok(probed) => probed,
            Err(error) => {
                document.checks.push(CheckRow { what: "found", ok: false, seen: error.to_string() });
                return Ok(());
            }
        };
        document.program = Some(probed.program.to_string());
        document.checks.push(CheckRow { what: "found", ok: true, seen: probed.program.to_string() });
        if let Some(capabilities) = &probed.capabilities {
            document.version.clone_from(&capabilities.version);
            document.capabilities = capability_table(cli, capabilities);
            document.checks.push(version_row(capabilities.version.as_deref()));
            document.checks.push(flags_row(&document.capabilities));
        }
        // Of any program nothing is known but that it runs.
        if self.profile.driver != DriverKind::COMMAND {
            self.check_behaviour(cli, &probed, &mut document.checks).await?;
        }
        if live {
            document.checks.push(self.check_live(&probed).await);
        }
        Ok(())
    }

    /// Runs it where no model can be reached, and looks at how it takes that.
    async fn check_behaviour(
        &self,
        cli: &AgentCli,
        probed: &Probed,
        checks: &mut Vec<CheckRow>,
    ) -> Result<(), CheckError> {
        // Some CLIs work in a repository only.
        init_repository(self.scratch).await?;
        let nowhere = Offline::at(NOBODY, cli, self.scratch)?;
        let no_prompt = self.run(probed, "", &nowhere, CancellationToken::new()).await;
        let ended = !matches!(no_prompt.verdict.outcome, Outcome::TimedOut { .. });
        let seen = no_prompt.evidence.exit.map_or_else(|| "no exit".into(), |exit| exit.to_string());
        checks.push(CheckRow { what: "ends on closed stdin", ok: ended, seen });

        let report = self.run(probed, "Say hello.", &nowhere, CancellationToken::new()).await;
        let in_time = !matches!(report.verdict.outcome, Outcome::TimedOut { .. });
        let structured = in_time && report.evidence.wire.shape == WireShape::Structured;
        let seen = report.verdict.outcome.to_string();
        checks.push(CheckRow { what: "structured output", ok: structured, seen: seen.clone() });
        let honest = in_time && report.evidence.exit.is_some_and(|exit| !exit.is_success());
        checks.push(CheckRow { what: "exit status honest", ok: honest, seen });
        checks.push(self.check_kill(cli, probed).await?);
        Ok(())
    }

    /// Starts it against a server that never answers, then ends it: nothing of it may be left.
    async fn check_kill(&self, cli: &AgentCli, probed: &Probed) -> Result<CheckRow, CheckError> {
        let server = TcpListener::bind(("127.0.0.1", 0)).await?;
        let offline = Offline::at(server.local_addr()?.port(), cli, self.scratch)?;
        let cancel = CancellationToken::new();
        let run = self.run(probed, "Say hello.", &offline, cancel.clone());
        tokio::pin!(run);
        // One that ends by itself is not waited for. The connection is held, or it would.
        let report = tokio::select! {
            report = &mut run => report,
            _held = timeout(PATIENCE, server.accept()) => {
                cancel.cancel();
                run.await
            }
        };
        let left = processes_of_run(&run_id());
        let was_killed = report.verdict.outcome == Outcome::Cancelled;
        let seen = match (left.len(), was_killed) {
            (0, true) => "ended while it waited for its model, nothing left".to_owned(),
            (0, false) => format!("not shown, it ended before: {}", report.verdict.outcome),
            (left, _) => format!("{left} processes left"),
        };
        Ok(CheckRow { what: "kill works", ok: left.is_empty() && was_killed, seen })
    }

    async fn check_live(&self, probed: &Probed) -> CheckRow {
        let live = Offline { setup: StageSetup::default(), home: None };
        let report = self.run(probed, "Answer with the one word OK.", &live, CancellationToken::new()).await;
        let outcome = &report.verdict.outcome;
        let ok = matches!(outcome, Outcome::Done | Outcome::NoChanges);
        CheckRow {
            what: "the model answers",
            ok,
            seen: format!("{outcome} ({})", cost(report.evidence.wire.cost_usd)),
        }
    }

    async fn run(
        &self,
        probed: &Probed,
        prompt: &str,
        offline: &Offline,
        cancel: CancellationToken,
    ) -> RunReport {
        let mut args = self.profile.args.clone();
        args.extend(offline.setup.arguments.iter().cloned());
        let driver = driver_of(self.profile, probed, args, &self.project.root);
        let caller = &self.project.caller;
        let ours: Variables = match &offline.home {
            // Without a home of its own it could find a login; without keys it cannot spend anything.
            Some(home) => Variables::from([
                ("PATH".to_owned(), caller.environment.get("PATH").cloned().unwrap_or_default()),
                ("HOME".to_owned(), home.to_string()),
                ("TMPDIR".to_owned(), self.scratch.to_string()),
            ]),
            None => caller.environment.clone(),
        };
        let agent = ProcessAgent::new(driver, ours, Arc::clone(&caller.clock));
        agent.run(self.request(prompt, offline), Arc::new(|_| {}), cancel).await
    }

    fn request(&self, prompt: &str, offline: &Offline) -> RunRequest {
        let directory = self.scratch.join("run");
        // A directory that cannot be made shows in the run's outcome.
        let _ = fs_err::create_dir_all(&directory);
        RunRequest {
            run: run_id(),
            task: TaskId::from_random(CHECK_RUN),
            prompt: prompt.to_owned(),
            working_dir: self.scratch.to_owned(),
            run_dir: directory,
            model: offline.setup.model.clone().or_else(|| self.profile.model.clone()),
            system_prompt: None,
            permission: Permission::Plan,
            allow: Vec::new(),
            timeout: Some(PATIENCE),
            idle_timeout: None,
            calls: rehearsal_agent::CallLimits::default(),
            budget: Budget::default(),
            env_grants: self.profile.pass_env.clone(),
            env: offline.setup.environment(),
            resume: None,
            lease: None,
            rendezvous: None,
        }
    }
}

/// One id for all runs of a check: what is left is found by it.
const CHECK_RUN: u64 = 0x00c4_ec4c_4ec4;

fn run_id() -> RunId {
    RunId::from_random(CHECK_RUN)
}

/// What a CLI is given, and its scratch home. With both it cannot reach any model: no key, no login, an address on loopback.
struct Offline {
    setup: StageSetup,
    home: Option<Utf8PathBuf>,
}

impl Offline {
    /// Where a port of loopback plays the model.
    fn at(port: u16, cli: &AgentCli, scratch: &Utf8Path) -> std::io::Result<Self> {
        let home = scratch.join("home");
        fs_err::create_dir_all(&home)?;
        let url = format!("http://127.0.0.1:{port}");
        let setup = cli.on_stage(Endpoint { url: &url, model: StageModel::Any, retries: Retries::None });
        setup.write_files(&home)?;
        Ok(Self { setup, home: Some(home) })
    }
}

fn version_row(version: Option<&str>) -> CheckRow {
    CheckRow { what: "version", ok: version.is_some(), seen: version.unwrap_or("it does not say").to_owned() }
}

fn flags_row(capabilities: &[CapabilityRow]) -> CheckRow {
    let missing: Vec<&str> = capabilities
        .iter()
        .filter(|row| row.need == Need::Needed && !row.supported)
        .map(|row| row.flag.as_str())
        .collect();
    let seen = if missing.is_empty() {
        "all that are needed".into()
    } else {
        format!("missing: {}", missing.join(", "))
    };
    CheckRow { what: "flags", ok: missing.is_empty(), seen }
}

//! `agent check NAME`: what the installed CLI can do, and whether it behaves. No tokens without `--live`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use clap::Args;
use rehearsal_agent::clis::StageSetup;
use rehearsal_agent::driver::check::{CapabilityRow, Need, capability_table};
use rehearsal_agent::environment::Variables;
use rehearsal_agent::probe::{Probed, probe};
use rehearsal_agent::{Agent, AgentCli, Permission, ProcessAgent, RunReport, RunRequest, cli_of};
use rehearsal_core::config::{DriverKind, Overrides, Profile};
use rehearsal_core::{AgentName, Budget, Outcome, RunId, TaskId, WireShape};
use rehearsal_engine::{driver_of, program_of};
use rehearsal_process::{Launcher, processes_of_run};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::Done;
use super::offline::{Offline, silent_server};
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::{BAD, GOOD, harmless, styled, table};
use rehearsal_git::scratch::init_repository;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  rehearsal agent check implementer
  rehearsal agent check implementer --live     # also asks the model for one word

Ends with 3 if something that is needed does not work.")]
pub(crate) struct CheckArgs {
    /// The agent's name in the configuration
    agent: AgentName,
    /// Also ask the model for one word: this costs tokens
    #[arg(long)]
    live: bool,
}

/// `agent check --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct CheckDocument {
    /// The agent.
    agent: String,
    /// Its driver.
    driver: String,
    /// Where its program is.
    program: Option<String>,
    /// Its version, as it says it.
    version: Option<String>,
    /// Whether all that is needed works.
    conforms: bool,
    /// What was tried.
    checks: Vec<CheckRow>,
    /// Its flags.
    capabilities: Vec<CapabilityRow>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct CheckRow {
    /// What was tried.
    what: &'static str,
    /// Whether it works.
    ok: bool,
    /// What was seen.
    seen: String,
}

pub(super) async fn run(args: CheckArgs, context: &Context) -> Done {
    let project = context.project()?;
    let flags = Overrides::default().set("agent", Some(&args.agent));
    let settings = project.settings_with(flags)?;
    let profile =
        settings.profile().ok_or_else(|| CliError::usage(format!("unknown agent `{}`", args.agent)))?;
    let scratch = tempfile::Builder::new().prefix("rehearsal-check-").tempdir()?;
    let scratch = Utf8PathBuf::from_path_buf(scratch.path().to_owned())
        .map(|path| (path, scratch))
        .map_err(|path| CliError::usage(format!("`{}` is not UTF-8", path.display())))?;
    let checker = Checker { profile, context, root: &project.root, scratch: &scratch.0 };
    let document = checker.check(&args).await?;
    show(&document, context);
    let exit = if document.conforms { Exit::Ok } else { Exit::Red };
    context.ui.document(document);
    Ok(exit)
}

struct Checker<'a> {
    profile: &'a Profile,
    context: &'a Context,
    root: &'a Utf8Path,
    scratch: &'a Utf8Path,
}

/// Longer than the slowest CLI needs to find out that there is no model.
const PATIENCE: Duration = Duration::from_secs(60);

impl Checker<'_> {
    async fn check(&self, args: &CheckArgs) -> Result<CheckDocument, CliError> {
        let kind = self.profile.driver;
        let cli = cli_of(kind);
        let name = program_of(self.profile).map_err(|error| CliError::of(Exit::Usage, &error))?;
        let ours: Variables = crate::context::variables();
        let probed =
            probe(cli, &name, &self.profile.args, &ours, &Launcher::default(), &self.context.directory).await;
        let mut document = CheckDocument {
            agent: args.agent.to_string(),
            driver: kind.to_string(),
            program: None,
            version: None,
            conforms: false,
            checks: Vec::new(),
            capabilities: Vec::new(),
        };
        let probed = match probed {
            Ok(probed) => probed,
            Err(error) => {
                document.checks.push(CheckRow { what: "found", ok: false, seen: error.to_string() });
                return Ok(document);
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
        if kind != DriverKind::COMMAND {
            self.check_behaviour(cli, &probed, &mut document.checks).await?;
        }
        if args.live {
            document.checks.push(self.check_live(&probed).await);
        }
        document.conforms = document.checks.iter().all(|row| row.ok);
        Ok(document)
    }

    /// Runs it where no model can be reached, and looks at how it takes that.
    async fn check_behaviour(
        &self,
        cli: &AgentCli,
        probed: &Probed,
        checks: &mut Vec<CheckRow>,
    ) -> Result<(), CliError> {
        // Some CLIs work in a repository only.
        init_repository(self.scratch).await?;
        let nowhere = Offline::nowhere(cli, self.scratch)?;
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
    async fn check_kill(&self, cli: &AgentCli, probed: &Probed) -> Result<CheckRow, CliError> {
        let server = silent_server().await?;
        let offline = Offline::at(cli, server.port(), self.scratch)?;
        let cancel = CancellationToken::new();
        let run = self.run(probed, "Say hello.", &offline, cancel.clone());
        tokio::pin!(run);
        // One that ends by itself is not waited for. The connection is held, or it would.
        let report = tokio::select! {
            report = &mut run => report,
            _held = server.connected(PATIENCE) => {
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
            seen: format!("{outcome} ({})", crate::words::cost(report.evidence.wire.cost_usd)),
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
        let driver = driver_of(self.profile, probed, args, self.root);
        let ours: Variables = match &offline.home {
            // Without a home of its own it could find a login; without keys it cannot spend anything.
            Some(home) => BTreeMap::from([
                ("PATH".to_owned(), std::env::var("PATH").unwrap_or_default()),
                ("HOME".to_owned(), home.to_string()),
                ("TMPDIR".to_owned(), self.scratch.to_string()),
            ]),
            None => crate::context::variables(),
        };
        let agent = ProcessAgent::new(driver, ours, Arc::clone(&self.context.clock));
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

fn show(document: &CheckDocument, context: &Context) {
    let ui = context.ui;
    for row in &document.checks {
        let mark = if row.ok { styled(GOOD, "ok ") } else { styled(BAD, "bad") };
        ui.say(format!("{mark}  {:<20}  {}", row.what, harmless(&row.seen)));
    }
    if !document.capabilities.is_empty() {
        let rows: Vec<Vec<String>> = document
            .capabilities
            .iter()
            .map(|row| {
                vec![
                    row.feature.clone(),
                    row.flag.clone(),
                    if row.supported { "yes" } else { "no" }.to_owned(),
                ]
            })
            .collect();
        ui.say(format!("\n{}", table(&["FEATURE", "FLAG", "SUPPORTED"], &rows)));
    }
    if document.program.is_none() {
        ui.say(format!("hint: install {}, or set `program:` for this agent", document.driver));
    }
}

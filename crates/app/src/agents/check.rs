//! Whether an installed CLI can do the whole of what a run needs, tried with a fake model.

mod live;
mod profile;
mod tryout;

use std::sync::Arc;
use std::time::Duration;

use rehearsal_agent::driver::check::{CapabilityRow, Need, capability_table};
use rehearsal_agent::probe::{Probed, probe};
use rehearsal_agent::{Bounds, Permission, RunRequest, cli_of};
use rehearsal_core::config::{DriverKind, Overrides, Profile};
use rehearsal_core::{AgentName, RunId};
use rehearsal_crew::RoleError;
use rehearsal_engine::{AgentSetup, Reach, SetupError, allowed_commands, program_of, random_bits};
use rehearsal_forge::WorktreeError;
use rehearsal_git::GitError;
use rehearsal_process::Launcher;
use serde::Serialize;
use tokio::time::{Instant, timeout_at};

use crate::crew::roles_of;
use crate::outlet::OutletError;
use crate::project::{Project, ProjectError};
use tryout::Tryout;

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
    /// What a run in this repository grants; none if it cannot be run.
    pub bounds: Option<Bounds>,
    /// What was tried.
    pub checks: Vec<CheckRow>,
    /// Its flags.
    pub capabilities: Vec<CapabilityRow>,
}

/// Something that was tried.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CheckRow {
    /// What was tried.
    pub what: Ability,
    /// Whether it works.
    pub ok: bool,
    /// What was seen.
    pub seen: Seen,
}

/// What an agent's CLI must be able to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Ability {
    /// Its program is here.
    Found,
    /// It says its version.
    Version,
    /// It has the flags that are needed.
    Flags,
    /// It starts within the bounds that its profile asks for.
    Confinement,
    /// It changes a file.
    Edits,
    /// It runs the test command.
    RunsTests,
    /// Its work is committed.
    Commits,
    /// It reports that it is done.
    Reports,
    /// It decides, as a reviewer.
    Decides,
    /// Nothing of it is left when it is killed.
    EndsWhenKilled,
    /// Its model answers.
    ModelAnswers,
}

/// What was seen of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Seen {
    /// It works.
    Works,
    /// The program.
    Program {
        /// Its path.
        path: String,
    },
    /// The program cannot be started.
    NotStarted {
        /// Why.
        error: String,
    },
    /// Its version.
    Version {
        /// As it says it.
        version: String,
    },
    /// It did not answer `--version`.
    NoVersion,
    /// It did not answer `--help` and `--version` in time.
    NoAnswer,
    /// Flags that its help does not name.
    FlagsMissing {
        /// Which.
        flags: Vec<String>,
    },
    /// It left its work for us to commit.
    CommittedForIt,
    /// Its tool did not do it.
    Refused {
        /// What the tool returned.
        returned: String,
    },
    /// Its run ended without it.
    NotDone {
        /// What the agent said last.
        said: String,
    },
    /// Its run failed.
    Failed {
        /// How.
        outcome: String,
    },
    /// It took too long.
    TooLong {
        /// The limit.
        limit_ms: u64,
    },
    /// It was not tried, because something before it failed.
    NotTried,
    /// Processes outlived it.
    Left {
        /// How many.
        processes: usize,
    },
    /// The model answered.
    Answered {
        /// How the run ended.
        outcome: String,
        /// What it cost.
        cost_usd: Option<f64>,
    },
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
    Role(#[from] RoleError),
    #[error(transparent)]
    Outlet(#[from] OutletError),
    #[error(transparent)]
    Worktree(#[from] WorktreeError),
    #[error(transparent)]
    Work(#[from] rehearsal_engine::WorkError),
    #[error(transparent)]
    Project(ProjectError),
}

impl<E: Into<ProjectError>> From<E> for CheckError {
    fn from(error: E) -> Self {
        Self::Project(error.into())
    }
}

/// What to check.
#[derive(Debug, Clone)]
pub struct CheckRequest {
    /// The agent.
    pub agent: AgentName,
    /// Also ask its model for one word. This costs tokens.
    pub live: bool,
    /// The longest that the check may take, without the word of its model.
    pub limit: Duration,
}

/// Takes an agent's CLI through a task and a review, as a run would, in a scratch repository and with a fake model on this machine.
pub async fn check(project: &Project, request: CheckRequest) -> Result<CheckDocument, CheckError> {
    let CheckRequest { agent, live, limit } = request;
    let deadline = Instant::now() + limit;
    let settings = project.settings_with(Overrides::default().set("agent", Some(&agent)))?;
    let unknown = || ProjectError::UnknownAgent { name: agent.clone(), near: None };
    let profile = settings.profile().ok_or_else(unknown)?;
    let mut document = CheckDocument {
        agent: agent.to_string(),
        driver: profile.driver.to_string(),
        program: None,
        version: None,
        conforms: false,
        bounds: None,
        checks: Vec::new(),
        capabilities: Vec::new(),
    };
    let checker = Checker { profile, project, limit, deadline };
    checker.check(&mut document, live).await?;
    document.conforms = document.checks.iter().all(|row| row.ok);
    Ok(document)
}

/// What the profile of an agent lets it do in a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// It works, and it reviews.
    All,
    /// It only reviews.
    Review,
}

struct Checker<'a> {
    profile: &'a Profile,
    project: &'a Project,
    limit: Duration,
    deadline: Instant,
}

impl Checker<'_> {
    async fn check(&self, document: &mut CheckDocument, live: bool) -> Result<(), CheckError> {
        let Some(probed) = self.probe(document).await? else { return Ok(()) };
        if !document.checks.iter().all(|row| row.ok) {
            return Ok(());
        }
        document.bounds = Some(self.bounds(&probed)?);
        // Of any program nothing is known: it could do anything.
        if self.profile.driver == DriverKind::COMMAND {
            return Ok(());
        }
        let tryout = Tryout::prepare(self.profile, self.project, &probed, self.limit).await?;
        document.checks.extend(tryout.run(self.part()?, self.deadline).await?);
        if live {
            document.checks.push(live::check(self.profile, self.project, &probed).await?);
        }
        Ok(())
    }

    /// Finds the program and asks it what it can do.
    async fn probe(&self, document: &mut CheckDocument) -> Result<Option<Probed>, CheckError> {
        let (cli, caller) = (cli_of(self.profile.driver), &self.project.caller);
        let (name, args, launcher) = (program_of(self.profile)?, &self.profile.args, Launcher::default());
        let asked = probe(cli, &name, args, &caller.environment, &launcher, &caller.directory);
        let checks = &mut document.checks;
        let probed = match timeout_at(self.deadline, asked).await {
            Ok(Ok(probed)) => probed,
            Ok(Err(error)) => {
                let seen = Seen::NotStarted { error: error.to_string() };
                checks.push(CheckRow { what: Ability::Found, ok: false, seen });
                return Ok(None);
            }
            Err(_) => {
                checks.push(CheckRow { what: Ability::Version, ok: false, seen: Seen::NoAnswer });
                return Ok(None);
            }
        };
        let path = probed.program.to_string();
        document.program = Some(path.clone());
        checks.push(CheckRow { what: Ability::Found, ok: true, seen: Seen::Program { path } });
        if let Some(capabilities) = &probed.capabilities {
            document.version.clone_from(&capabilities.version);
            document.capabilities = capability_table(cli, capabilities);
            checks.push(version_row(capabilities.version.as_deref()));
            checks.push(flags_row(&document.capabilities));
        }
        Ok(Some(probed))
    }

    /// What a run in the project would grant.
    fn bounds(&self, probed: &Probed) -> Result<Bounds, CheckError> {
        let Project { root, caller, .. } = self.project;
        let run = RunId::from_random(random_bits());
        // Each run has its own.
        let run_dir = self.project.runs_dir()?.join("RUN");
        let testing = &self.project.settings()?.testing;
        let request = RunRequest {
            allow: allowed_commands(testing.command.as_deref()),
            ..RunRequest::of_profile(self.profile, run, root.clone(), run_dir)
        };
        let (ours, clock) = (caller.environment.clone(), Arc::clone(&caller.clock));
        let setup = AgentSetup::of_probed(self.profile, probed, ours, clock, root, Reach::ItsVendor)?;
        Ok(setup.bounds(&request))
    }

    fn part(&self) -> Result<Part, CheckError> {
        let role = self.profile.role.as_deref().filter(|_| self.profile.driver == DriverKind::CREW);
        let may_work = match role {
            Some(role) => {
                let permissions = roles_of(self.project)?.get(role)?.permissions;
                permissions.write && permissions.execute
            }
            None => true,
        };
        let may_work = may_work && self.profile.permission != Permission::Plan;
        Ok(if may_work { Part::All } else { Part::Review })
    }
}

fn version_row(version: Option<&str>) -> CheckRow {
    let seen = version.map_or(Seen::NoVersion, |version| Seen::Version { version: version.to_owned() });
    CheckRow { what: Ability::Version, ok: version.is_some(), seen }
}

fn flags_row(capabilities: &[CapabilityRow]) -> CheckRow {
    let missing = capabilities.iter().filter(|row| row.need == Need::Needed && !row.supported);
    let flags: Vec<String> = missing.map(|row| row.flag.clone()).collect();
    let ok = flags.is_empty();
    CheckRow { what: Ability::Flags, ok, seen: if ok { Seen::Works } else { Seen::FlagsMissing { flags } } }
}

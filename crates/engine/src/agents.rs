//! From a profile to an agent that can be run.

use std::sync::Arc;

use camino::Utf8Path;
use rehearsal_agent::driver::Program;
use rehearsal_agent::driver::check::{Need, capability_table};
use rehearsal_agent::environment::Variables;
use rehearsal_agent::probe::{Probed, probe};
use rehearsal_agent::{
    Agent, Bounds, CommandLine, Confinement, Containment, CrewOrder, Driver, OBEYED_IN_PROJECT, ProcessAgent,
    Retrying, RunRequest, cli_of,
};
use rehearsal_core::config::{DriverKind, Origin, Profile};
use rehearsal_core::{BoxFuture, Clock, Notice};
use rehearsal_process::{Launcher, SpawnError};

/// An agent that was found and asked what it can do, or one to be shown only.
pub struct AgentSetup {
    agent: Arc<dyn Agent>,
    driver: Driver,
    containment: Containment,
    ours: Variables,
    /// What whoever sees its command line should know.
    note: Option<Notice>,
}

/// Why a profile cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// `driver: command` without a program.
    #[error("an agent with `driver: command` needs a `program`")]
    NoProgram,
    /// Our own program, which the crew needs, has no path.
    #[error("this program's own path is not known")]
    NoOwnPath(#[source] std::io::Error),
    /// Its program is not there, or does not start.
    #[error(transparent)]
    Program(#[from] SpawnError),
    /// Its program has no flag that says what it may do, or it did not answer `--help` in time.
    #[error("`{program}`{version} does not name {flags} in its help, and without {them} it is not run")]
    Unfit {
        /// The program.
        program: String,
        /// Its version, after a space.
        version: String,
        /// The flags, in words.
        flags: String,
        /// `it` or `them`.
        them: &'static str,
    },
}

impl AgentSetup {
    /// Finds the program, asks it for its flags, and puts the agent together.
    pub fn new<'a>(
        profile: &'a Profile,
        ours: Variables,
        clock: Arc<dyn Clock>,
        working_dir: &'a Utf8Path,
        reach: Reach,
    ) -> BoxFuture<'a, Result<Self, SetupError>> {
        Box::pin(async move {
            let probed = probed(profile, &ours, working_dir).await?;
            Self::of_probed(profile, &probed, ours, clock, working_dir, reach)
        })
    }

    /// The agent of a program that was asked for its flags.
    pub fn of_probed(
        profile: &Profile,
        probed: &Probed,
        ours: Variables,
        clock: Arc<dyn Clock>,
        working_dir: &Utf8Path,
        reach: Reach,
    ) -> Result<Self, SetupError> {
        check_flags(profile, probed)?;
        Ok(Self::of(profile, probed, ours, clock, working_dir, reach))
    }

    /// The agent as it would be if its program were here: to be shown, for what its program can do is not known.
    pub fn of_missing_program(
        profile: &Profile,
        ours: Variables,
        clock: Arc<dyn Clock>,
        working_dir: &Utf8Path,
    ) -> Result<Self, SetupError> {
        let program = program_of(profile)?;
        let note = Notice::ProgramNotProbed { program: program.clone() };
        let probed = Probed { program: program.into(), capabilities: None };
        Ok(Self {
            note: Some(note),
            ..Self::of(profile, &probed, ours, clock, working_dir, Reach::ItsVendor)
        })
    }

    fn of(
        profile: &Profile,
        probed: &Probed,
        ours: Variables,
        clock: Arc<dyn Clock>,
        working_dir: &Utf8Path,
        reach: Reach,
    ) -> Self {
        let driver = driver_of(profile, probed, profile.args.clone(), working_dir);
        let containment = containment_of(profile, working_dir);
        let process = ProcessAgent::new(driver.clone(), ours.clone(), Arc::clone(&clock))
            .contained(containment.clone());
        let process = match reach {
            Reach::ItsVendor => process,
            Reach::Stage => process.without_grants(),
        };
        let agent = Arc::new(Retrying::new(process, clock, crate::random_bits()));
        Self { agent, driver, containment, ours, note: None }
    }

    /// The agent.
    pub fn agent(&self) -> Arc<dyn Agent> {
        Arc::clone(&self.agent)
    }

    /// What would be executed for a request.
    pub fn command_line(&self, request: &RunRequest) -> CommandLine {
        let mut line = self.containment.command_line(&self.driver, request);
        line.warnings.extend(self.note.clone());
        line
    }

    /// What a request grants it.
    pub fn bounds(&self, request: &RunRequest) -> Bounds {
        self.containment.bounds(&self.driver, request, &self.ours)
    }
}

/// A flag that protects, or that the run is judged by, is never left out because a help text does not name it.
fn check_flags(profile: &Profile, probed: &Probed) -> Result<(), SetupError> {
    let Some(capabilities) = &probed.capabilities else { return Ok(()) };
    let missing: Vec<String> = capability_table(cli_of(profile.driver), capabilities)
        .into_iter()
        .filter(|row| row.need == Need::Needed && !row.supported)
        .map(|row| format!("`{}`", row.flag))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(SetupError::Unfit {
        program: probed.program.to_string(),
        version: capabilities.version.as_ref().map(|version| format!(" {version}")).unwrap_or_default(),
        them: if missing.len() == 1 { "it" } else { "them" },
        flags: missing.join(", "),
    })
}

/// Whom an agent asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Its vendor, with the user's key.
    ItsVendor,
    /// A stage: it gets no key and no address but what a request has for it.
    Stage,
}

async fn probed(profile: &Profile, ours: &Variables, working_dir: &Utf8Path) -> Result<Probed, SetupError> {
    let (cli, args) = (cli_of(profile.driver), &profile.args);
    let program = program_of(profile)?;
    Ok(probe(cli, &program, args, ours, &Launcher::default(), working_dir).await?)
}

/// What keeps the agents of a profile within bounds. A confined one cannot change what says how it is confined.
pub fn containment_of(profile: &Profile, project: &Utf8Path) -> Containment {
    match Containment::new(&profile.sandbox, cli_of(profile.driver), project) {
        Containment::Sandbox(confinement) => {
            let obeyed = OBEYED_IN_PROJECT.map(|name| project.join(".rehearsal").join(name));
            Containment::Sandbox(obeyed.into_iter().fold(confinement, Confinement::protecting))
        }
        own_rules @ Containment::OwnRules(_) => own_rules,
    }
}

/// Where the user's own roles are, below `.rehearsal`.
const AGENTS: &str = "agents";

/// The driver of a profile for its program, with these arguments before its own.
pub fn driver_of(profile: &Profile, probed: &Probed, mut args: Vec<String>, project: &Utf8Path) -> Driver {
    if let Some(role) = profile.role.clone().filter(|_| profile.driver == DriverKind::CREW) {
        args.extend(crew_order(profile, role, project).arguments());
    }
    let program = Program::from(probed.program.as_str()).with_args(args);
    Driver::new(cli_of(profile.driver), program.with_capabilities(probed.capabilities.clone()))
}

fn crew_order(profile: &Profile, role: String, project: &Utf8Path) -> CrewOrder {
    // A role has a time limit of its own, which is better than the one that nobody asked for.
    let timeout = Some(profile.timeout.0).filter(|_| *profile.origins.get("timeout") != Origin::Default);
    // Those of the project and not of the worktree, which the agent could change.
    let agents_dir = Some(project.join(".rehearsal").join(AGENTS));
    CrewOrder { role, agents_dir, timeout }
}

/// How an agent calls this program: by its path, for its shell may have another PATH.
pub(crate) fn own_program() -> String {
    let path = std::env::current_exe().map(|path| path.to_string_lossy().into_owned());
    let path = path.unwrap_or_else(|_| "rehearsal".to_owned());
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    if path.chars().all(is_plain) { path } else { format!("'{}'", path.replace('\'', "'\\''")) }
}

/// What an agent has to run for its work, whatever the rules of its CLI.
pub fn allowed_commands(test_command: Option<&str>) -> Vec<String> {
    let always = ["git add", "git commit", "rehearsal"].map(str::to_owned);
    always.into_iter().chain([own_program()]).chain(test_command.map(str::to_owned)).collect()
}

/// The program of a profile: a name on the PATH, or a path. That of the crew is our own.
pub fn program_of(profile: &Profile) -> Result<String, SetupError> {
    match (&profile.program, profile.driver) {
        (Some(program), _) => Ok(program.clone()),
        (None, DriverKind::COMMAND) => Err(SetupError::NoProgram),
        (None, DriverKind::CREW) => {
            let own = std::env::current_exe().map_err(SetupError::NoOwnPath)?;
            Ok(own.to_string_lossy().into_owned())
        }
        (None, kind) => Ok(kind.as_str().to_owned()),
    }
}

//! From a profile to an agent that can be run.

use std::sync::Arc;

use camino::Utf8Path;
use rehearsal_agent::driver::driver_with;
use rehearsal_agent::environment::Variables;
use rehearsal_agent::probe::probe;
use rehearsal_agent::process::{Launcher, SpawnError};
use rehearsal_agent::{Agent, CommandLine, Driver, ProcessAgent, Retrying, RunRequest};
use rehearsal_core::Clock;
use rehearsal_core::config::{DriverKind, Profile};

/// An agent that was found and asked what it can do.
pub struct AgentSetup {
    agent: Arc<dyn Agent>,
    driver: Box<dyn Driver>,
}

/// Why a profile cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// `driver: command` without a program.
    #[error("an agent with `driver: command` needs a `program`")]
    NoProgram,
    /// Its program is not there, or does not start.
    #[error(transparent)]
    Program(#[from] SpawnError),
}

impl AgentSetup {
    /// Finds the program, asks it for its flags, and puts the agent together.
    pub async fn new(
        profile: &Profile,
        ours: Variables,
        clock: Arc<dyn Clock>,
        working_dir: &Utf8Path,
    ) -> Result<Self, SetupError> {
        let kind = profile.driver.value;
        let program = match (&profile.program.value, kind) {
            (Some(program), _) => program.clone(),
            (None, DriverKind::Command) => return Err(SetupError::NoProgram),
            (None, kind) => kind.as_str().to_owned(),
        };
        let args = profile.args.value.clone();
        let probed = probe(kind, &program, &args, &ours, &Launcher::default(), working_dir).await?;
        let make =
            || driver_with(kind, Some(probed.program.to_string()), args.clone(), probed.capabilities.clone());
        let process = ProcessAgent::new(make(), ours, Arc::clone(&clock));
        let agent = Arc::new(Retrying::new(process, clock, crate::random_bits()));
        Ok(Self { agent, driver: make() })
    }

    /// The agent.
    pub fn agent(&self) -> Arc<dyn Agent> {
        Arc::clone(&self.agent)
    }

    /// What would be executed for a request.
    pub fn command_line(&self, request: &RunRequest) -> CommandLine {
        self.driver.command(request)
    }
}

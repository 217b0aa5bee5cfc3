//! The port to processes: how a command is started and ended, whatever confines it.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::time::Duration;

use async_trait::async_trait;
use camino::Utf8PathBuf;
use rehearsal_core::Exit;
use rehearsal_sandbox::{
    Command, Confined, Demand, Limit, Limits, Network, Policy, ProjectMode, Sandbox, SandboxError,
    SandboxReport, Signal, Status, Written,
};

use crate::CommandLine;

/// So many files that a run wrote into the project are listed.
const MOST_WRITTEN: usize = 1000;

/// Starts commands.
pub trait Spawner: Send + Sync {
    /// Starts one. Standard input is empty.
    fn spawn(&self, launch: Launch) -> Result<Box<dyn Spawned>, SpawnError>;
}

/// What to start.
#[derive(Debug)]
pub struct Launch {
    /// The program and its arguments.
    pub command: CommandLine,
    /// All its variables.
    pub env: BTreeMap<String, String>,
    /// Where it starts.
    pub directory: Utf8PathBuf,
    /// The repository.
    pub project: Utf8PathBuf,
    /// Directories that it must be able to write to; they exist.
    pub writable: Vec<Utf8PathBuf>,
    /// Directories outside of the repository that it must be able to read.
    pub readable: Vec<Utf8PathBuf>,
    /// Where its output goes.
    pub stdout: OwnedFd,
    /// Where its errors go.
    pub stderr: OwnedFd,
}

/// A command that runs, with all that it started. Dropping it ends them.
#[async_trait]
pub trait Spawned: Send {
    /// Waits for the end of the command; what it left running is ended then. Can be dropped and called again.
    async fn wait(&mut self) -> SpawnEnd;

    /// Ends it: each signal with the time that it is given, then everything is killed.
    async fn end(&mut self, ladder: &[(Signal, Duration)]) -> SpawnEnd;

    /// What it wrote into the project, where that is caught.
    fn written(&self) -> Written;

    /// What confines it.
    fn sandbox(&self) -> Option<SandboxReport>;
}

/// How a command ended.
#[derive(Debug, Clone, Default)]
pub struct SpawnEnd {
    /// None if nobody saw it.
    pub exit: Option<Exit>,
    /// Whether something was killed for its memory.
    pub out_of_memory: bool,
    /// Other limits that it ran into, in words.
    pub limits: Vec<String>,
    /// Processes that were still running when it had ended.
    pub left_running: u32,
    /// Whether every process was seen to be gone.
    pub all_gone: bool,
}

/// Why a command was not started.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// There is no such program, or it cannot be executed.
    #[error("cannot execute `{program}`")]
    Program {
        /// As it was asked for.
        program: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The sandbox could not be had as it was demanded, or not be set up.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
}

/// Runs commands in the sandbox of this program, or (with [`Demand::Off`]) unconfined but ended together.
#[derive(Debug, Clone)]
pub struct SandboxSpawner {
    /// What happens to writes in the project.
    pub mode: ProjectMode,
    /// Whether the outside can be reached.
    pub network: Network,
    /// How much of the machine may be used.
    pub limits: Limits,
    /// What to do when a layer is not to be had.
    pub demand: Demand,
    /// The user's home, which is hidden.
    pub home: Option<Utf8PathBuf>,
    /// What must stay readable although it is hidden.
    pub readable: Vec<Utf8PathBuf>,
}

impl Default for SandboxSpawner {
    /// Writes are caught, no network, and what cannot be confined is reported.
    fn default() -> Self {
        Self {
            mode: ProjectMode::Overlay,
            network: Network::Private,
            limits: Limits::default(),
            demand: Demand::BestEffort,
            home: None,
            readable: Vec::new(),
        }
    }
}

impl SandboxSpawner {
    /// Nothing is confined.
    pub fn unconfined() -> Self {
        Self { demand: Demand::Off, mode: ProjectMode::Writable, ..Self::default() }
    }

    fn policy(&self, launch: &Launch) -> Policy {
        let mut policy = Policy::new(launch.project.clone());
        policy.mode = self.mode;
        policy.network = self.network;
        policy.home.clone_from(&self.home);
        policy.readable.extend(self.readable.iter().chain(&launch.readable).cloned());
        policy.writable.clone_from(&launch.writable);
        policy.limits = self.limits;
        policy.demand = self.demand;
        policy
    }
}

impl Spawner for SandboxSpawner {
    fn spawn(&self, launch: Launch) -> Result<Box<dyn Spawned>, SpawnError> {
        let sandbox = Sandbox::prepare(&self.policy(&launch))?;
        let mut command = Command::new(&launch.command.program, launch.directory).args(launch.command.args);
        for (name, value) in launch.env {
            command = command.env(name, value);
        }
        let command = command.stdout(launch.stdout).stderr(launch.stderr);
        match sandbox.spawn(command) {
            Ok(confined) => Ok(Box::new(InSandbox { confined, sandbox })),
            Err(SandboxError::Execute { program, source }) => Err(SpawnError::Program { program, source }),
            Err(error) => Err(error.into()),
        }
    }
}

struct InSandbox {
    confined: Confined,
    sandbox: Sandbox,
}

#[async_trait]
impl Spawned for InSandbox {
    async fn wait(&mut self) -> SpawnEnd {
        told(&self.confined.wait().await)
    }

    async fn end(&mut self, ladder: &[(Signal, Duration)]) -> SpawnEnd {
        told(&self.confined.end(ladder).await)
    }

    fn written(&self) -> Written {
        self.confined.written(MOST_WRITTEN)
    }

    fn sandbox(&self) -> Option<SandboxReport> {
        Some(self.sandbox.report().clone())
    }
}

fn told(ended: &rehearsal_sandbox::Ended) -> SpawnEnd {
    let limit = |limit: &Limit| match limit {
        Limit::Memory => None,
        Limit::Processes => Some("the limit of processes was reached, and a fork was refused".to_owned()),
        Limit::Files => {
            Some("the limit of private files was reached: nothing more could be written".to_owned())
        }
    };
    SpawnEnd {
        exit: match ended.status {
            Status::Exited { code } => Some(Exit::Code(code)),
            Status::Signaled { signal } => Some(Exit::Signal(signal)),
            Status::Lost => None,
        },
        out_of_memory: ended.oom_killed,
        limits: ended.limits_hit.iter().filter_map(limit).collect(),
        left_running: ended.left_running,
        all_gone: ended.all_gone,
    }
}

//! Our end of the shim: starts an agent under it, and hears how it ended.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::process::Stdio;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_core::{Exit, RunId};
use rehearsal_sandbox::{Limit, Policy, SandboxReport};
use rustix::process::Signal;
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::process::{Child, Command as Program};

use super::adopt::{Adoptable, Adopted};
use super::control::{Control, Pipes};
use super::resolve::find_program;
use super::sweep::kill_orphans;
use super::table::ProcessId;
use super::wire::{Adoption, Command, EndReport, Escaped, Failure, Order, Report};
use super::{RUN_ID_VARIABLE, SHIM_ARGUMENT};
use crate::lease::TimeLeft;
use crate::policy::SHIM_START_LIMIT;

/// How the shim is started: which binary, with which arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launcher {
    program: Utf8PathBuf,
    args: Vec<String>,
}

impl Default for Launcher {
    /// Our own binary, which must call [`shim_main`](super::shim_main) when its first argument says so. Through
    /// `/proc` it is the same file even after an upgrade replaced it.
    fn default() -> Self {
        Self::new("/proc/self/exe", [SHIM_ARGUMENT.to_owned()])
    }
}

impl Launcher {
    /// A binary that becomes a shim when called with these arguments.
    pub fn new(program: impl Into<Utf8PathBuf>, args: impl IntoIterator<Item = String>) -> Self {
        Self { program: program.into(), args: args.into_iter().collect() }
    }

    /// Starts a shim that waits for its order. It gets ready while the caller does something else.
    pub fn start(&self) -> Result<IdleShim, SpawnError> {
        let (shim, control) = start_shim(self).map_err(|error| self.broken(&error))?;
        Ok(IdleShim { launcher: self.clone(), shim, control })
    }

    fn broken(&self, error: &io::Error) -> SpawnError {
        SpawnError::Supervisor { program: self.program.clone(), reason: error.to_string() }
    }
}

/// A shim that has nothing to do yet. Dropping it ends it.
#[derive(Debug)]
pub struct IdleShim {
    launcher: Launcher,
    shim: Child,
    control: Control,
}

impl IdleShim {
    /// Starts the program under this shim.
    pub async fn run(self, spec: SpawnSpec) -> Result<Supervised, SpawnError> {
        self.run_adoptable(spec, None).await
    }

    /// Starts the program under this shim, so that it can be adopted should we die.
    pub async fn run_adoptable(
        self,
        mut spec: SpawnSpec,
        adoptable: Option<Adoptable>,
    ) -> Result<Supervised, SpawnError> {
        let Self { launcher, shim, mut control } = self;
        // The shim stands elsewhere: a relative path would mean another place to it.
        spec.cwd = camino::absolute_utf8(&spec.cwd).unwrap_or(spec.cwd);
        let path = spec.env.get("PATH").map(String::as_str);
        let Some(found) = find_program(&spec.program, path, &spec.cwd) else {
            return Err(not_found(spec));
        };
        let run = spec.env.get(RUN_ID_VARIABLE).and_then(|id| RunId::new(id.as_str()).ok());
        let name = spec.program;
        let mut program = found;
        let mut sandbox = spec.sandbox;
        if let Some(policy) = &mut sandbox {
            program = shown(program, policy);
        }
        let (adoption, for_adopter) = match adoptable {
            Some(Adoptable { file, memo, fds }) => {
                let socket = file.0.clone();
                control.rendezvous = Some(file);
                (Some(Adoption { socket, memo }), fds)
            }
            None => (None, Vec::new()),
        };
        let order = Order { program, args: spec.args, cwd: spec.cwd, env: spec.env, sandbox, adoption };
        let session = shim.id().and_then(|id| i32::try_from(id).ok()).unwrap_or(-1);
        let pipes =
            control.send_order(&order, &for_adopter).await.map_err(|error| launcher.broken(&error))?;
        let answer = tokio::time::timeout(SHIM_START_LIMIT, control.report())
            .await
            .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        let (pid, sandbox) = match answer.map_err(|error| launcher.broken(&error))? {
            Report::Started { pid, sandbox } => (pid, sandbox),
            Report::Failed(failure) => return Err(spawn_error(failure, name, &order)),
            Report::Ended(_) => return Err(launcher.broken(&io::ErrorKind::InvalidData.into())),
        };
        let leads = Leads { shim: Shim::Own(Box::new(shim)), session, run };
        Ok(Supervised::new(pid, sandbox, pipes, control, leads))
    }
}

/// What to start.
#[derive(Debug, Clone, PartialEq)]
pub struct SpawnSpec {
    /// A name, looked up on the PATH in `env`, or a path.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Where it works.
    pub cwd: Utf8PathBuf,
    /// Its whole environment: nothing is inherited.
    pub env: BTreeMap<String, String>,
    /// What confines it; the program itself can always be read.
    pub sandbox: Option<Policy>,
}

/// Why a process could not be started.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// There is no such program.
    #[error("program `{program}` was not found")]
    ProgramMissing {
        /// As it was asked for.
        program: String,
    },
    /// A script names an interpreter that is not there.
    #[error("the interpreter that `{program}` asks for was not found")]
    InterpreterMissing {
        /// The script.
        program: String,
    },
    /// It is there, but is no program, or not ours to execute.
    #[error("`{program}` cannot be executed")]
    NotExecutable {
        /// As it was asked for.
        program: String,
    },
    /// The directory to work in is not there.
    #[error("the working directory `{path}` does not exist")]
    WorkingDirMissing {
        /// Which.
        path: Utf8PathBuf,
    },
    /// The kernel's limit for arguments and environment.
    #[error("the command line and the environment of `{program}` are too long for the system")]
    TooLong {
        /// As it was asked for.
        program: String,
    },
    /// No memory, no process numbers, no descriptors.
    #[error("the system has no room for another process: {reason}")]
    NoResources {
        /// What the system said.
        reason: String,
    },
    /// It is to be confined, and cannot be as it was asked for.
    #[error("{reason}")]
    Sandbox {
        /// Which layer is missing, and why.
        reason: String,
    },
    /// The shim could not be started, or broke down before the agent ran.
    #[error("the supervisor `{program}` does not work: {reason}")]
    Supervisor {
        /// The shim's binary.
        program: Utf8PathBuf,
        /// What happened.
        reason: String,
    },
    /// Anything else the system said.
    #[error("`{program}` could not be started: {reason}")]
    Other {
        /// As it was asked for.
        program: String,
        /// What the system said.
        reason: String,
    },
}

/// How a supervised process ended. Nothing of it is alive any more, save what `left` counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// How the process itself ended.
    pub exit: Exit,
    /// What had outlived it, and was ended.
    pub escaped: Escaped,
    /// Processes that not even SIGKILL ended: stuck in the kernel.
    pub left: u32,
    /// Limits of its sandbox that it ran into.
    pub limits: Vec<Limit>,
    /// Whether the shim was lost, so that we had to clean up after it.
    pub supervisor_lost: bool,
}

/// A process under supervision. Dropping it ends the process and everything it started.
#[derive(Debug)]
pub struct Supervised {
    /// Its standard input.
    pub stdin: Option<pipe::Sender>,
    /// Its standard output.
    pub stdout: Option<pipe::Receiver>,
    /// Its standard error.
    pub stderr: Option<pipe::Receiver>,
    pid: i32,
    sandbox: Option<Box<SandboxReport>>,
    control: Control,
    leads: Leads,
    /// The end of what a lost shim left, while it is under way.
    sweeping: Option<tokio::task::JoinHandle<Escaped>>,
}

/// By what the shim and all below it can be found, should it not do its duty.
#[derive(Debug)]
struct Leads {
    shim: Shim,
    session: i32,
    run: Option<RunId>,
}

#[derive(Debug)]
enum Shim {
    Own(Box<Child>),
    /// Started by a worker that died: not our child. None: in another container, where we cannot see it.
    Adopted(Option<ProcessId>),
}

impl Shim {
    async fn kill(&mut self) {
        match self {
            Self::Own(child) => {
                let _ = child.kill().await;
            }
            Self::Adopted(Some(process)) => process.signal(Signal::KILL),
            Self::Adopted(None) => {}
        }
    }
}

impl Supervised {
    /// Starts a program under a new shim.
    pub async fn spawn(launcher: &Launcher, spec: SpawnSpec) -> Result<Self, SpawnError> {
        launcher.start()?.run(spec).await
    }

    fn new(
        pid: i32,
        sandbox: Option<Box<SandboxReport>>,
        pipes: Pipes,
        control: Control,
        leads: Leads,
    ) -> Self {
        let Pipes { stdin, stdout, stderr } = pipes;
        Self {
            stdin,
            stdout: Some(stdout),
            stderr: Some(stderr),
            pid,
            sandbox,
            control,
            leads,
            sweeping: None,
        }
    }

    /// One that a dead worker had started, as its shim has handed it over.
    pub(super) fn adopted(adopted: Adopted, run: Option<RunId>) -> Self {
        let Adopted { greeting, shim, pipes, control } = adopted;
        let leads = Leads { session: shim.map_or(-1, |shim| shim.pid), shim: Shim::Adopted(shim), run };
        Self::new(greeting.pid, greeting.sandbox, pipes, control, leads)
    }

    /// The agent's process number; that of its init, if it is confined.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// What confines it.
    pub fn sandbox(&self) -> Option<&SandboxReport> {
        self.sandbox.as_deref()
    }

    /// Asks the process group to end, and after a grace ends all by force. [`wait`](Self::wait) tells when.
    pub async fn terminate(&mut self, grace: Duration) {
        self.control.tell(Command::Terminate { grace }).await;
    }

    /// Lets the process go on for so long; then it is frozen until it is let go on again.
    pub async fn go_on_for(&mut self, time: Duration) {
        self.go_on(TimeLeft { freeze_in: time, ends_in: time }).await;
    }

    /// The same under a lease. Should we die, it is over for the process at the end of the lease.
    pub async fn go_on(&mut self, TimeLeft { freeze_in, ends_in }: TimeLeft) {
        self.control.tell(Command::GoOn { freeze_in, ends_in }).await;
    }

    /// The process has all of its input: from now on it can be adopted, if it is to be.
    pub async fn is_fed(&mut self) {
        if self.control.rendezvous.is_some() {
            self.control.tell(Command::Fed).await;
        }
    }

    /// Ends all by force, now.
    pub async fn kill(&mut self) {
        self.control.tell(Command::Kill).await;
    }

    /// Waits until the process and everything it started is gone. May be dropped and called again.
    pub async fn wait(&mut self) -> Ended {
        match self.control.report().await {
            Ok(Report::Ended(EndReport { exit, escaped, left, limits })) => {
                let exit = exit.unwrap_or(KILLED);
                Ended { exit, escaped, left, limits, supervisor_lost: false }
            }
            Ok(Report::Started { .. } | Report::Failed(_)) | Err(_) => self.take_over().await,
        }
    }

    /// For a shim that is gone, or does not do its duty: ends it and does it ourselves.
    pub async fn take_over(&mut self) -> Ended {
        self.leads.shim.kill().await;
        let (run, session) = (self.leads.run.clone(), self.leads.session);
        // Kept, so that what it found is not lost when whoever waits turns to something else meanwhile.
        let sweeping = self
            .sweeping
            .get_or_insert_with(|| tokio::task::spawn_blocking(move || kill_orphans(run.as_ref(), session)));
        let escaped = sweeping.await.unwrap_or_default();
        self.sweeping = None;
        // The agent dies with its shim, by SIGKILL.
        Ended { exit: KILLED, escaped, left: 0, limits: Vec::new(), supervisor_lost: true }
    }
}

const KILLED: Exit = Exit::Signal(libc::SIGKILL);

/// The program as it is to be executed in a sandbox, which is made to show it: with all packages around it, if it is one of Node's.
fn shown(program: Utf8PathBuf, policy: &mut Policy) -> Utf8PathBuf {
    let real = program.canonicalize_utf8().unwrap_or_else(|_| program.clone());
    let is_package = |dir: &&Utf8Path| dir.file_name() == Some("node_modules");
    policy.readable.push(real.ancestors().filter(is_package).last().unwrap_or(&real).to_owned());
    // A name can matter to a program. Where it would not be seen, it cannot.
    if program.parent().is_some_and(|dir| policy.readable.iter().any(|path| path == dir)) {
        program
    } else {
        real
    }
}

fn not_found(spec: SpawnSpec) -> SpawnError {
    if !spec.cwd.is_dir() {
        return SpawnError::WorkingDirMissing { path: spec.cwd };
    }
    // A path to something that is there, but is no program, is another mistake than a path to nothing.
    if spec.program.contains('/') && spec.cwd.join(&spec.program).exists() {
        return SpawnError::NotExecutable { program: spec.program };
    }
    SpawnError::ProgramMissing { program: spec.program }
}

fn spawn_error(failure: Failure, program: String, order: &Order) -> SpawnError {
    match failure {
        Failure::ProgramMissing => SpawnError::ProgramMissing { program },
        Failure::InterpreterMissing => SpawnError::InterpreterMissing { program },
        Failure::NotExecutable => SpawnError::NotExecutable { program },
        Failure::WorkingDirMissing => SpawnError::WorkingDirMissing { path: order.cwd.clone() },
        Failure::TooLong => SpawnError::TooLong { program },
        Failure::Sandbox { reason } => SpawnError::Sandbox { reason },
        Failure::NoResources { reason } => SpawnError::NoResources { reason },
        Failure::Other { reason } => SpawnError::Other { program, reason },
    }
}

/// The shim sees none of our environment and holds no directory.
fn start_shim(launcher: &Launcher) -> io::Result<(Child, Control)> {
    let (ours, theirs) = StdUnixStream::pair()?;
    let shim = Program::new(&launcher.program)
        .args(&launcher.args)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    ours.set_nonblocking(true)?;
    Ok((shim, Control::new(UnixStream::from_std(ours)?, Vec::new())))
}

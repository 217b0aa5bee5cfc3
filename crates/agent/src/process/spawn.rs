//! Our end of the shim: starts an agent under it, and hears how it ended.

use std::collections::BTreeMap;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::process::Stdio;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_core::{Exit, RunId};
use rehearsal_sandbox::{Limit, Policy, SandboxReport};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use rustix::pipe::{PipeFlags, pipe_with};
use tokio::io::{AsyncWriteExt, Interest};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::process::{Child, Command as Program};

use super::resolve::{find_program, native_binary};
use super::sweep::kill_orphans;
use super::wire::{self, Command, EndReport, Escaped, Failure, FrameError, HEADER, Order, Report};
use super::{RUN_ID_VARIABLE, SHIM_ARGUMENT};
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
    /// Whether it still waits: it may have been killed meanwhile.
    pub fn is_waiting(&mut self) -> bool {
        matches!(self.shim.try_wait(), Ok(None))
    }

    /// Starts the program under this shim.
    pub async fn run(self, mut spec: SpawnSpec) -> Result<Supervised, SpawnError> {
        let Self { launcher, shim, mut control } = self;
        // The shim stands elsewhere: a relative path would mean another place to it.
        spec.cwd = camino::absolute_utf8(&spec.cwd).unwrap_or(spec.cwd);
        let path = spec.env.get("PATH").map(String::as_str);
        let Some(found) = find_program(&spec.program, path, &spec.cwd) else {
            return Err(not_found(spec));
        };
        let run = spec.env.get(RUN_ID_VARIABLE).and_then(|id| RunId::new(id.as_str()).ok());
        let name = spec.program;
        let mut program = native_binary(&found);
        let mut sandbox = spec.sandbox;
        if let Some(policy) = &mut sandbox {
            program = shown(program, policy);
        }
        let order = Order { program, args: spec.args, cwd: spec.cwd, env: spec.env, sandbox };
        let session = shim.id().and_then(|id| i32::try_from(id).ok()).unwrap_or(-1);
        let pipes = control.send_order(&order).await.map_err(|error| launcher.broken(&error))?;
        let answer = tokio::time::timeout(SHIM_START_LIMIT, control.report())
            .await
            .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        let (pid, sandbox) = match answer.map_err(|error| launcher.broken(&error))? {
            Report::Started { pid, sandbox } => (pid, sandbox),
            Report::Failed(failure) => return Err(spawn_error(failure, name, &order)),
            Report::Ended(_) => return Err(launcher.broken(&io::ErrorKind::InvalidData.into())),
        };
        let Pipes { stdin, stdout, stderr } = pipes;
        let (stdin, stdout, stderr) = (Some(stdin), Some(stdout), Some(stderr));
        let (state, sweeping) = (State::Running, None);
        Ok(Supervised {
            stdin,
            stdout,
            stderr,
            pid,
            sandbox,
            launcher,
            control,
            shim,
            session,
            run,
            leased: false,
            state,
            sweeping,
        })
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
    launcher: Launcher,
    control: Control,
    shim: Child,
    session: i32,
    run: Option<RunId>,
    state: State,
    leased: bool,
    /// The end of what a lost shim left, while it is under way.
    sweeping: Option<tokio::task::JoinHandle<Escaped>>,
}

/// What is known of a supervised process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Running,
    /// It ended by itself, and nothing is left: the shim waits for another order.
    EndedByItself,
    /// The shim was told to end it, or broke down.
    Broken,
}

impl Supervised {
    /// Starts a program under a new shim.
    pub async fn spawn(launcher: &Launcher, spec: SpawnSpec) -> Result<Self, SpawnError> {
        launcher.start()?.run(spec).await
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
        self.state = State::Broken;
        self.control.tell(Command::Terminate { grace }).await;
    }

    /// Lets the process go on for so long; then it is frozen until it is let go on again.
    pub async fn go_on_for(&mut self, time: Duration) {
        // What reaches a shim after its agent has ended would be taken for the next order: it gets none.
        self.leased = true;
        self.control.tell(Command::GoOn { time }).await;
    }

    /// Ends all by force, now.
    pub async fn kill(&mut self) {
        self.state = State::Broken;
        self.control.tell(Command::Kill).await;
    }

    /// Waits until the process and everything it started is gone. May be dropped and called again.
    pub async fn wait(&mut self) -> Ended {
        match self.control.report().await {
            Ok(Report::Ended(EndReport { exit, escaped, left, limits, serves_on })) => {
                // What we told a shim that was no longer listening would be taken for the next order.
                if self.state == State::Running && serves_on && !self.leased {
                    self.state = State::EndedByItself;
                }
                let exit = exit.unwrap_or(KILLED);
                Ended { exit, escaped, left, limits, supervisor_lost: false }
            }
            Ok(Report::Started { .. } | Report::Failed(_)) | Err(_) => self.take_over().await,
        }
    }

    /// The shim, for another program, once this one ended by itself and left nothing. Any other shim ends now, and
    /// the runtime reaps it.
    pub fn into_idle(self) -> Option<IdleShim> {
        let Self { launcher, shim, control, state, .. } = self;
        (state == State::EndedByItself).then_some(IdleShim { launcher, shim, control })
    }

    /// For a shim that is gone, or does not do its duty: ends it and does it ourselves.
    pub async fn take_over(&mut self) -> Ended {
        self.state = State::Broken;
        let _ = self.shim.kill().await;
        let (run, session) = (self.run.clone(), self.session);
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
    Ok((shim, Control { socket: UnixStream::from_std(ours)?, received: Vec::new() }))
}

struct Pipes {
    stdin: pipe::Sender,
    stdout: pipe::Receiver,
    stderr: pipe::Receiver,
}

/// Our end of the control socket.
#[derive(Debug)]
struct Control {
    socket: UnixStream,
    received: Vec<u8>,
}

impl Control {
    /// Sends the order with one end of each pipe; returns the other ends.
    async fn send_order(&mut self, order: &Order) -> io::Result<Pipes> {
        let (stdin_theirs, stdin) = pipe_with(PipeFlags::CLOEXEC)?;
        let (stdout, stdout_theirs) = pipe_with(PipeFlags::CLOEXEC)?;
        let (stderr, stderr_theirs) = pipe_with(PipeFlags::CLOEXEC)?;
        let frame = wire::encode(order).map_err(io::Error::other)?;
        let (header, body) = frame.split_at(HEADER);
        let theirs = [stdin_theirs.as_fd(), stdout_theirs.as_fd(), stderr_theirs.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        ancillary.push(SendAncillaryMessage::ScmRights(&theirs));
        // The socket is new and empty: this cannot block.
        rustix::net::sendmsg(&self.socket, &[IoSlice::new(header)], &mut ancillary, SendFlags::NOSIGNAL)?;
        self.socket.write_all(body).await?;
        Ok(Pipes {
            stdin: pipe::Sender::from_owned_fd(stdin)?,
            stdout: pipe::Receiver::from_owned_fd(stdout)?,
            stderr: pipe::Receiver::from_owned_fd(stderr)?,
        })
    }

    /// A shim that cannot be told anything is gone, which `report` finds out.
    async fn tell(&mut self, command: Command) {
        let _ = self.socket.write_all(&command.encode()).await;
    }

    /// The next report. Nothing is lost when it is dropped half-way.
    async fn report(&mut self) -> io::Result<Report> {
        loop {
            if let Some(report) = wire::take_report(&mut self.received).map_err(invalid)? {
                return Ok(report);
            }
            self.socket.ready(Interest::READABLE).await?;
            match self.socket.try_read_buf(&mut self.received) {
                Ok(0) => {
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it ended without a report"));
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }
}

fn invalid(error: FrameError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

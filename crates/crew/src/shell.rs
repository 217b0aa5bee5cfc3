//! Commands in the sandbox of a role: what `bash`, hooks, git and MCP servers are run by.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_agent::environment::Variables;
use rehearsal_agent::redact::Redactor;
use rehearsal_agent::{Confinement, OBEYED_IN_PROJECT};
use rehearsal_sandbox::{
    Command, Confined, Demand, Ended, Network, Policy, ProjectMode, Sandbox, SandboxError, Signal, Status,
};
use rustix::pipe::{PipeFlags, pipe_with};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio_util::sync::CancellationToken;

use crate::limits::{COMMAND_GRACE, DRAIN_GRACE};
use crate::toolbox::HeadTail;

/// Runs commands, each confined for itself, and each to the end of all that it started.
#[derive(Debug)]
pub(crate) struct Shell {
    policy: Policy,
    env: Variables,
    directory: Utf8PathBuf,
    redactor: Redactor,
    /// Made when it is first needed, on a thread that may wait.
    sandbox: Arc<Mutex<Option<Arc<Sandbox>>>>,
}

/// What may happen in a shell.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Leave {
    pub(crate) mode: ProjectMode,
    pub(crate) network: Network,
    pub(crate) demand: Demand,
}

/// A command, and what of it is wanted.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) program: String,
    pub(crate) args: Vec<String>,
    /// Beside those that every command gets.
    pub(crate) env: Vec<(String, String)>,
    pub(crate) timeout: Duration,
    pub(crate) streams: Streams,
    /// How much is kept of the beginning and of the end.
    pub(crate) kept: (usize, usize),
}

/// Whether what is printed and what is complained of are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Streams {
    /// As on a terminal.
    Together,
    /// Each for itself.
    Apart,
}

/// What came of a command.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) end: RanEnd,
    pub(crate) stdout: HeadTail,
    pub(crate) stderr: HeadTail,
    /// What it had left running, and was killed.
    pub(crate) left_running: u32,
    /// Whether something of it was killed for want of memory.
    pub(crate) out_of_memory: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RanEnd {
    Exited(i32),
    Signaled(i32),
    /// Killed, and nobody knows by whom.
    Lost,
    TimedOut,
    Cancelled,
}

/// Why a command was not run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ShellError {
    #[error("{}", in_a_line(.0))]
    Sandbox(#[from] SandboxError),
    #[error("no pipe could be made: {0}")]
    Pipe(#[from] io::Error),
    #[error("the thread that starts commands did not come to its end")]
    Thread,
}

impl Shell {
    pub(crate) fn new(
        worktree: &Utf8Path,
        run_dir: &Utf8Path,
        mut env: Variables,
        redactor: Redactor,
        leave: Leave,
    ) -> Self {
        let confinement = Confinement::of_tools(leave.mode, leave.network, leave.demand);
        let obeyed = OBEYED_IN_PROJECT.map(|name| worktree.join(".rehearsal").join(name));
        let confinement = obeyed.into_iter().fold(confinement, Confinement::protecting);
        let policy = confinement.policy_of_tools(worktree, run_dir, &env);
        // A sandbox has a temporary directory of its own, where everybody looks for one.
        env.remove("TMPDIR");
        Self { policy, env, directory: worktree.to_owned(), redactor, sandbox: Arc::default() }
    }

    /// Runs a command to its end. When it returns, nothing of it is left.
    pub(crate) async fn run(&self, order: Order, cancel: &CancellationToken) -> Result<Ran, ShellError> {
        let Order { program, args, env, timeout, streams, kept } = order;
        let command = self.command(&program, &args, env);
        let (from_stdout, to_stdout) = pipe()?;
        let (from_stderr, to_stderr) = match streams {
            Streams::Together => (None, to_stdout.try_clone()?),
            Streams::Apart => pipe().map(|(from, to)| (Some(from), to))?,
        };
        let command = command.stdout(to_stdout).stderr(to_stderr);
        let mut confined = self.start(command).await?;
        let mut stdout = Listener::new(Some(from_stdout), &self.redactor, kept);
        let mut stderr = Listener::new(from_stderr, &self.redactor, kept);
        let over = CancellationToken::new();
        let ending = async {
            let end = end_of(&mut confined, timeout, cancel).await;
            over.cancel();
            end
        };
        // With the last process the pipes close, unless somebody outside holds them.
        let held = async {
            over.cancelled().await;
            tokio::time::sleep(DRAIN_GRACE).await;
        };
        let hearing = async {
            tokio::select! {
                _ = async { tokio::join!(stdout.listen(), stderr.listen()) } => {}
                () = held => {}
            }
        };
        let ((how, ended), ()) = tokio::join!(ending, hearing);
        Ok(Ran {
            end: how,
            stdout: stdout.heard(),
            stderr: stderr.heard(),
            left_running: ended.left_running,
            out_of_memory: ended.oom_killed,
        })
    }

    /// A command in the worktree, with these variables beside those that every command gets.
    pub(crate) fn command(
        &self,
        program: &str,
        args: &[String],
        env: impl IntoIterator<Item = (String, String)>,
    ) -> Command {
        let ours = self.env.iter().map(|(name, value)| (name.clone(), value.clone()));
        let command = Command::new(program, self.directory.clone()).args(args);
        ours.chain(env).fold(command, |command, (name, value)| command.env(name, value))
    }

    /// Starts a command in the sandbox. To make a sandbox and to start something in it blocks for a few milliseconds.
    pub(crate) async fn start(&self, command: Command) -> Result<Confined, ShellError> {
        let (made, policy) = (Arc::clone(&self.sandbox), self.policy.clone());
        let started = tokio::task::spawn_blocking(move || {
            let sandbox = {
                let mut made = made.lock().unwrap_or_else(PoisonError::into_inner);
                match &*made {
                    Some(sandbox) => Arc::clone(sandbox),
                    None => Arc::clone(made.insert(Arc::new(Sandbox::prepare(&policy)?))),
                }
            };
            sandbox.spawn(command)
        });
        Ok(started.await.map_err(|_| ShellError::Thread)??)
    }
}

async fn end_of(confined: &mut Confined, timeout: Duration, cancel: &CancellationToken) -> (RanEnd, Ended) {
    let over = tokio::select! {
        biased;
        ended = confined.wait() => {
            let how = match ended.status {
                Status::Exited { code } => RanEnd::Exited(code),
                Status::Signaled { signal } => RanEnd::Signaled(signal),
                Status::Lost => RanEnd::Lost,
            };
            return (how, ended);
        }
        () = cancel.cancelled() => RanEnd::Cancelled,
        () = tokio::time::sleep(timeout) => RanEnd::TimedOut,
    };
    let ladder: &[(Signal, Duration)] =
        if over == RanEnd::Cancelled { &[] } else { &[(Signal::TERM, COMMAND_GRACE)] };
    (over, confined.end(ladder).await)
}

fn pipe() -> io::Result<(Receiver, OwnedFd)> {
    let (from, to) = pipe_with(PipeFlags::CLOEXEC)?;
    Ok((Receiver::from_owned_fd(from)?, to))
}

/// Hears what a command prints, and keeps what a model may read of it.
struct Listener {
    from: Option<Receiver>,
    redacted: rehearsal_agent::redact::RedactedStream,
    kept: HeadTail,
}

impl Listener {
    fn new(from: Option<Receiver>, redactor: &Redactor, kept: (usize, usize)) -> Self {
        Self { from, redacted: redactor.stream(), kept: HeadTail::new(kept.0, kept.1) }
    }

    async fn listen(&mut self) {
        let Some(from) = &mut self.from else { return };
        let mut piece = vec![0; 64 << 10];
        let mut clean = Vec::new();
        // A pipe that cannot be read has no more to tell.
        while let Ok(read @ 1..) = from.read(&mut piece).await {
            self.redacted.push(&piece[..read], &mut clean);
            self.kept.push(&clean);
            clean.clear();
        }
    }

    fn heard(mut self) -> HeadTail {
        let mut clean = Vec::new();
        self.redacted.finish(&mut clean);
        self.kept.push(&clean);
        self.kept
    }
}

fn in_a_line(error: &dyn std::error::Error) -> String {
    let mut line = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        line.push_str(&format!(": {error}"));
        source = error.source();
    }
    line
}

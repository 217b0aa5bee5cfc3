//! A child process that is run to its end and answers.

use std::ffi::OsStr;
use std::future::Future;
use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rehearsal_core::BoxFuture;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};

/// How long pipes may stay open after their program ended: a shared ssh connection keeps standard error.
const DRAIN_GRACE: Duration = Duration::from_secs(2);
/// The default for [`Keep`]. A list of 100,000 file names has about 6 MiB.
const MAX_OUTPUT: usize = 64 << 20;
/// How much of the end of standard error is kept: the reason for a failure is there.
const MAX_STDERR: usize = 16 << 10;

/// What to run, and within which bounds. Standard input is empty unless [`Command::input`] says otherwise.
#[derive(Debug)]
pub struct Command {
    inner: tokio::process::Command,
    input: Input,
    limit: Option<Duration>,
    keep: Keep,
}

/// What a child has on its standard input.
#[derive(Debug)]
pub enum Input {
    /// Nothing.
    Empty,
    /// These bytes.
    Bytes(Vec<u8>),
    /// A file that the child holds open while it lives and never reads. A lock on it lasts as long as the child, even
    /// if we are killed.
    Held(std::fs::File),
}

/// How much of its standard output is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// All of it. More bytes than this are an error.
    Whole(usize),
    /// The first bytes. The child is killed when it prints more.
    Head(usize),
    /// The last bytes, of standard error too.
    Tail(usize),
}

/// How a child ended, and what it printed.
#[derive(Debug)]
pub struct Output {
    /// How it ended.
    pub status: ExitStatus,
    /// Its standard output, as far as it was kept.
    pub stdout: Vec<u8>,
    /// The end of its standard error.
    pub stderr: String,
    /// Whether [`Keep::Head`] cut the output; the status is that of a killed process then.
    pub is_cut: bool,
}

/// Why there is no output.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The system said no.
    #[error("cannot be started or read")]
    Io(#[from] io::Error),
    /// The time limit passed.
    #[error("took too long")]
    TimedOut,
    /// It printed more than [`Keep::Whole`] allows.
    #[error("printed too much")]
    TooMuch,
}

impl Command {
    /// A program in a directory, with our environment.
    pub fn new(program: impl AsRef<OsStr>, dir: impl AsRef<Path>) -> Self {
        let mut inner = tokio::process::Command::new(program);
        inner.current_dir(dir);
        Self { inner, input: Input::Empty, limit: None, keep: Keep::Whole(MAX_OUTPUT) }
    }

    /// Adds arguments.
    pub fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.inner.args(args);
        self
    }

    /// Sets a variable.
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.inner.env(name, value);
        self
    }

    /// Sets variables.
    pub fn envs<K: AsRef<OsStr>, V: AsRef<OsStr>>(mut self, envs: impl IntoIterator<Item = (K, V)>) -> Self {
        self.inner.envs(envs);
        self
    }

    /// Removes a variable that would be inherited.
    pub fn env_remove(mut self, name: impl AsRef<OsStr>) -> Self {
        self.inner.env_remove(name);
        self
    }

    /// Inherits no variables.
    pub fn env_clear(mut self) -> Self {
        self.inner.env_clear();
        self
    }

    /// Sets its standard input.
    pub fn input(self, input: Input) -> Self {
        Self { input, ..self }
    }

    /// Sets its time limit. Without one it runs until it ends or the caller gives up.
    pub fn limit(self, limit: Duration) -> Self {
        Self { limit: Some(limit), ..self }
    }

    /// Sets how much of its output is kept.
    pub fn keep(self, keep: Keep) -> Self {
        Self { keep, ..self }
    }

    /// Runs it in a process group of its own. The group is killed if the run ends early: by its limit, by the size of
    /// its output, or because the future is dropped.
    pub fn run(self) -> BoxFuture<'static, Result<Output, RunError>> {
        Box::pin(async move {
            let Self { inner: mut command, input, limit, keep } = self;
            let (stdin, input) = match input {
                Input::Empty => (Stdio::null(), Vec::new()),
                Input::Bytes(bytes) => (Stdio::piped(), bytes),
                Input::Held(file) => (Stdio::from(file), Vec::new()),
            };
            command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut child = command.process_group(0).kill_on_drop(true).spawn()?;
            let mut group = Group::led_by(child.id());
            let (mut stdout, mut stderr) = (Kept::new(keep), Kept::new(tail(keep)));
            let (stdin, out, err) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
            let (mut read_out, mut read_err) = (Ok(()), Ok(()));
            let end = async {
                let talk = async {
                    tokio::join!(
                        feed(stdin, &input),
                        async { read_out = stdout.read(out, &group).await },
                        async { read_err = stderr.read(err, &group).await },
                    )
                };
                tokio::pin!(talk);
                tokio::select! {
                    biased;
                    _ = &mut talk => child.wait().await,
                    status = child.wait() => {
                        // A process that the child left behind may hold the pipes.
                        let _ = tokio::time::timeout(DRAIN_GRACE, &mut talk).await;
                        status
                    }
                }
            };
            let status = match limit {
                Some(limit) => tokio::time::timeout(limit, end).await.map_err(|_| RunError::TimedOut)??,
                None => end.await?,
            };
            read_out?;
            read_err?;
            group.disarm();
            let is_cut = stdout.is_cut();
            let stderr = String::from_utf8_lossy(&stderr.finish()).into_owned();
            Ok(Output { status, stdout: stdout.finish(), stderr, is_cut })
        })
    }
}

/// Runs a program in our place on the terminal, such as an editor, until it ends. It shares our process group, so that
/// the terminal's signals reach it.
pub fn run_in_terminal<S: AsRef<OsStr>>(
    program: impl AsRef<OsStr>,
    args: impl IntoIterator<Item = S>,
) -> io::Result<ExitStatus> {
    std::process::Command::new(program).args(args).status()
}

/// Waits for a future in a program without a runtime. Panics inside of one.
pub fn block_on<F: Future>(future: F) -> io::Result<F::Output> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(future))
}

fn tail(keep: Keep) -> Keep {
    match keep {
        Keep::Tail(bytes) => Keep::Tail(bytes),
        Keep::Whole(_) | Keep::Head(_) => Keep::Tail(MAX_STDERR),
    }
}

async fn feed(stdin: Option<tokio::process::ChildStdin>, input: &[u8]) {
    if let Some(mut stdin) = stdin {
        // A program that does not want it all has closed its end; its output says the rest.
        let _ = stdin.write_all(input).await;
    }
}

struct Kept {
    keep: Keep,
    bytes: Vec<u8>,
}

impl Kept {
    fn new(keep: Keep) -> Self {
        Self { keep, bytes: Vec::new() }
    }

    async fn read(&mut self, from: Option<impl AsyncRead + Unpin>, group: &Group) -> Result<(), RunError> {
        let Some(mut from) = from else { return Ok(()) };
        while from.read_buf(&mut self.bytes).await? > 0 {
            match self.keep {
                Keep::Whole(most) if self.bytes.len() > most => {
                    group.kill();
                    return Err(RunError::TooMuch);
                }
                Keep::Head(most) if self.bytes.len() > most => {
                    group.kill();
                    return Ok(());
                }
                Keep::Tail(most) if self.bytes.len() > 2 * most => {
                    self.bytes.drain(..self.bytes.len() - most);
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn is_cut(&self) -> bool {
        matches!(self.keep, Keep::Head(most) if self.bytes.len() > most)
    }

    fn finish(mut self) -> Vec<u8> {
        match self.keep {
            Keep::Tail(most) => drop(self.bytes.drain(..self.bytes.len().saturating_sub(most))),
            Keep::Head(most) => self.bytes.truncate(most),
            Keep::Whole(_) => {}
        }
        self.bytes
    }
}

/// Kills all of a child's group when dropped, unless the child is known to have ended.
struct Group(Option<Pid>);

impl Group {
    fn led_by(pid: Option<u32>) -> Self {
        Self(pid.and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw))
    }

    fn kill(&self) {
        if let Some(leader) = self.0 {
            // An empty group is what we want.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }

    fn disarm(&mut self) {
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Command {
        Command::new("sh", "/").args(["-c", script]).limit(Duration::from_secs(30))
    }

    #[tokio::test]
    async fn input_output_and_status_are_those_of_the_child() {
        let output =
            sh("cat; echo why >&2; exit 3").input(Input::Bytes(b"text".to_vec())).run().await.unwrap();
        assert_eq!((output.stdout.as_slice(), output.stderr.as_str()), (&b"text"[..], "why\n"));
        assert_eq!(output.status.code(), Some(3));
        assert!(!output.is_cut);
    }

    #[tokio::test]
    async fn output_is_bounded() {
        let endless = "while :; do echo 0123456789; done";
        assert!(matches!(sh(endless).keep(Keep::Whole(100)).run().await, Err(RunError::TooMuch)));
        let head = sh(endless).keep(Keep::Head(15)).run().await.unwrap();
        assert_eq!((head.stdout.as_slice(), head.is_cut), (&b"0123456789\n0123"[..], true));
        let tail = sh("for i in 1 2 3 4 5 6 7 8 9; do echo $i; echo e$i >&2; done").keep(Keep::Tail(4)).run();
        let tail = tail.await.unwrap();
        assert_eq!((tail.stdout.as_slice(), tail.stderr.as_str()), (&b"8\n9\n"[..], "\ne9\n"));
    }

    #[tokio::test]
    async fn the_whole_group_ends_at_the_limit() {
        let dir = tempfile::tempdir().unwrap();
        let pid = dir.path().join("pid");
        let script = format!("sleep 1000 & echo $! > {}; wait", pid.display());
        let ended = sh(&script).limit(Duration::from_millis(300)).run().await;
        assert!(matches!(ended, Err(RunError::TimedOut)));
        let pid = std::fs::read_to_string(pid).unwrap().trim().to_owned();
        let is_alive =
            || std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|it| !it.contains(") Z "));
        while is_alive() {
            tokio::task::yield_now().await;
        }
    }
}

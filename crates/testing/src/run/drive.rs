//! One command, from its start until nothing of it is left.

use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_sandbox::{SandboxReport, Signal, Written};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::spawn::{Launch, SpawnEnd, SpawnError, Spawned, Spawner};
use crate::parse::Stream;
use crate::{CommandLine, FirstSignal, RunPlan, Stopped};

/// How long a runner may take to report after its first signal, and then to clean up after `SIGTERM`.
const GRACE: Duration = Duration::from_secs(2);
/// A file that grows is looked at so often.
const LOOK: Duration = Duration::from_millis(50);
/// Once all processes are gone, what is in the pipes can be read at once; who holds them open is not one of ours.
const DRAIN: Duration = Duration::from_secs(2);

/// Takes what happens.
pub(crate) trait Listener: Send {
    fn printed(&mut self, stream: Stream, bytes: &[u8]);
    /// It is time to look at files.
    fn look(&mut self);
    /// The first signal was sent: what comes now comes because of it.
    fn stopping(&mut self);
}

/// What a command needs beside its arguments.
pub(crate) struct Surroundings<'a> {
    pub spawner: &'a dyn Spawner,
    pub project: &'a Utf8Path,
    pub env: std::collections::BTreeMap<String, String>,
    pub writable: Vec<Utf8PathBuf>,
    pub readable: Vec<Utf8PathBuf>,
    pub until: Instant,
    pub cancel: &'a CancellationToken,
}

/// How a command went.
pub(crate) struct Driven {
    pub end: SpawnEnd,
    pub stopped: Option<Stopped>,
    pub written: Written,
    pub sandbox: Option<SandboxReport>,
    pub notes: Vec<String>,
}

pub(crate) async fn drive(
    plan: &RunPlan,
    command: &CommandLine,
    around: &Surroundings<'_>,
    listener: &mut dyn Listener,
) -> Result<Driven, SpawnError> {
    let no_pipe = |source: std::io::Error| SpawnError::Program { program: command.program.clone(), source };
    let (stdout, mut out) = new_pipe().map_err(no_pipe)?;
    let (stderr, mut err) = if plan.merge_stderr {
        (stdout.try_clone().map_err(no_pipe)?, None)
    } else {
        let (write, read) = new_pipe().map_err(no_pipe)?;
        (write, Some(read))
    };
    let mut process = around.spawner.spawn(Launch {
        command: command.clone(),
        env: around.env.clone(),
        directory: plan.root.clone(),
        project: around.project.to_owned(),
        writable: around.writable.clone(),
        readable: around.readable.clone(),
        stdout,
        stderr,
    })?;
    let mut pipes = Pipes { out: Some(&mut out), err: err.as_mut() };
    let (end, stopped) = match until_end(process.as_mut(), around, &mut pipes, listener).await {
        Ok(end) => (end, None),
        Err(stopped) => {
            pipes.read_what_is_there(listener).await;
            listener.stopping();
            let ladder = ladder(plan.first_signal);
            let ending = process.end(&ladder);
            (while_reading(ending, &mut pipes, listener).await, Some(stopped))
        }
    };
    let mut notes = Vec::new();
    if timeout(DRAIN, pipes.drain(listener)).await.is_err() {
        notes.push(
            "something that is not of this run holds its output open: the end of it may be missing"
                .to_owned(),
        );
    }
    if end.left_running > 0 {
        notes.push(format!(
            "{} still running when the runner had ended, and killed",
            processes(end.left_running)
        ));
    }
    if !end.all_gone {
        notes.push("not every process of the run was seen to be gone".to_owned());
    }
    Ok(Driven { end, stopped, written: process.written(), sandbox: process.sandbox(), notes })
}

fn processes(count: u32) -> String {
    if count == 1 { "1 process was".to_owned() } else { format!("{count} processes were") }
}

/// Waits for the end of the command, or for the reason to end it.
async fn until_end(
    process: &mut dyn Spawned,
    around: &Surroundings<'_>,
    pipes: &mut Pipes<'_>,
    listener: &mut dyn Listener,
) -> Result<SpawnEnd, Stopped> {
    let ended = async {
        tokio::select! {
            end = process.wait() => Ok(end),
            () = sleep_until(around.until) => Err(Stopped::TimeLimit),
            () = around.cancel.cancelled() => Err(Stopped::Cancelled),
        }
    };
    while_reading(ended, pipes, listener).await
}

/// Waits for something, and takes what the command says meanwhile.
async fn while_reading<T>(
    something: impl Future<Output = T>,
    pipes: &mut Pipes<'_>,
    listener: &mut dyn Listener,
) -> T {
    tokio::pin!(something);
    loop {
        tokio::select! {
            came = &mut something => return came,
            () = pipes.read(listener) => {}
            () = tokio::time::sleep(LOOK) => {}
        }
        listener.look();
    }
}

/// First what makes the runner talk, then the usual; at the end everything is killed.
fn ladder(first: FirstSignal) -> Vec<(Signal, Duration)> {
    match first {
        FirstSignal::Quit => vec![(Signal::QUIT, GRACE), (Signal::TERM, GRACE)],
        FirstSignal::Interrupt => vec![(Signal::INT, GRACE), (Signal::TERM, GRACE)],
        FirstSignal::Terminate => vec![(Signal::TERM, GRACE)],
    }
}

fn new_pipe() -> std::io::Result<(std::os::fd::OwnedFd, Pipe)> {
    let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    Ok((write, Pipe { receiver: pipe::Receiver::from_owned_fd(read)?, buffer: vec![0; 64 << 10] }))
}

struct Pipe {
    receiver: pipe::Receiver,
    buffer: Vec<u8>,
}

impl Pipe {
    /// The next piece; nothing at the end.
    async fn next(&mut self) -> Option<&[u8]> {
        let count = self.receiver.read(&mut self.buffer).await.ok().filter(|count| *count > 0)?;
        Some(&self.buffer[..count])
    }
}

/// What of the two is still open.
struct Pipes<'a> {
    out: Option<&'a mut Pipe>,
    err: Option<&'a mut Pipe>,
}

impl Pipes<'_> {
    /// One piece of either stream. Waits for ever when both are at their end.
    async fn read(&mut self, listener: &mut dyn Listener) {
        let (stream, piece) = tokio::select! {
            piece = next(&mut self.out) => (Stream::Out, piece),
            piece = next(&mut self.err) => (Stream::Err, piece),
        };
        match (piece, stream) {
            (Some(bytes), _) => listener.printed(stream, bytes),
            (None, Stream::Out) => self.out = None,
            (None, Stream::Err) => self.err = None,
        }
    }

    /// What was written up to now, and no more: the command goes on.
    async fn read_what_is_there(&mut self, listener: &mut dyn Listener) {
        /// More than fits into two pipes.
        const PIECES: usize = 64;
        for _ in 0..PIECES {
            tokio::select! {
                biased;
                () = self.read(listener) => {}
                () = std::future::ready(()) => return,
            }
        }
    }

    async fn drain(&mut self, listener: &mut dyn Listener) {
        while self.out.is_some() || self.err.is_some() {
            self.read(listener).await;
        }
    }
}

async fn next<'p>(pipe: &'p mut Option<&mut Pipe>) -> Option<&'p [u8]> {
    match pipe {
        Some(pipe) => pipe.next().await,
        None => std::future::pending().await,
    }
}

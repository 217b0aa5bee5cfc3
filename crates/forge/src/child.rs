//! A child process that answers: bounded in time and in what it may say, and never left behind.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;

use crate::policy::{DRAIN_GRACE, MAX_OUTPUT, MAX_STDERR};

/// What a child has on its standard input.
#[derive(Debug)]
pub(crate) enum Input<'a> {
    Nothing,
    Text(&'a [u8]),
    /// A file that it holds open while it lives, and never reads: so a lock that we hold lasts as long as the child,
    /// even if we are killed.
    Held(std::fs::File),
}

/// How a child ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: Vec<u8>,
    /// The end of what it said there.
    pub(crate) stderr: String,
}

/// Why there is no end to report.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChildError {
    #[error("it could not be started or read")]
    Io(#[from] io::Error),
    #[error("it took too long")]
    TimedOut,
    #[error("it said too much")]
    TooMuch,
}

/// Runs a program in a process group of its own, which is killed if the answer is given up: by its limit, by its
/// size, or because nobody waits any more.
pub(crate) async fn run(
    mut command: Command,
    input: Input<'_>,
    limit: Duration,
) -> Result<Ended, ChildError> {
    let (stdin, input) = match input {
        Input::Nothing => (Stdio::null(), &[][..]),
        Input::Text(text) => (Stdio::piped(), text),
        Input::Held(file) => (Stdio::from(file), &[][..]),
    };
    command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0).kill_on_drop(true);
    let mut child = command.spawn()?;
    let mut group = Group::led_by(child.id());
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let (stdin, out, err) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (mut whole, mut tail) = (Ok(()), Ok(()));
    let answer = async {
        let talking = async {
            tokio::join!(feed(stdin, input), async { whole = read_whole(out, &mut stdout).await }, async {
                tail = read_tail(err, &mut stderr).await
            },)
        };
        tokio::pin!(talking);
        tokio::select! {
            biased;
            _ = &mut talking => child.wait().await,
            status = child.wait() => {
                // Whatever it left behind may hold the pipes; it does not hold us.
                let _ = tokio::time::timeout(DRAIN_GRACE, &mut talking).await;
                status
            }
        }
    };
    let status = tokio::time::timeout(limit, answer).await.map_err(|_| ChildError::TimedOut)??;
    whole?;
    tail?;
    group.disarm();
    let stderr = String::from_utf8_lossy(&stderr).trim().to_owned();
    Ok(Ended { status, stdout, stderr })
}

/// The end of a text, at a character's border.
pub(crate) fn tail_of(text: &str, bytes: usize) -> &str {
    let mut from = text.len().saturating_sub(bytes);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    &text[from..]
}

async fn feed(stdin: Option<tokio::process::ChildStdin>, input: &[u8]) {
    if let Some(mut stdin) = stdin {
        // A program that does not want it all has closed its end; its answer says the rest.
        let _ = stdin.write_all(input).await;
    }
}

async fn read_whole(from: Option<impl AsyncRead + Unpin>, into: &mut Vec<u8>) -> Result<(), ChildError> {
    let Some(from) = from else { return Ok(()) };
    let most = u64::try_from(MAX_OUTPUT).unwrap_or(u64::MAX);
    from.take(most + 1).read_to_end(into).await?;
    if into.len() > MAX_OUTPUT { Err(ChildError::TooMuch) } else { Ok(()) }
}

async fn read_tail(from: Option<impl AsyncRead + Unpin>, into: &mut Vec<u8>) -> Result<(), ChildError> {
    let Some(mut from) = from else { return Ok(()) };
    while from.read_buf(into).await? > 0 {
        if into.len() > 2 * MAX_STDERR {
            into.drain(..into.len() - MAX_STDERR);
        }
    }
    Ok(())
}

/// Kills all of a child's group when dropped, unless the child is known to have ended.
struct Group(Option<Pid>);

impl Group {
    fn led_by(pid: Option<u32>) -> Self {
        Self(pid.and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw))
    }

    fn disarm(&mut self) {
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(leader) = self.0 {
            // Nobody there is what we want.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}

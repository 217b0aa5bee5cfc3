//! An agent's command on a stage: with a limit, and with nothing left of it afterwards.

use std::io::{IsTerminal as _, Read as _};
use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;
use rehearsal_agent::clis::KNOWN;
use rehearsal_app::caller::Caller;
use rehearsal_app::stage::{KeysOf, Performance};
use rehearsal_core::config::HumanDuration;
use rehearsal_process::{Ended, Supervised};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::pipe;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::Ui;

/// How long a process that is asked to end may take.
const GRACE: Duration = Duration::from_secs(5);

/// A command to run on the stage.
#[derive(Debug, Args)]
pub(crate) struct CommandArgs {
    #[arg(long, value_name = "AGENT", help = agent_help())]
    agent: Option<String>,
    /// How long it may take
    #[arg(long, value_name = "TIME", default_value = "30m")]
    timeout: HumanDuration,
    /// The agent's command line; its standard input is ours
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

fn agent_help() -> String {
    let names: Vec<&str> = KNOWN.foreign().collect();
    format!("Which agent it is, if its name does not say it: {}", names.join(", "))
}

/// What the agent reads.
#[derive(Debug, Clone)]
pub(crate) enum Input {
    /// Our own standard input.
    Ours,
    /// This.
    Given(Vec<u8>),
}

/// What becomes of what the agent prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Printed {
    Shown,
    Dropped,
}

impl CommandArgs {
    /// In the caller's directory.
    pub(crate) fn prepare(&self, caller: &Caller) -> Result<Performance, CliError> {
        let (program, arguments) =
            self.command.split_first().ok_or_else(|| CliError::usage("there is no command to run"))?;
        Ok(Performance::prepare(program, arguments, self.agent.as_deref(), caller.clone())?)
    }

    /// Runs it to its end.
    pub(crate) async fn run(
        &self,
        performance: &Performance,
        stage: SocketAddr,
        keys: KeysOf,
        input: Input,
        printed: Printed,
        ui: Ui,
    ) -> Result<Ended, CliError> {
        let mut process = performance.start(stage, keys).await?;
        let pumps = [
            pump(process.stdout.take(), printed, if ui.json { Sink::Stderr } else { Sink::Stdout }),
            pump(process.stderr.take(), printed, Sink::Stderr),
        ];
        let feeding = process.stdin.take().map(|stdin| tokio::spawn(feed(stdin, input)));
        let ended = wait(&mut process, self.timeout.0).await;
        if let Some(feeding) = feeding {
            feeding.abort();
        }
        for pump in pumps {
            // A pump that failed has nobody to print to.
            let _ = pump.await;
        }
        ended
    }
}

async fn wait(process: &mut Supervised, limit: Duration) -> Result<Ended, CliError> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let stopped = tokio::select! {
        ended = process.wait() => return Ok(ended),
        _ = interrupt.recv() => CliError::new(Exit::Interrupted, "interrupted"),
        _ = terminate.recv() => CliError::new(Exit::Terminated, "terminated"),
        () = tokio::time::sleep(limit) => {
            CliError::new(Exit::Timeout, format!("the command did not end within {}", HumanDuration(limit)))
                .hint("`--timeout TIME` gives it longer")
        }
    };
    process.terminate(GRACE).await;
    process.wait().await;
    Err(stopped)
}

#[derive(Debug, Clone, Copy)]
enum Sink {
    Stdout,
    Stderr,
}

fn pump(from: Option<pipe::Receiver>, printed: Printed, sink: Sink) -> tokio::task::JoinHandle<()> {
    tokio::spawn(async move {
        let Some(mut from) = from else { return };
        let mut buffer = vec![0; 16 << 10];
        while let Ok(length @ 1..) = from.read(&mut buffer).await {
            if printed == Printed::Shown {
                match sink {
                    Sink::Stdout => crate::ui::raw_out(&buffer[..length]),
                    Sink::Stderr => crate::ui::raw_err(&buffer[..length]),
                }
            }
        }
    })
}

async fn feed(mut stdin: pipe::Sender, input: Input) {
    match input {
        Input::Given(bytes) => {
            // A program that does not read is none of our business.
            let _ = stdin.write_all(&bytes).await;
        }
        Input::Ours => {
            let mut pieces = our_input();
            while let Some(piece) = pieces.recv().await {
                if stdin.write_all(&piece).await.is_err() {
                    break;
                }
            }
        }
    }
}

/// What comes in on our standard input. A terminal is not read: nobody is to sit at it.
pub(crate) fn our_input() -> mpsc::Receiver<Vec<u8>> {
    let (sender, pieces) = mpsc::channel::<Vec<u8>>(4);
    if std::io::stdin().is_terminal() {
        return pieces;
    }
    // A thread of its own, which is left alone when the command ends first: a read cannot be called off.
    std::thread::spawn(move || {
        let mut input = std::io::stdin().lock();
        let mut buffer = vec![0; 16 << 10];
        while let Ok(length @ 1..) = input.read(&mut buffer) {
            if sender.blocking_send(buffer[..length].to_vec()).is_err() {
                break;
            }
        }
    });
    pieces
}

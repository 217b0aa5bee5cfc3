//! The clock for other processes: scripted agents that sleep ask it over a socket.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::clock::{ScenarioClock, Ticket, Who};

/// No request is longer.
const LONGEST_LINE: u64 = 1_000;

/// Answers agents; ends when it is dropped.
#[derive(Debug)]
pub(crate) struct ClockSocket {
    pub(crate) path: Utf8PathBuf,
    turns: Turns,
    _serving: JoinSet<()>,
}

/// By run: whose turn is released while the agent sleeps.
type Turns = Arc<Mutex<BTreeMap<String, (Ticket, usize, CancellationToken)>>>;

/// While an agent runs.
#[derive(Debug)]
pub(crate) struct Running {
    turns: Turns,
    run: String,
    stopped: CancellationToken,
}

impl Running {
    /// The agent is about to be ended, so its sleep never ends.
    pub(crate) fn stop(&self) {
        self.stopped.cancel();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.run);
    }
}

impl ClockSocket {
    pub(crate) fn open(directory: &Utf8Path, clock: &ScenarioClock) -> std::io::Result<Self> {
        let path = directory.join("clock");
        let listener = UnixListener::bind(&path)?;
        let turns = Turns::default();
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, clock.clone(), Arc::clone(&turns)));
        Ok(Self { path, turns, _serving: serving })
    }

    /// Whether an agent runs.
    pub(crate) fn is_busy(&self) -> bool {
        !self.turns.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Until the returned guard is dropped, the run sleeps with this turn.
    pub(crate) fn running(&self, run: &str, ticket: Ticket, worker: usize) -> Running {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        let stopped = CancellationToken::new();
        turns.insert(run.to_owned(), (ticket, worker, stopped.clone()));
        Running { turns: Arc::clone(&self.turns), run: run.to_owned(), stopped }
    }
}

async fn serve(listener: UnixListener, clock: ScenarioClock, turns: Turns) {
    let mut calls = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else { continue };
                calls.spawn(answer(stream, clock.clone(), Arc::clone(&turns)));
            }
            Some(_) = calls.join_next() => {}
        }
    }
}

async fn answer(mut stream: UnixStream, clock: ScenarioClock, turns: Turns) {
    let (reader, mut writer) = stream.split();
    let mut reader = BufReader::new(reader.take(LONGEST_LINE));
    let mut line = String::new();
    if reader.read_line(&mut line).await.is_err() {
        return;
    }
    let mut words = line.split_whitespace();
    let (run, verb) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let millis = words.next().and_then(|text| text.parse().ok()).map(Duration::from_millis);
    let turn = turns.lock().unwrap_or_else(PoisonError::into_inner).get(run).cloned();
    let slept = async {
        match (verb, turn) {
            ("now", _) => {}
            ("sleep", Some((ticket, worker, _))) => {
                let until = clock.now().plus(millis.unwrap_or_default());
                clock.sleep_inside(ticket, Who::Agent(worker), until).await;
            }
            ("hang", Some((ticket, ..))) => {
                clock.give_back(ticket);
                std::future::pending().await
            }
            _ => return "what?".to_owned(),
        }
        clock.now().to_string()
    };
    let stopped = turns.lock().unwrap_or_else(PoisonError::into_inner).get(run).map(|it| it.2.clone());
    let unless_stopped = async {
        match stopped.unwrap_or_default().run_until_cancelled(slept).await {
            Some(answer) => answer,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        answer = unless_stopped => {
            // A peer that is gone needs no answer.
            let _ = writer.write_all(format!("{answer}\n").as_bytes()).await;
        }
        () = gone(&mut reader) => {}
    }
}

/// Returns when the other side is gone.
async fn gone<R: tokio::io::AsyncRead + Unpin>(reader: &mut R) {
    let mut rest = [0];
    while !matches!(reader.read(&mut rest).await, Ok(0) | Err(_)) {}
}

//! A run whose worker died, gone on with where it stopped.

use std::io;
use std::time::Duration;

use camino::Utf8Path;
use rehearsal_core::secret::is_secret_variable;
use rehearsal_core::{Notice, RunId, Stop, Timestamp};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::files::{LogLengths, RunFiles};
use super::hindrance::Hindrance;
use super::spool::Spool;
use super::{Attempt, Findings, ProcessAgent};
use crate::environment::Variables;
use crate::git::Snapshot;
use crate::retry::Earlier;
use crate::{Lease, RunReport, RunRequest, Watch};
use rehearsal_process::{ADOPTION_TRIES, AdoptError, Foundling, SpawnSpec, Supervised, somebody_listens};

/// All that a worker knew of a run and that cannot be found out again. Its shim keeps it, where the agent cannot change
/// it; the agent may read it, for it has no secret that the agent does not have.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Memo {
    driver: String,
    request: RunRequest,
    started_at: Timestamp,
    /// The same on a clock that nobody sets.
    ticks: Duration,
    before: Option<Snapshot>,
    logs: LogLengths,
    /// Secrets that the agent was given: it may tell them, and they must not be shown.
    secrets: Variables,
    warnings: Vec<Notice>,
}

impl Memo {
    pub(super) fn new(
        attempt: &Attempt<'_>,
        spec: &SpawnSpec,
        before: Option<&Snapshot>,
        logs: LogLengths,
        warnings: &[Notice],
    ) -> Self {
        let secrets = spec.env.iter().filter(|(name, value)| is_secret_variable(name, value));
        Self {
            driver: attempt.agent.driver.cli().name.to_owned(),
            request: attempt.request.clone(),
            started_at: attempt.agent.clock.now(),
            ticks: ticks(),
            before: before.cloned(),
            logs,
            secrets: secrets.map(|(name, value)| (name.clone(), value.clone())).collect(),
            warnings: warnings.to_vec(),
        }
    }

    pub(super) fn encode(&self) -> io::Result<String> {
        Ok(serde_json::to_string(self)?)
    }
}

/// Time since the machine was started, as all processes on it count it.
fn ticks() -> Duration {
    let now = clock_gettime(ClockId::Monotonic);
    Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// A run whose worker died while its agent goes on, or has just ended. Nobody else can have it now. Dropping it ends the
/// agent.
pub struct Orphan {
    process: Supervised,
    memo: Memo,
    spool: Spool,
}

impl Orphan {
    /// The orphan that is to be found at a socket. Its agent goes on for as long as its lease was, and not longer.
    pub async fn find(socket: &Utf8Path, run: &RunId) -> Result<Self, AdoptError> {
        let Foundling { process, memo, kept } = Foundling::find(socket, run, ADOPTION_TRIES).await?;
        let not_understood = |reason: String| AdoptError::NotUnderstood { reason };
        let memo: Memo = serde_json::from_str(&memo).map_err(|error| not_understood(error.to_string()))?;
        if memo.request.run != *run {
            return Err(not_understood(format!("it has run {}", memo.request.run)));
        }
        let spool = Spool::found(kept).map_err(|error| not_understood(error.to_string()))?;
        Ok(Self { process, memo, spool })
    }

    /// Whether a run is to be found at a socket. It may have a worker.
    pub fn is_at(socket: &Utf8Path) -> bool {
        somebody_listens(socket)
    }

    /// Ends whatever is to be found at a socket, and removes it; but not what has a worker.
    pub async fn end_at(socket: &Utf8Path, run: &RunId) {
        match Foundling::find(socket, run, 1).await {
            Ok(found) => end(found.process).await,
            Err(AdoptError::Gone) => {
                let _ = std::fs::remove_file(socket);
            }
            Err(AdoptError::HasWorker | AdoptError::NotUnderstood { .. }) => {}
        }
    }

    /// Ends the agent and all that it started.
    pub async fn end(self) {
        end(self.process).await;
    }

    /// What was asked of it.
    pub fn request(&self) -> &RunRequest {
        &self.memo.request
    }

    /// The name of its agent's driver.
    pub fn driver(&self) -> &str {
        &self.memo.driver
    }

    /// The agent's process number.
    pub fn pid(&self) -> i32 {
        self.process.pid()
    }

    pub(crate) fn started_at(&self) -> Timestamp {
        self.memo.started_at
    }

    pub(crate) fn take_earlier(&mut self) -> Option<Box<Earlier>> {
        self.memo.request.rendezvous.as_mut().and_then(|rendezvous| rendezvous.earlier.take())
    }
}

async fn end(mut process: Supervised) {
    process.kill().await;
    process.wait().await;
}

impl ProcessAgent {
    pub(super) async fn go_on_with(
        &self,
        orphan: Orphan,
        mut lease: Lease,
        watch: Watch,
        cancel: CancellationToken,
    ) -> Option<RunReport> {
        if orphan.driver() != self.driver.cli().name {
            orphan.end().await;
            return None;
        }
        let Orphan { mut process, memo, spool } = orphan;
        process.go_on(lease.left()).await;
        let Memo { request, started_at: _, ticks: began, before, logs, secrets, warnings, driver: _ } = memo;
        let request = RunRequest { lease: Some(lease), ..request };
        let redactor = self.redactor(self.ours.iter().chain(&secrets).chain(&request.env));
        let mut found = Findings { warnings, ..Findings::default() };
        let attempt = Attempt { agent: self, request: &request, redactor: &redactor, watch, cancel };
        let left = Left { began, before, logs, spool };
        if let Err(hindrance) = attempt.go_on(process, left, &mut found).await {
            found.warnings.push(*hindrance.notice);
            found.evidence.stop = Some(Stop::Hindered(hindrance.outcome));
        }
        Some(found.into_report(&request, &redactor))
    }
}

/// What a worker left of a run.
struct Left {
    began: Duration,
    before: Option<Snapshot>,
    logs: LogLengths,
    spool: Spool,
}

impl Attempt<'_> {
    async fn go_on(self, process: Supervised, left: Left, found: &mut Findings) -> Result<(), Hindrance> {
        let Left { began, before, logs, spool } = left;
        let (files, heard) = RunFiles::found(&self.request.run_dir, self.redactor, logs, spool)?;
        found.note_sandbox(&process);
        let drive = self.drive(files).going_on(ticks().saturating_sub(began), heard).await;
        let driven = drive.until_over(process, String::new(), &self.cancel).await;
        self.conclude(driven, before, found).await
    }
}

//! What an agent did and printed, while it works and afterwards.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::Arc;
use std::time::Duration;

use camino::Utf8Path;
use rehearsal_core::{Activity, ActivityLine, Run, RunId, TaskId, Timestamp};
use rehearsal_store::{FindError, RunQuery, Scope, Store};
use serde::Serialize;

use crate::project::{Project, ProjectError};

/// A line of `logs --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LogLine {
    /// When; none in logs of older versions.
    pub at: Option<Timestamp>,
    /// What the agent did.
    pub activity: Activity,
}

/// Which log of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogKind {
    /// What it did.
    Activity,
    /// Its standard output as it came.
    Stdout,
    /// Its standard error as it came.
    Stderr,
}

/// Why a log cannot be read.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the words of `Display` say what each is")]
pub enum LogError {
    #[error("run `{run}` has no log of this kind")]
    NoLog { run: RunId },
    #[error("task `{task}` has no runs yet")]
    NoRuns { task: TaskId },
    #[error(transparent)]
    Project(ProjectError),
}

impl<E: Into<ProjectError>> From<E> for LogError {
    fn from(error: E) -> Self {
        Self::Project(error.into())
    }
}

/// A log that may still grow.
pub struct Log {
    run: RunId,
    store: Arc<dyn Store>,
    reader: BufReader<fs_err::File>,
}

/// How often a growing log is looked at.
pub const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Lines longer than this were not written by us.
const LONGEST_LINE: u64 = 1 << 20;

/// Opens a log of a run, or of a task's newest run. Either is named by a unique prefix of its id. To follow it, a log that is not there yet is waited for.
pub async fn open(project: &Project, id: &str, kind: LogKind, follow: bool) -> Result<Log, LogError> {
    let store = project.store().await?;
    let run = find(&*store, id).await?;
    let file = match kind {
        LogKind::Activity => "activity.jsonl",
        LogKind::Stdout => "stdout.log",
        LogKind::Stderr => "stderr.log",
    };
    let path = project.runs_dir()?.join(run.start.id.as_str()).join(file);
    let reader = open_file(&path, &run, follow).await?;
    Ok(Log { run: run.start.id, store, reader })
}

/// A run that has this id wins over a task; what is neither is a run that does not exist.
async fn find(store: &dyn Store, id: &str) -> Result<Run, LogError> {
    let no_run = match store.find_run(id).await {
        Err(error @ FindError::NotFound { .. }) => error,
        found => return Ok(found?),
    };
    let task = match store.find_task(id).await {
        Err(FindError::NotFound { .. }) => return Err(no_run.into()),
        found => found?,
    };
    let newest = RunQuery { scope: Scope::Task(task.id.clone()), limit: Some(1) };
    store.runs(&newest).await?.into_iter().next().ok_or(LogError::NoRuns { task: task.id })
}

async fn open_file(path: &Utf8Path, run: &Run, follow: bool) -> Result<BufReader<fs_err::File>, LogError> {
    loop {
        match fs_err::File::open(path) {
            Ok(file) => return Ok(BufReader::new(file)),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
            Err(_) if follow && run.end.is_none() => tokio::time::sleep(LOOK_EVERY).await,
            Err(_) => return Err(LogError::NoLog { run: run.start.id.clone() }),
        }
    }
}

impl Log {
    /// Whether the run has ended. Ask before the rest is read, or its last lines could be missed.
    pub async fn is_over(&self) -> Result<bool, ProjectError> {
        Ok(self.store.find_run(self.run.as_str()).await?.end.is_some())
    }

    /// Hands on what has come since the last time.
    pub fn activities(&mut self, mut each: impl FnMut(LogLine)) -> io::Result<()> {
        let mut line = Vec::new();
        loop {
            line.clear();
            if self.reader.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line)? == 0 {
                return Ok(());
            }
            if let Ok(ActivityLine { at, activity }) = serde_json::from_slice(&line) {
                each(LogLine { at, activity });
            }
        }
    }

    /// Copies what has come since the last time, as it came.
    pub fn copy(&mut self, to: &mut impl Write) -> io::Result<()> {
        io::copy(&mut self.reader, to).map(drop)
    }
}

//! Build, lint and tests of a repository in one form: what an agent needs to know before it says that it is done.
//!
//! Tools are found by the files with which projects configure them, run one after another, and their output becomes
//! [`Diagnostic`](crate::Diagnostic)s while it comes. The tests are run by [`run`](crate::run()); who calls both adds them to the report.
//!
//! **Invariant:** a report always comes back. What exits with something else than 0 is never green, whether or not its
//! output could be read; a build that fails is the end of it, and what did not run is said.

mod execute;
mod find;
mod gather;
mod install;
mod page;
mod reader;
mod recorded;
mod report;

use std::collections::BTreeMap;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_core::BoxFuture;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use find::Check;
pub use page::{check_page, check_page_for_agents};
pub use recorded::{RecordedCheck, read_check};
pub use report::{CheckReport, CheckVerdict, CheckedTests, NotRun, Stage};
pub(crate) use report::{DiagnosticCounts, StageReport};

use crate::run::milliseconds;
use crate::{Machine, RunWatcher, Spawner};
use execute::Session;
use find::find;
use gather::Known;

/// What to check.
#[derive(Debug, Clone)]
pub struct CheckRequest {
    /// The repository.
    pub root: Utf8PathBuf,
    /// Its programs and variables.
    pub machine: Machine,
    /// Variables beside those of the machine.
    pub environment: BTreeMap<String, String>,
    /// Which stages; the tests are somebody else's.
    pub stages: Vec<Stage>,
    /// Commands that build, instead of what would be found.
    pub build: Option<Vec<String>>,
    /// Commands that lint, instead of what would be found.
    pub lint: Option<Vec<String>>,
    /// For each command.
    pub timeout: Duration,
    /// Where whole outputs are kept. It exists.
    pub keep: Option<Utf8PathBuf>,
}

impl CheckRequest {
    /// What would run, and what is to be said about the choice. `scratch` need not exist.
    pub fn checks(&self, scratch: &Utf8Path) -> (Vec<Check>, Vec<String>) {
        find(self, scratch)
    }

    /// The commands that somebody gave for a stage.
    fn commands(&self, stage: Stage) -> Option<&[String]> {
        match stage {
            Stage::Build => self.build.as_deref(),
            Stage::Lint => self.lint.as_deref(),
            Stage::Test => None,
        }
    }
}

/// Builds and lints.
pub fn check<'a>(
    request: &'a CheckRequest,
    spawner: &'a dyn Spawner,
    watcher: &'a RunWatcher,
    cancel: &'a CancellationToken,
) -> BoxFuture<'a, std::io::Result<CheckReport>> {
    Box::pin(async move {
        let began = Instant::now();
        let scratch = tempfile::Builder::new().prefix("rehearsal-check-").tempdir()?;
        let directory = Utf8PathBuf::try_from(scratch.path().to_owned()).map_err(std::io::Error::other)?;
        let (checks, notes) = request.checks(&directory);
        let session = Session { request, spawner, watcher, cancel };
        let mut stages: Vec<StageReport> = Vec::new();
        let mut not_run: Vec<NotRun> = Vec::new();
        let mut known = Known::default();
        for stage in [Stage::Build, Stage::Lint] {
            let of_stage: Vec<&Check> = checks.iter().filter(|check| check.stage == stage).collect();
            let why = stops(&stages, cancel);
            if let Some(why) = why.filter(|_| !of_stage.is_empty()) {
                let tools = of_stage.iter().map(|check| check.tool.clone()).collect();
                not_run.push(NotRun { name: stage, tools, why });
                continue;
            }
            for check in of_stage {
                let report = session.execute(check, stages.len(), &mut known).await;
                stages.push(report);
                if cancel.is_cancelled() {
                    break;
                }
            }
        }
        let mut report = CheckReport::of(stages, not_run, notes);
        report.duration = milliseconds(began);
        Ok(report)
    })
}

/// Why what follows is not run.
fn stops(stages: &[StageReport], cancel: &CancellationToken) -> Option<String> {
    if cancel.is_cancelled() {
        return Some("the check was stopped".to_owned());
    }
    let red = |stage: &&StageReport| stage.name == Stage::Build && stage.verdict != CheckVerdict::Passed;
    let first = stages.iter().find(red)?;
    Some(format!("the build did not pass: {} {}", first.tool, first.verdict.words()))
}

impl CheckReport {
    /// Why the tests are not to be run.
    pub fn stops(&self, cancel: &CancellationToken) -> Option<String> {
        stops(&self.stages, cancel)
    }
}

#[cfg(test)]
mod tests;

//! The repository's tests: which there are, how they are run, what earlier runs say.

mod history;

use std::sync::Arc;

use camino::Utf8Path;
use rehearsal_core::config::{HumanDuration, SandboxLevel, Settings, check_timeout};
use rehearsal_engine::{CheckWanted, Checker, Draws, Tested, Tester, TesterError, Wanted};
use rehearsal_testing::{Candidate, CheckReport, Framework, RunWatcher, detect};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::project::{Project, ProjectError};

pub use history::{HistoryDocument, TestHistoryDocument, TestsDocument, flaky, history, runs, slow};

/// What is asked for beyond the settings. What is left out stays as it is set.
#[derive(Debug, Clone, Default)]
pub struct Choices {
    /// The runner.
    pub framework: Option<Framework>,
    /// The command to run instead of what was found.
    pub command: Option<String>,
    /// The longest it may take.
    pub timeout: Option<HumanDuration>,
    /// Variables for the tests.
    pub environment: Vec<(String, String)>,
    /// How many tests run at the same time.
    pub parallel: Option<u32>,
    /// How often failed tests are run again.
    pub retries: Option<u32>,
    /// How much of the sandbox must be there.
    pub sandbox: Option<SandboxLevel>,
}

/// Why tests cannot be run.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the words of `Display` say what each is")]
pub enum TestingError {
    #[error("{0}")]
    Timeout(String),
    /// The sandbox is required and the system does not provide it: a run without one would be an error and not a result.
    #[error("the sandbox is required, and cannot be had: {why}")]
    NoSandbox { why: String },
    #[error(transparent)]
    Tester(#[from] TesterError),
    #[error(transparent)]
    Project(#[from] ProjectError),
}

/// The tests of one project of the repository.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FoundTests {
    /// The runner.
    pub framework: Framework,
    /// Where, relative to the repository.
    pub root: String,
    /// The file that tells.
    pub found_by: Option<String>,
    /// The project's own command, where no runner is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

/// Which tests there are.
pub fn found(root: &Utf8Path) -> Vec<FoundTests> {
    let found = detect(root, &|program| which::which(program).is_ok());
    let view = |candidate: &Candidate| FoundTests {
        framework: candidate.framework,
        root: candidate.place().to_owned(),
        found_by: candidate.evidence.first().map(|evidence| evidence.file.to_string()),
        command: Some(candidate.invocation.command.join(" "))
            .filter(|command| candidate.framework == Framework::Generic && !command.is_empty()),
    };
    found.chosen().map(view).collect()
}

/// Who runs the tests, as the settings and the caller want it.
pub async fn tester(project: &Project, choices: Choices) -> Result<Tester, TestingError> {
    Ok(checker(project, choices).await?.tester)
}

/// Who builds, lints and tests, as the settings and the caller want it.
pub async fn checker(project: &Project, choices: Choices) -> Result<Checker, TestingError> {
    let store = project.store_of_tests().await?;
    let settings = settings(project, choices)?;
    let tester = Tester {
        root: project.root.clone(),
        settings: settings.testing,
        base_branch: settings.base_branch,
        keep: project.state_dir()?.join("tests"),
        variables: project.caller.environment.clone(),
        store,
        clock: Arc::clone(&project.caller.clock),
        draws: Draws::random(),
    };
    Ok(Checker { tester, settings: settings.check })
}

fn settings(project: &Project, choices: Choices) -> Result<Settings, TestingError> {
    let mut all = project.settings()?.clone();
    let settings = &mut all.testing;
    if let Some(framework) = choices.framework {
        settings.framework = Some(framework.name().to_owned());
    }
    settings.command = choices.command.or(settings.command.take());
    if let Some(timeout) = choices.timeout {
        check_timeout(timeout).map_err(TestingError::Timeout)?;
        settings.timeout = timeout;
    }
    settings.environment.extend(choices.environment);
    settings.parallel = choices.parallel.or(settings.parallel);
    settings.retries = choices.retries.unwrap_or(settings.retries);
    settings.sandbox.level = choices.sandbox.unwrap_or(settings.sandbox.level);
    Ok(all)
}

/// Runs the tests.
pub async fn test(
    tester: &Tester,
    wanted: &Wanted,
    watcher: &RunWatcher,
    cancel: &CancellationToken,
) -> Result<Tested, TestingError> {
    let tested = tester.test(wanted, watcher, cancel).await?;
    let refused = tested.projects.iter().find_map(|project| project.report.sandbox_refused.as_deref());
    unless_refused(tester, refused)?;
    Ok(tested)
}

/// Builds, lints and runs the tests.
pub async fn check(
    checker: &Checker,
    wanted: &CheckWanted,
    watcher: &RunWatcher,
    cancel: &CancellationToken,
) -> Result<CheckReport, TestingError> {
    let report = checker.check(wanted, watcher, cancel).await?;
    unless_refused(&checker.tester, report.sandbox_refused())?;
    Ok(report)
}

fn unless_refused(tester: &Tester, refused: Option<&str>) -> Result<(), TestingError> {
    match refused {
        Some(why) if tester.settings.sandbox.level == SandboxLevel::Required => {
            Err(TestingError::NoSandbox { why: why.to_owned() })
        }
        _ => Ok(()),
    }
}

//! The tester, as the configuration and whoever asks want it: the command line, an action, a client of the MCP server.

use std::sync::Arc;

use rehearsal_core::config::{HumanDuration, Overrides, SandboxLevel, Settings, check_timeout};
use rehearsal_engine::{Tested, Tester};
use rehearsal_testing::Framework;

use crate::context::{Context, variables};
use crate::error::CliError;
use crate::exit::Exit;
use crate::project::Project;

/// What is asked for beyond the configuration. What is left out stays as it is configured.
#[derive(Debug, Clone, Default)]
pub(crate) struct Choices {
    pub(crate) framework: Option<Framework>,
    pub(crate) command: Option<String>,
    pub(crate) timeout: Option<HumanDuration>,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) parallel: Option<u32>,
    pub(crate) retries: Option<u32>,
    pub(crate) sandbox: Option<SandboxLevel>,
}

/// The tester of the repository around.
pub(crate) async fn tester(choices: Choices, context: &Context) -> Result<Tester, CliError> {
    let project = context.project()?;
    let mut all = project.settings(Overrides::default())?;
    let settings = &mut all.testing;
    settings.framework =
        choices.framework.map(|framework| framework.name().to_owned()).or(settings.framework.take());
    settings.command = choices.command.or(settings.command.take());
    if let Some(timeout) = choices.timeout {
        check_timeout(timeout).map_err(CliError::usage)?;
        settings.timeout = timeout;
    }
    settings.environment.extend(choices.environment);
    settings.parallel = choices.parallel.or(settings.parallel);
    settings.retries = choices.retries.unwrap_or(settings.retries);
    settings.sandbox.level = choices.sandbox.unwrap_or(settings.sandbox.level);
    tester_with(all, &project, context).await
}

/// The tester of a project, with these settings.
pub(crate) async fn tester_with(
    settings: Settings,
    project: &Project,
    context: &Context,
) -> Result<Tester, CliError> {
    Ok(Tester {
        root: project.root.clone(),
        settings: settings.testing,
        base_branch: settings.base_branch,
        keep: project.state_dir().join("tests"),
        variables: variables(),
        store: project.store_of_tests().await?,
        clock: Arc::clone(&context.clock),
        draws: rehearsal_engine::Draws::random(),
    })
}

/// Where the sandbox is required, a run that had none is an error and no result.
pub(crate) fn unless_refused(tester: &Tester, tested: Tested) -> Result<Tested, CliError> {
    let refused = tested.projects.iter().find_map(|project| project.report.sandbox_refused.as_ref());
    match refused.filter(|_| tester.settings.sandbox.level == SandboxLevel::Required) {
        Some(why) => Err(sandbox_refused(why)),
        None => Ok(tested),
    }
}

/// That a sandbox is required, and cannot be had.
pub(crate) fn sandbox_refused(why: &str) -> CliError {
    CliError::new(Exit::Sandbox, format!("the sandbox is required, and cannot be had: {why}"))
        .hint("`rehearsal doctor` shows which layer is missing; `--sandbox best-effort` runs without it")
}

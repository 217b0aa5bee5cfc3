//! The tester, as the configuration and whoever asks want it: the command line, an action, a client of the MCP server.

use std::sync::Arc;

use rehearsal_app::project::Project;
use rehearsal_core::config::{
    HumanDuration, Origin, SandboxLevel, Setting, Settings, Written, check_timeout,
};
use rehearsal_engine::{Tested, Tester};
use rehearsal_testing::Framework;

use crate::context::{Context, variables};
use crate::error::CliError;
use crate::exit::Exit;

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
    let mut all = project.settings()?.clone();
    let settings = &mut all.testing;
    let flag = |given| Setting { value: given, origin: Origin::Flag };
    if let Some(framework) = choices.framework {
        let word = framework.name().to_owned();
        settings.framework = Setting { value: Some(Written { word, place: None }), origin: Origin::Flag };
    }
    if choices.command.is_some() {
        settings.command = flag(choices.command);
    }
    if let Some(timeout) = choices.timeout {
        check_timeout(timeout).map_err(CliError::usage)?;
        settings.timeout = Setting { value: timeout, origin: Origin::Flag };
    }
    settings.environment.value.extend(choices.environment);
    settings.parallel.value = choices.parallel.or(settings.parallel.value);
    settings.retries.value = choices.retries.unwrap_or(settings.retries.value);
    settings.sandbox.level.value = choices.sandbox.unwrap_or(settings.sandbox.level.value);
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
        base_branch: settings.base_branch.value,
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
    match refused.filter(|_| tester.settings.sandbox.level.value == SandboxLevel::Required) {
        Some(why) => Err(sandbox_refused(why)),
        None => Ok(tested),
    }
}

/// That a sandbox is required, and cannot be had.
pub(crate) fn sandbox_refused(why: &str) -> CliError {
    CliError::new(Exit::Sandbox, format!("the sandbox is required, and cannot be had: {why}"))
        .hint("`rehearsal doctor` shows which layer is missing; `--sandbox best-effort` runs without it")
}

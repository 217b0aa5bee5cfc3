//! Where a member of the crew works, and with which tools.

use camino::Utf8PathBuf;
use rehearsal_core::{RunId, TaskId};
use rehearsal_crew::{Role, Toolbox, Workplace};
use rehearsal_sandbox::Demand;

use crate::context::{Context, variables};
use crate::error::CliError;
use crate::exit::Exit;
use crate::inside::InsideRun;

/// The tools of a role in this directory. By hand there is no run: then its report goes to a directory that is thrown away.
pub(super) fn open(
    role: &Role,
    context: &Context,
) -> Result<(Toolbox, Option<tempfile::TempDir>), CliError> {
    let inside = InsideRun::detect();
    let scratch = if inside.is_none() { Some(tempfile::tempdir()?) } else { None };
    let run_dir = match (&inside, &scratch) {
        (Some(inside), _) => inside.directory().to_owned(),
        (None, Some(scratch)) => utf8(scratch.path())?,
        (None, None) => context.directory.clone(),
    };
    let random = rehearsal_engine::random_bits();
    let run = inside.as_ref().and_then(|inside| RunId::new(inside.run()).ok());
    let task = std::env::var("REHEARSAL_TASK_ID").ok().and_then(|task| TaskId::new(task).ok());
    let tools = Toolbox::open(&Workplace {
        role: role.name.clone(),
        tools: role.tools.iter().filter(|tool| rehearsal_crew::TOOL_NAMES.contains(&tool.as_str())).cloned().collect(),
        permissions: role.permissions,
        worktree: context.directory.clone(),
        task: task.unwrap_or_else(|| TaskId::from_random(random)),
        run: run.unwrap_or_else(|| RunId::from_random(random)),
        run_dir,
        variables: variables(),
        demand: Demand::BestEffort,
    });
    let tools = tools.map_err(|error| CliError::of(Exit::Usage, &error))?;
    Ok((tools, scratch))
}

fn utf8(path: &std::path::Path) -> Result<Utf8PathBuf, CliError> {
    let wrong = |path: std::path::PathBuf| CliError::usage(format!("`{}` is not UTF-8", path.display()));
    Utf8PathBuf::from_path_buf(path.to_owned()).map_err(wrong)
}

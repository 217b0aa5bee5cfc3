//! Where a member of the crew works, and with which tools.

use std::sync::Arc;

use camino::Utf8PathBuf;
use rehearsal_core::{RunId, TaskId};
use rehearsal_crew::{Role, Toolbox, Workplace};
use rehearsal_git::base_branch;
use rehearsal_sandbox::Demand;

use crate::commands::test::{ActionTests, Choices};
use crate::context::{Context, variables};
use crate::error::CliError;
use crate::exit::Exit;
use crate::inside::InsideRun;

/// The tools of a role, and where its report goes if nobody waits for it.
pub(super) struct Tools {
    pub(super) toolbox: Toolbox,
    /// Deleted when it is over.
    _scratch: Option<tempfile::TempDir>,
}

/// The tools of a role in this directory. By hand there is no run: then its report goes to a directory that is thrown away.
pub(super) async fn tools(role: &Role, context: &Context) -> Result<Tools, CliError> {
    let inside = InsideRun::detect();
    let (run_dir, scratch) = match &inside {
        Some(inside) => (inside.directory().to_owned(), None),
        None => {
            let scratch = tempfile::Builder::new().prefix("rehearsal-").tempdir()?;
            (utf8(scratch.path())?, Some(scratch))
        }
    };
    let random = rehearsal_engine::random_bits();
    let run = inside.and_then(|inside| RunId::new(inside.run()).ok());
    let task = std::env::var("REHEARSAL_TASK_ID").ok().and_then(|task| TaskId::new(task).ok());
    let place = Workplace {
        role: role.name.clone(),
        tools: role.tools.clone(),
        permissions: role.permissions,
        worktree: context.directory.clone(),
        task: task.unwrap_or_else(|| TaskId::from_random(random)),
        run: run.unwrap_or_else(|| RunId::from_random(random)),
        run_dir,
        variables: variables(),
        demand: Demand::BestEffort,
        base: base_branch(&context.directory).await.ok(),
        hooks: role.hooks.clone(),
        mcp: role.mcp.clone(),
        web_search: role.web_search.clone(),
        tests: Some(Arc::new(ActionTests { choices: Choices::default(), context: context.clone() })),
    };
    let toolbox = Toolbox::open(&place).await.map_err(|error| CliError::of(Exit::Usage, &error))?;
    for note in toolbox.notes() {
        context.ui.aside(format!("warning: {note}"));
    }
    Ok(Tools { toolbox, _scratch: scratch })
}

fn utf8(path: &std::path::Path) -> Result<Utf8PathBuf, CliError> {
    let wrong = |path: std::path::PathBuf| CliError::usage(format!("`{}` is not UTF-8", path.display()));
    Utf8PathBuf::from_path_buf(path.canonicalize()?).map_err(wrong)
}

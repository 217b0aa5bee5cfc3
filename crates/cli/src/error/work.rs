//! Why a worker cannot work or an agent cannot be checked, and what to do about it.

use rehearsal_agent::cli_of;
use rehearsal_app::agents::CheckError;
use rehearsal_app::command_line::quote;
use rehearsal_app::work::WorkerError;
use rehearsal_core::config::DriverKind;
use rehearsal_engine::SetupError;
use rehearsal_process::SpawnError;

use super::CliError;
use crate::exit::Exit;

impl From<WorkerError> for CliError {
    fn from(error: WorkerError) -> Self {
        let this = Self::usage(error.to_string());
        match error {
            WorkerError::NoTrust(_) => this.hint("run it with `--trust`, or set `permission: accept_edits`"),
            WorkerError::NoWorkers(_) => this
                .hint("`rehearsal pause` lets nothing more be claimed, and `rehearsal resume` lets it go on"),
            WorkerError::NoIterations(_) => this.hint("set it to 1 or more"),
            WorkerError::NoModel(_) => this.hint("name a model, or leave it out: then the agent chooses"),
            WorkerError::NoTask(session) => this.hint(format!(
                "`rehearsal task list --session {}` shows what there is",
                quote(session.as_str())
            )),
            WorkerError::Template { file, error } => {
                Self::in_template(&error, &file).hint("mend it, or remove it: then the shipped one is used")
            }
            WorkerError::Agent { driver, error } => agent_error(driver, &error),
            WorkerError::Role(error) => error.into(),
            WorkerError::Session(error) => error.into(),
            WorkerError::Outlet(error) => error.into(),
            WorkerError::Worktrees(error) => error.into(),
            WorkerError::Locked(error) => error.into(),
            WorkerError::Work(error) => error.into(),
            WorkerError::Project(error) => error.into(),
        }
    }
}

fn agent_error(driver: DriverKind, error: &SetupError) -> CliError {
    let this = CliError::of(Exit::Agent, error);
    match (error, cli_of(driver).install) {
        (SetupError::Program(SpawnError::ProgramMissing { .. }), Some(install)) => this
            .hint(format!("install it with `{install}`, or set `program:` in .rehearsal/config.yaml"))
            .hint("`rehearsal agent list` shows which agents are here"),
        (SetupError::Unfit { program, .. }, Some(install)) => this
            .hint(format!("see what `{program} --help` prints, and update it with `{install}`"))
            .hint("`rehearsal agent check` shows all flags that it needs"),
        _ => this.hint("set `program:` in .rehearsal/config.yaml; `rehearsal doctor` shows what is missing"),
    }
}

impl From<CheckError> for CliError {
    fn from(error: CheckError) -> Self {
        match error {
            CheckError::Program(error) => Self::of(Exit::Usage, &error),
            CheckError::Git(error) => error.into(),
            CheckError::Role(error) => error.into(),
            CheckError::Outlet(error) => error.into(),
            CheckError::Worktree(error) => Self::of(Exit::Internal, &error),
            CheckError::Work(error) => error.into(),
            CheckError::Project(error) => error.into(),
        }
    }
}

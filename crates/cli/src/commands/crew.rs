//! `crew run|list|show`.

mod run;
mod show;
mod workplace;

use camino::{Utf8Path, Utf8PathBuf};
use clap::Subcommand;
use rehearsal_core::config::{DriverKind, Profile};
use rehearsal_crew::{ChoiceError, RoleError, Roles};

use super::Done;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::project::Project;

#[cfg(all(test, feature = "schema"))]
pub(crate) use show::{RoleDocument, RoleList};

#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  rehearsal crew list
  rehearsal crew show review
  echo 'Where is the retry policy?' | rehearsal crew run --role search")]
pub(crate) enum CrewCommand {
    /// Let a member of the crew work in this directory; its task is read from standard input
    Run(run::RunArgs),
    /// List the roles: those that are built in, and your own
    #[command(after_help = "Examples:\n  rehearsal crew list\n  rehearsal crew list --json")]
    List,
    /// Show a role: its tools, its permissions, its limits, and what it is told
    Show(show::ShowArgs),
}

pub(crate) async fn run(command: CrewCommand, context: &Context) -> Done {
    match command {
        CrewCommand::Run(args) => run::run(args, context).await,
        CrewCommand::List => show::list(context),
        CrewCommand::Show(args) => show::show(&args, context),
    }
}

/// Where the roles of a repository are.
pub(crate) fn agents_dir(root: &Utf8Path) -> Utf8PathBuf {
    root.join(".rehearsal").join("agents")
}

/// Those that are built in, and those of a directory.
pub(crate) fn roles_in(directory: &Utf8Path) -> Result<Roles, CliError> {
    Roles::built_in().and_then(|roles| roles.with_those_in(directory)).map_err(role_error)
}

/// Those of the repository around, or only those that are built in where there is none.
fn roles_here(context: &Context) -> Result<Roles, CliError> {
    let root = context.project().map_or_else(|_| context.directory.clone(), |project| project.root);
    roles_in(&agents_dir(&root))
}

/// Whether the role of an agent of the crew is there: no run should have to find out.
pub(crate) fn check_role(profile: &Profile, project: &Project) -> Result<(), CliError> {
    match &profile.role {
        Some(role) if profile.driver == DriverKind::CREW => {
            roles_in(&agents_dir(&project.root))?.get(role).map(drop).map_err(role_error)
        }
        _ => Ok(()),
    }
}

pub(crate) fn role_error(error: RoleError) -> CliError {
    match error {
        RoleError::Wrong { path, error } => {
            CliError::in_file(error, path.as_str()).hint("`rehearsal schema role` has the form of the file")
        }
        RoleError::Unknown { name, near, known } => {
            let error = CliError::usage(format!("there is no role `{name}`"));
            match near {
                Some(near) => error.hint(format!("did you mean `{near}`?")),
                None => error.hint(format!(
                    "there are {}; your own go to `.rehearsal/agents/NAME.yaml`",
                    known.join(", ")
                )),
            }
        }
        RoleError::Unreadable { .. } => CliError::of(Exit::Usage, &error),
    }
}

/// Why no model can be asked, and what to do about it.
pub(crate) fn choice_error(error: &ChoiceError) -> CliError {
    let told = CliError::of(Exit::Usage, error);
    match error {
        ChoiceError::NoName { .. } => told.hint("write `VENDOR:NAME`, such as `anthropic:claude-sonnet-4-5`"),
        ChoiceError::NoVendor => told.hint("set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY, or the address of your own server in ANTHROPIC_BASE_URL, OPENAI_BASE_URL or GOOGLE_GEMINI_BASE_URL"),
        ChoiceError::SeveralVendors { .. } => told.hint("say which: `--model anthropic:NAME`, `openai:NAME`, `responses:NAME` or `gemini:NAME`; or `model:` of the agent or of the role"),
        ChoiceError::Endpoint { .. } => told.hint("look at the vendor's variables"),
    }
}

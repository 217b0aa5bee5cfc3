//! Where work would be done, and where it would go.

use rehearsal_app::outlet::{ChosenForge, Destination};
use rehearsal_app::places;
use rehearsal_app::project::Project;
use rehearsal_core::config::Settings;

use super::Check;
use crate::error::CliError;

/// Looks, and makes nothing.
pub(super) async fn check(settings: &Settings, project: &Project, checks: &mut Vec<Check>) {
    checks.push(match places::worktrees(settings, project) {
        Ok(directory) => Check::ok("worktrees", directory.to_string()),
        Err(error) => Check::note(
            "worktrees",
            CliError::from(error).in_a_line(),
            "set `directory:` under `worktrees:`; `rehearsal work` needs a place",
        ),
    });
    let what = "only `rehearsal work` needs it; see `forge:` in the configuration";
    checks.push(match Destination::choose(settings, project).await {
        Ok(destination) => match &destination.forge {
            ChosenForge::GitHub { program, .. } if which::which(program).is_err() => Check::note(
                "forge",
                format!("{destination}, which was not found"),
                "install it from https://cli.github.com and run `gh auth login`, or set `kind: local` under `forge:`",
            ),
            _ => Check::ok("forge", destination.to_string()),
        },
        Err(error) => Check::note("forge", CliError::from(error).in_a_line(), what),
    });
}

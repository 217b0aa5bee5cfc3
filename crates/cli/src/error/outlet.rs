//! Why work has no place to be done or to go to, and what to do about it.

use rehearsal_app::outlet::OutletError;
use rehearsal_app::places::WorktreesError;
use rehearsal_forge::WorktreeError;

use super::CliError;
use crate::exit::Exit;

impl From<OutletError> for CliError {
    fn from(error: OutletError) -> Self {
        let this = Self::of(Exit::Git, &error);
        match error {
            OutletError::NoBaseBranch(_) => this.hint("set `base_branch:` in .rehearsal/config.yaml"),
            OutletError::UnknownRemote { .. } => {
                this.exiting(Exit::Usage).hint("`git remote -v` lists those that there are")
            }
            OutletError::NoRemote { .. } => this
                .exiting(Exit::Usage)
                .hint("`git remote add` makes one; `kind: local` under `forge:` needs none"),
            OutletError::UnknownHost { .. } => this
                .exiting(Exit::Forge)
                .hint("set `kind: local` under `forge:` in .rehearsal/config.yaml: work is merged into a repository on this machine")
                .hint("set `kind: github` if it is a GitHub of your own that `gh` is logged in to"),
            OutletError::NoGh { .. } => this
                .exiting(Exit::Forge)
                .hint("install it from https://cli.github.com and run `gh auth login`")
                .hint("set `kind: local` under `forge:` in .rehearsal/config.yaml to work without GitHub"),
            OutletError::NoBase { .. } => {
                this.hint("commit something first, or set `base_branch:` in .rehearsal/config.yaml")
            }
            OutletError::NoBaseThere { remote, base } => {
                this.hint(format!("`git push {remote} {base}` brings it there"))
            }
            OutletError::CheckedOut { .. } => this.hint(
                "use a bare repository as the remote (`git clone --bare`), or check out another branch there",
            ),
            OutletError::Remote(_) => this.hint("`git remote -v` shows where it points"),
            OutletError::Git(_) => this,
            OutletError::Project(error) => error.into(),
            OutletError::Io(error) => error.into(),
        }
    }
}

impl From<WorktreesError> for CliError {
    fn from(error: WorktreesError) -> Self {
        match error {
            WorktreesError::Git(error) => error.into(),
            WorktreesError::Project(error) => error.into(),
            WorktreesError::Worktree(error) => {
                let this = Self::of(Exit::Git, &error);
                match error {
                    WorktreeError::Inside { .. } => this
                        .hint("set `directory:` under `worktrees:` to a directory outside of the repository"),
                    _ => this,
                }
            }
        }
    }
}

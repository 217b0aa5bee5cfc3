//! Commits what the agent left uncommitted.

use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::Ordering;

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_core::{Delivery, Notice, RedVerdict, StepFailure};
use rehearsal_forge::LeftoversError;
use rehearsal_git::{Git, GitError, Repository};

use super::{StepContext, of_git, red};
use crate::worker::WorkerState;

impl StepContext<'_> {
    pub(super) async fn commit_leftovers(&self) -> Result<Delivery, StepFailure> {
        let message = format!("{}\n\nLeft uncommitted by the agent.", self.task.title);
        match self.work().commit_leftovers(&message).await {
            Ok(committed) => {
                if committed.is_some() {
                    self.state.note_skipped_hooks(self.worktree).await;
                }
                Ok(Delivery { head: Some(self.head().await?), ..self.delivery() })
            }
            Err(error @ LeftoversError::Unmerged { .. }) => Err(red(RedVerdict::Conflict, error.to_string())),
            Err(LeftoversError::Git(error)) => Err(of_git(&error)),
        }
    }
}

impl WorkerState {
    /// Says once that the commits which we make run no hooks and are not signed, if the repository wants either.
    pub(super) async fn note_skipped_hooks(&self, place: &Utf8Path) {
        if self.hooks_skipped.load(Ordering::SeqCst) {
            return;
        }
        // It is said for the user's information: where git has no answer, nothing depends on it.
        let Ok((hooks, signing)) = wanted_by(place).await else { return };
        if (!hooks.is_empty() || signing) && !self.hooks_skipped.swap(true, Ordering::SeqCst) {
            self.warn(Notice::HooksSkipped { hooks, signing });
        }
    }
}

/// The hooks of a commit that a repository has, and whether its commits are to be signed.
async fn wanted_by(place: &Utf8Path) -> Result<(Vec<String>, bool), GitError> {
    /// Those that `git commit` runs.
    const HOOKS: [&str; 4] = ["pre-commit", "prepare-commit-msg", "commit-msg", "post-commit"];
    let repository = Repository::around(place)?;
    let git = repository.git();
    let directory = match setting(&git, "core.hooksPath").await? {
        Some(path) => repository.root.join(path),
        None => repository.common_dir.join("hooks"),
    };
    let is_hook = |path: Utf8PathBuf| {
        path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    };
    let hooks = HOOKS.into_iter().filter(|hook| is_hook(directory.join(hook))).map(str::to_owned).collect();
    let signing = setting(&git, "commit.gpgSign").await?.is_some_and(|value| value != "false");
    Ok((hooks, signing))
}

/// What the user has set, and not we for our own calls.
async fn setting(git: &Git, name: &str) -> Result<Option<String>, GitError> {
    let kind = if name == "core.hooksPath" { "--type=path" } else { "--type=bool" };
    let said = git.ask(&["config", kind, "--show-scope", "--get-all", name]).await?;
    let text = String::from_utf8_lossy(&said.stdout);
    let values = text.lines().filter_map(|line| line.split_once('\t'));
    let mut of_user = values.filter(|(scope, _)| *scope != "command");
    Ok(of_user.next_back().map(|(_, value)| value.to_owned()))
}

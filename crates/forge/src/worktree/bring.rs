//! A task's place, when its newest work was done in another one.

use super::admin::Admin;
use super::prepare::Taken;
use super::slot::{Owner, Record, Slot};
use super::unsaved::look_at;
use super::{Origin, Worktree, WorktreeError, Worktrees};
use rehearsal_git::{Git, GitError, Oid};

impl Worktree {
    /// Whether a commit was ever checked out here, or what is here stands on it.
    pub async fn has_seen(&self, commit: &Oid) -> Result<bool, GitError> {
        if self.head == *commit
            || Admin::of(&self.path).is_some_and(|admin| admin.has_logged(commit.as_str()))
        {
            return Ok(true);
        }
        let git = Git::at(&self.path);
        // One that is not in this repository was made elsewhere.
        Ok(git.commit(commit.as_str()).await.is_ok() && git.is_ancestor(commit, &self.head).await?)
    }
}

impl Worktrees {
    /// Moves a place to a commit, which is the task's newest work. Whatever is here and nowhere else is set aside. For the
    /// caller to occupy the place.
    pub async fn bring(&self, worktree: &Worktree, commit: &Oid) -> Result<Worktree, WorktreeError> {
        let slot = Slot::new(&self.under, worktree.slot);
        let cannot = |source| GitError::Io { what: format!("move `{}`", worktree.path), source };
        let Some(busy) = slot.lock().await.map_err(cannot)? else {
            return Err(WorktreeError::Busy { task: worktree.task.clone() });
        };
        if let Some(admin) = Admin::of(&worktree.path) {
            let look = look_at(&worktree.path, &admin, std::slice::from_ref(commit)).await?;
            if look.unsaved.is_empty() {
                // A rebase that was begun would lead back.
                admin.forget_work().map_err(cannot)?;
                let git = Git::at(&worktree.path).holding(busy.file());
                git.run(&["checkout", "--quiet", "--force", "--detach", commit.as_str()]).await?;
                let origin = match &worktree.origin {
                    Origin::Reused => Origin::Brought { set_aside: None },
                    origin => origin.clone(),
                };
                return Ok(Worktree { head: commit.clone(), origin, ..worktree.clone() });
            }
        }
        let repository = self.repository.lock().await?;
        let set_aside = self.set_aside(&slot)?;
        let owner = Owner::new(&worktree.task, worktree.fence);
        // From here on there is nothing left to keep in the slot.
        let now = Record::Preparing { owner: owner.clone(), from: Some(commit.clone()) };
        slot.write(&now).map_err(cannot)?;
        let taken = Taken { slot, owner, was: Some(now), busy };
        self.anew(&taken, commit, Origin::Brought { set_aside }, repository).await
    }
}

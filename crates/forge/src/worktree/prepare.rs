//! From a claim to a place to work.

use camino::Utf8PathBuf;
use rehearsal_core::{BoxFuture, Fence, TaskId};
use tokio::time::Instant;

use super::admin::{Admin, remove_tree};
use super::include::copy_included;
use super::print::print_of;
use super::setup::{end_what_is_left, run_setup};
use super::slot::{Owner, Record, Slot};
use super::spotless::is_spotless;
use super::{Origin, Worktree, WorktreeError, Worktrees};
use crate::lock::FileLock;
use crate::policy::{LOCK_PAUSE, REPOSITORY_LOCK_LIMIT};
use rehearsal_git::{Git, GitError, Oid};

/// A slot that is ours to work on, and what it was before.
pub(super) struct Taken {
    pub(super) slot: Slot,
    pub(super) owner: Owner,
    pub(super) was: Option<Record>,
    /// Around all that happens in the slot until it is ready.
    pub(super) busy: FileLock,
}

impl Taken {
    /// Whether the files are those that were found to be clean when the last task gave them back.
    fn is_untouched(&self, admin: &Admin) -> bool {
        let Some(Record::Free { print: Some(print) }) = &self.was else { return false };
        print_of(&self.slot.path(), admin).is_ok_and(|now| now == *print)
    }
}

impl Worktrees {
    /// The task's worktree: the one of its last attempt if there is one, else a clean one at the base. Whatever a
    /// crash left is healed. Safe beside other processes that do the same.
    pub fn prepare<'a>(
        &'a self,
        task: &'a TaskId,
        fence: Fence,
        base: &'a str,
    ) -> BoxFuture<'a, Result<Worktree, WorktreeError>> {
        Box::pin(async move {
            self.repository.heal().await;
            let base = self.repository.git().commit(base).await?;
            let (taken, repository) = self.take(task, fence).await?;
            if matches!(taken.was, Some(Record::Preparing { .. })) {
                end_what_is_left(&taken.slot.path());
            }
            let whole = Admin::of(&taken.slot.path());
            match (&taken.was, whole) {
                (Some(Record::Ready { .. }), Some(admin)) => {
                    drop(repository);
                    self.again(&taken, &admin).await
                }
                (Some(Record::Ready { .. }), None) => self.rebuild(&taken, &base, repository).await,
                (Some(Record::Preparing { from: Some(from), .. }), _) => {
                    self.anew(&taken, from, Origin::Rebuilt { is_own: true, set_aside: None }, repository)
                        .await
                }
                (Some(Record::Free { .. }), Some(admin)) => {
                    drop(repository);
                    self.warm(&taken, &admin, &base).await
                }
                _ => self.anew(&taken, &base, Origin::Fresh, repository).await,
            }
        })
    }

    /// Finds a slot and writes down whose it is, before anything is done to it. The lock around what git does not do
    /// side by side comes with it.
    async fn take(&self, task: &TaskId, fence: Fence) -> Result<(Taken, FileLock), WorktreeError> {
        let deadline = Instant::now() + REPOSITORY_LOCK_LIMIT;
        loop {
            let repository = self.repository.lock().await?;
            let (slot, was) = self.choose(task, fence)?;
            let cannot = |source| GitError::Io { what: format!("take `{}`", slot.path()), source };
            if let Some(busy) = slot.try_lock().map_err(cannot)? {
                let owner = Owner::new(task, fence);
                slot.write(&next(was.as_ref(), owner.clone())).map_err(cannot)?;
                return Ok((Taken { slot, owner, was, busy }, repository));
            }
            drop(repository);
            if Instant::now() >= deadline {
                return Err(WorktreeError::Busy { task: task.clone() });
            }
            tokio::time::sleep(LOCK_PAUSE).await;
        }
    }

    /// The task's own slot, else a warm one, else a new one.
    fn choose(&self, task: &TaskId, fence: Fence) -> Result<(Slot, Option<Record>), WorktreeError> {
        if let Some((slot, record)) = self.slot_of(task)? {
            return match record.owner() {
                Some(owner) if owner.fence > fence => {
                    let (task, held) = (task.clone(), owner.fence);
                    Err(WorktreeError::Superseded { task, held, asked: fence })
                }
                _ => Ok((slot, Some(record))),
            };
        }
        let slots = self.slots()?;
        let usable = |(slot, record): &(Slot, Option<Record>)| {
            match record {
                Some(Record::Free { .. }) => true,
                // Whoever clears it holds its lock; otherwise the clearing was cut short.
                Some(Record::Recycling) => slot.try_lock().is_ok_and(|lock| lock.is_some()),
                _ => false,
            }
        };
        if let Some((slot, record)) = slots.into_iter().find(usable) {
            return Ok((slot, record));
        }
        let untaken = (0..=u32::MAX).map(|number| Slot::new(&self.under, number)).find(Slot::is_untaken);
        match untaken {
            Some(slot) => Ok((slot, None)),
            None => Err(WorktreeError::Busy { task: task.clone() }),
        }
    }

    /// The place of the last attempt, with all that is in it.
    async fn again(&self, taken: &Taken, admin: &Admin) -> Result<Worktree, WorktreeError> {
        let path = taken.slot.path();
        admin.drop_stale_locks(&path);
        lock(admin, &taken.owner)?;
        let head = Git::at(&path).commit("HEAD").await?;
        Ok(worktree(&taken.slot, &taken.owner, head, Origin::Reused))
    }

    /// Work was done here, and git has lost its way to it. Its files are set aside, its commits checked out again.
    async fn rebuild(
        &self,
        taken: &Taken,
        base: &Oid,
        repository: FileLock,
    ) -> Result<Worktree, WorktreeError> {
        let (slot, path) = (&taken.slot, taken.slot.path());
        let git = self.repository.git();
        let mut from = Admin::remains_of(&path, &self.repository).iter().find_map(Admin::detached_head);
        if let Some(head) = &from
            && git.commit(head.as_str()).await.is_err()
        {
            from = None;
        }
        let set_aside = self.set_aside(slot)?;
        // Only now is there nothing left to keep in the slot.
        let now = Record::Preparing { owner: taken.owner.clone(), from: from.clone() };
        slot.write(&now).map_err(GitError::io(format!("take `{path}`")))?;
        let origin = Origin::Rebuilt { is_own: from.is_some(), set_aside };
        self.anew(taken, from.as_ref().unwrap_or(base), origin, repository).await
    }

    /// Moves what is in a slot's place out of the way, if it is more than nothing.
    pub(super) fn set_aside(&self, slot: &Slot) -> Result<Option<Utf8PathBuf>, GitError> {
        let path = slot.path();
        let files = path.read_dir_utf8().into_iter().flatten().flatten();
        if files.filter(|entry| entry.file_name() != ".git").count() == 0 {
            return Ok(None);
        }
        let aside = self.under.join(format!("set-aside-{}-{}", slot.number, uuid::Uuid::now_v7()));
        fs_err::rename(&path, &aside).map_err(GitError::io(format!("move `{path}` aside")))?;
        Ok(Some(aside))
    }

    /// A clean place that another task left.
    async fn warm(&self, taken: &Taken, admin: &Admin, base: &Oid) -> Result<Worktree, WorktreeError> {
        match self.freshen(taken, admin, base).await {
            Ok(()) => self.furnish(&taken.slot, &taken.owner, base, Origin::Warm).await,
            // It is not what it should be: there is nothing in it to lose.
            Err(_) => self.anew(taken, base, Origin::Fresh, self.repository.lock().await?).await,
        }
    }

    /// Moves a clean place to the base. It was found clean when it was left; whatever wrote to it since is undone.
    async fn freshen(&self, taken: &Taken, admin: &Admin, base: &Oid) -> Result<(), GitError> {
        let path = taken.slot.path();
        let git = Git::at(&path).holding(taken.busy.file());
        admin.drop_stale_locks(&path);
        lock(admin, &taken.owner)?;
        // If it stands there already it only has to be seen that nobody was in it.
        let is_there = admin.detached_head().as_ref() == Some(base);
        if is_there && (taken.is_untouched(admin) || is_spotless(&git).await?) {
            return Ok(());
        }
        git.run(&["reset", "--hard", "--quiet", base.as_str()]).await?;
        if !git.run(&["ls-files", "-z", "--others", "--directory"]).await?.is_empty() {
            git.run(&["clean", "-ffdxq"]).await?;
        }
        Ok(())
    }

    /// A new checkout, in place of whatever a crash left.
    pub(super) async fn anew(
        &self,
        taken: &Taken,
        base: &Oid,
        origin: Origin,
        repository: FileLock,
    ) -> Result<Worktree, WorktreeError> {
        let (slot, owner) = (&taken.slot, &taken.owner);
        self.sweep(slot)?;
        self.add(slot, owner, base, &repository).await?;
        drop(repository);
        let git = Git::at(slot.path()).holding(taken.busy.file());
        git.run(&["reset", "--hard", "--quiet", base.as_str()]).await?;
        self.furnish(slot, owner, base, origin).await
    }

    /// Removes a slot's directory and all that git knows of it. The directory first: an entry without a directory
    /// still says that it was ours. For the caller to know that nothing in it is worth keeping, and to hold the lock.
    pub(super) fn sweep(&self, slot: &Slot) -> Result<(), GitError> {
        let path = slot.path();
        remove_tree(&path).map_err(GitError::io(format!("remove `{path}`")))?;
        for admin in Admin::remains_of(&path, &self.repository) {
            remove_tree(&admin.dir).map_err(GitError::io(format!("remove `{}`", admin.dir)))?;
        }
        Ok(())
    }

    async fn add(
        &self,
        slot: &Slot,
        owner: &Owner,
        base: &Oid,
        repository: &FileLock,
    ) -> Result<(), GitError> {
        let git = self.repository.git().holding(repository.file());
        let (path, reason) = (slot.path(), owner.reason());
        let args = ["worktree", "add", "--no-checkout", "--detach", "--lock", "--reason", &reason];
        let args = [&args[..], &["--", path.as_str(), base.as_str()]].concat();
        git.run(&args).await.map(drop)
    }

    /// What a checkout needs beyond its commit; then it is ready.
    async fn furnish(
        &self,
        slot: &Slot,
        owner: &Owner,
        base: &Oid,
        origin: Origin,
    ) -> Result<Worktree, WorktreeError> {
        let worktree = worktree(slot, owner, base.clone(), origin);
        copy_included(&self.repository.root, &worktree.path).await?;
        if let Some(setup) = &self.settings.setup {
            run_setup(setup, &worktree.path, &worktree.environment()).await?;
        }
        let cannot = GitError::io(format!("mark `{}` as ready", worktree.path));
        slot.write(&Record::Ready { owner: owner.clone() }).map_err(cannot)?;
        Ok(worktree)
    }
}

/// What a slot's record becomes when it is taken: what an earlier attempt did stays precious.
fn next(was: Option<&Record>, owner: Owner) -> Record {
    match was {
        Some(Record::Ready { .. }) => Record::Ready { owner },
        Some(Record::Preparing { from, .. }) => Record::Preparing { owner, from: from.clone() },
        _ => Record::Preparing { owner, from: None },
    }
}

fn lock(admin: &Admin, owner: &Owner) -> Result<(), GitError> {
    admin.lock(&owner.reason()).map_err(GitError::io(format!("lock `{}`", admin.dir)))
}

fn worktree(slot: &Slot, owner: &Owner, head: Oid, origin: Origin) -> Worktree {
    let (task, fence) = (owner.task.clone(), owner.fence);
    Worktree { path: slot.path(), task, fence, slot: slot.number, head, origin }
}

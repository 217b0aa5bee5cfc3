//! A finished worktree is made clean for the next task, or removed. Never while it has work that is nowhere else.

use rehearsal_core::{BoxFuture, Fence, TaskId};

use super::admin::Admin;
use super::print::print_of;
use super::slot::{Record, Slot};
use super::spotless::{self, hides_something};
use super::unsaved::{Look, Unsaved, look_at};
use super::{WorktreeError, Worktrees};
use crate::branch::{LeftoversError, Work};
use crate::lock::FileLock;
use rehearsal_git::{Git, GitError, Oid};

/// What became of a worktree that was given back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Released {
    /// There was none.
    Nothing,
    /// It waits, clean, for its next task.
    Warm {
        /// A branch that was checked out in it, and is still there.
        branch: Option<String>,
    },
    /// It is gone.
    Removed {
        /// A branch that was checked out in it, and is still there.
        branch: Option<String>,
    },
}

/// Where work is kept that was done in vain, and what it is called.
const LEFT: &str = "refs/rehearsal/left";
const LEFT_MESSAGE: &str = "Left uncommitted by an attempt that came to nothing";

impl Worktrees {
    /// Gives a task's worktree back. Refused while it has work that is nowhere else; commits in `saved` are known to
    /// be elsewhere, such as on a branch that was merged and deleted.
    pub fn release<'a>(
        &'a self,
        task: &'a TaskId,
        fence: Fence,
        saved: &'a [Oid],
    ) -> BoxFuture<'a, Result<Released, WorktreeError>> {
        Box::pin(async move {
            self.repository.heal().await;
            let Some((slot, record)) = self.slot_of(task)? else {
                return Ok(Released::Nothing);
            };
            match record.owner() {
                Some(owner) if owner.fence > fence => {
                    let (task, held) = (task.clone(), owner.fence);
                    return Err(WorktreeError::Superseded { task, held, asked: fence });
                }
                _ => {}
            }
            let cannot = |source| GitError::Io { what: format!("clear `{}`", slot.path()), source };
            let Some(busy) = slot.lock().await.map_err(cannot)? else {
                return Err(WorktreeError::Busy { task: task.clone() });
            };
            // Someone may have been faster between the look and the lock.
            if slot.record().map_err(cannot)? != Some(record.clone()) {
                return Err(WorktreeError::Busy { task: task.clone() });
            }
            let admin = Admin::of(&slot.path());
            let look = self.look_into(&slot, &record, saved).await;
            if !look.unsaved.is_empty() {
                return Err(WorktreeError::Unsaved { path: slot.path(), unsaved: look.unsaved });
            }
            slot.write(&Record::Recycling).map_err(cannot)?;
            let branch = admin.as_ref().and_then(Admin::branch);
            let warm = self.others_kept(&slot)? < self.settings.keep_warm;
            if let Some(admin) = admin.filter(|_| warm)
                && matches!(self.clean(&slot, &admin, look.is_spotless, &busy).await, Ok(true))
            {
                let print = print_of(&slot.path(), &admin).ok();
                slot.write(&Record::Free { print }).map_err(cannot)?;
                return Ok(Released::Warm { branch });
            }
            self.remove(&slot).await?;
            Ok(Released::Removed { branch })
        })
    }

    /// Keeps what only a task's worktree has under a reference of the repository, uncommitted files too, if `out` was made in
    /// another place: then this one can be given back. The reference, and the commit.
    pub async fn keep(&self, task: &TaskId, out: &Oid) -> Result<Option<(String, Oid)>, WorktreeError> {
        let Some((slot, Record::Ready { .. })) = self.slot_of(task)? else { return Ok(None) };
        let path = slot.path();
        if Admin::of(&path).is_none_or(|admin| admin.has_logged(out.as_str())) {
            return Ok(None);
        }
        let Some(_busy) = slot.lock().await.map_err(GitError::io(format!("keep `{path}`")))? else {
            return Err(WorktreeError::Busy { task: task.clone() });
        };
        let work = Work::at(&path);
        let head = match work.commit_leftovers(LEFT_MESSAGE).await {
            Ok(Some(head)) => head,
            Ok(None) => work.head().await?,
            Err(LeftoversError::Git(error)) => return Err(error.into()),
            // Half of a merge is nothing that could be kept as it is.
            Err(LeftoversError::Unmerged { .. }) => return Ok(None),
        };
        let reference = format!("{LEFT}/{task}/{head:.10}");
        self.repository.git().run(&["update-ref", &reference, head.as_str()]).await?;
        Ok(Some((reference, head)))
    }

    /// How many others are kept warm, or are just being cleared for it: of two at the same time each counts the other.
    fn others_kept(&self, slot: &Slot) -> Result<usize, GitError> {
        let is_kept =
            |record: &Option<Record>| matches!(record, Some(Record::Free { .. } | Record::Recycling));
        let others = self.slots()?.into_iter().filter(|(other, _)| other.path() != slot.path());
        Ok(others.filter(|(_, record)| is_kept(record)).count())
    }

    /// What is in a slot, and would be lost with it.
    pub(super) async fn look_into(&self, slot: &Slot, record: &Record, saved: &[Oid]) -> Look {
        if !matches!(record, Record::Ready { .. }) {
            return Look::default();
        }
        let path = slot.path();
        let look = match Admin::of(&path) {
            Some(admin) => look_at(&path, &admin, saved).await,
            None => {
                let unsaved = self.unsaved_in_remains(slot, saved).await;
                unsaved.map(|unsaved| Look { unsaved, is_spotless: false })
            }
        };
        look.unwrap_or_else(|error| {
            let unsaved = vec![Unsaved::Unreadable { reason: error.to_string() }];
            Look { unsaved, is_spotless: false }
        })
    }

    /// git has lost its way to the worktree: files without an entry may be work, and so may the commit of an entry
    /// without files.
    async fn unsaved_in_remains(&self, slot: &Slot, saved: &[Oid]) -> Result<Vec<Unsaved>, GitError> {
        let path = slot.path();
        let files = path.read_dir_utf8().into_iter().flatten().flatten();
        if files.filter(|entry| entry.file_name() != ".git").count() > 0 {
            let reason = "git has lost its entry".to_owned();
            return Ok(vec![Unsaved::Unreadable { reason }]);
        }
        let remains = Admin::remains_of(&path, &self.repository);
        let Some(head) = remains.iter().find_map(Admin::detached_head) else {
            return Ok(Vec::new());
        };
        let saved: Vec<&str> = saved.iter().map(Oid::as_str).collect();
        let args = [&["rev-list", "--count", head.as_str(), "--not", "--glob=refs/*"][..], &saved].concat();
        let commits = self.repository.git().line(&args).await?.parse().unwrap_or(0);
        Ok(if commits > 0 { vec![Unsaved::Unpushed { commits, head }] } else { Vec::new() })
    }

    /// Leaves nothing of the task: no file, no begun rebase, no reference, no log. False if something resists.
    async fn clean(
        &self,
        slot: &Slot,
        admin: &Admin,
        is_spotless: bool,
        busy: &FileLock,
    ) -> Result<bool, WorktreeError> {
        let path = slot.path();
        let git = Git::at(&path).holding(busy.file());
        admin.drop_stale_locks(&path);
        let forget = || admin.forget_work().map_err(GitError::io(format!("clear `{}`", admin.dir)));
        if admin.detached_head().is_none() {
            // Off any branch first: a reset would move it.
            let head = git.commit("HEAD").await?;
            git.run(&["update-ref", "--no-deref", "HEAD", head.as_str()]).await?;
        }
        forget()?;
        if hides_something(&git).await? {
            return Ok(false);
        }
        if !is_spotless {
            git.run(&["reset", "--hard", "--quiet"]).await?;
            git.run(&["clean", "-ffdxq"]).await?;
            // The reset wrote a log and an ORIG_HEAD of its own.
            forget()?;
        }
        admin.lock("rehearsal: kept for the next task").map_err(GitError::io("lock the worktree"))?;
        Ok(is_spotless || spotless::is_spotless(&git).await?)
    }

    /// Removes a slot that holds nothing of worth. Its number is free again.
    pub(super) async fn remove(&self, slot: &Slot) -> Result<(), WorktreeError> {
        let _repository = self.repository.lock().await?;
        self.sweep(slot)?;
        let cannot = GitError::io(format!("forget `{}`", slot.path()));
        Ok(slot.forget().map_err(cannot)?)
    }
}

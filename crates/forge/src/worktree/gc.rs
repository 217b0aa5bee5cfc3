//! Clearing up: which worktrees nobody needs any more, and which must stay because of what is in them.

use std::collections::BTreeSet;

use camino::Utf8PathBuf;
use rehearsal_core::{BoxFuture, TaskId};

use super::slot::{Record, Slot};
use super::{Unsaved, WorktreeError, Worktrees};
use rehearsal_git::{GitError, Oid};

/// Whether to do it or only to say what would be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GcMode {
    /// Only say.
    DryRun,
    /// Do.
    Delete,
}

/// What is decided for one worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GcEntry {
    /// Where it is.
    pub path: Utf8PathBuf,
    /// Whose it is, if anyone's.
    pub task: Option<TaskId>,
    /// What happens to it.
    pub collected: Collected,
}

/// What happens to a worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Collected {
    /// It is removed, or would be.
    Removed,
    /// Its task may still need it.
    InUse,
    /// Another process is busy with it.
    Busy,
    /// It has work that is nowhere else.
    Kept(Vec<Unsaved>),
}

impl Worktrees {
    /// Removes the worktrees that no task in `live` needs, warm ones too, unless they have work that is nowhere else.
    /// The commits in `saved` are known to be elsewhere, such as on a branch of the remote.
    pub fn gc<'a>(
        &'a self,
        live: &'a BTreeSet<TaskId>,
        saved: &'a [Oid],
        mode: GcMode,
    ) -> BoxFuture<'a, Result<Vec<GcEntry>, WorktreeError>> {
        Box::pin(async move {
            self.repository.heal().await;
            let mut entries = Vec::new();
            for (slot, record) in self.slots()? {
                let task = record.as_ref().and_then(Record::owner).map(|owner| owner.task.clone());
                let collected = match record {
                    Some(record) => self.collect(&slot, &record, live, saved, mode).await?,
                    None => {
                        Collected::Kept(vec![Unsaved::Unreadable { reason: "its record is broken".into() }])
                    }
                };
                entries.push(GcEntry { path: slot.path(), task, collected });
            }
            Ok(entries)
        })
    }

    async fn collect(
        &self,
        slot: &Slot,
        record: &Record,
        live: &BTreeSet<TaskId>,
        saved: &[Oid],
        mode: GcMode,
    ) -> Result<Collected, WorktreeError> {
        if record.owner().is_some_and(|owner| live.contains(&owner.task)) {
            return Ok(Collected::InUse);
        }
        let cannot = |source| GitError::Io { what: format!("clear `{}`", slot.path()), source };
        let Some(_busy) = slot.lock().await.map_err(cannot)? else {
            return Ok(Collected::Busy);
        };
        if slot.record().map_err(cannot)?.as_ref() != Some(record) {
            return Ok(Collected::Busy);
        }
        let look = self.look_into(slot, record, saved).await;
        if !look.unsaved.is_empty() {
            return Ok(Collected::Kept(look.unsaved));
        }
        if mode == GcMode::Delete {
            slot.write(&Record::Recycling).map_err(cannot)?;
            self.remove(slot).await?;
        }
        Ok(Collected::Removed)
    }
}

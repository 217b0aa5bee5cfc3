//! A worktree per task: outside the repository, at the base's tip, kept for the next attempt, and used again by the
//! next task.
//!
//! Worktrees are numbered slots under one directory. A slot's record is written before git is asked for anything, and
//! says whether what is in the slot is worth keeping. So whatever a crash leaves, the next [`Worktrees::prepare`]
//! knows what it may sweep away: a slot in which no agent was ever at work, or whose work is known to be elsewhere.
//! Everything else is mended around the work.

mod admin;
mod bring;
mod gc;
mod include;
mod prepare;
mod print;
mod recycle;
mod setup;
mod slot;
mod spotless;
mod unsaved;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_core::{Fence, TaskId};

use crate::lock::FileLock;
use crate::policy::{HANDOVER_LIMIT, SLOT_LOCK_LIMIT};
use crate::ports::PortBlock;
use crate::repository::Repository;
use rehearsal_git::{GitError, Oid};
use slot::Slot;

pub use gc::{Collected, GcEntry, GcMode};
pub use recycle::Released;
pub use unsaved::Unsaved;

/// The worktrees of one repository.
#[derive(Debug)]
pub struct Worktrees {
    repository: Repository,
    under: Utf8PathBuf,
    settings: WorktreeSettings,
    occupied: Arc<Mutex<BTreeSet<u32>>>,
}

/// What a user can say about worktrees.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorktreeSettings {
    /// The command that makes a fresh checkout ready for work.
    pub setup: Option<String>,
    /// How many finished worktrees are kept for the next tasks.
    pub keep_warm: usize,
}

/// A task's place to work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worktree {
    /// Where it is.
    pub path: Utf8PathBuf,
    /// Whose it is.
    pub task: TaskId,
    /// In which attempt.
    pub fence: Fence,
    /// The number of the place; no two worktrees of a repository have the same at one time.
    pub slot: u32,
    /// The commit that is checked out.
    pub head: Oid,
    /// How it came about.
    pub origin: Origin,
}

/// A worktree that is being worked in.
#[derive(Debug)]
pub struct Occupied {
    slot: u32,
    /// All that this process works in.
    ours: Arc<Mutex<BTreeSet<u32>>>,
    _lock: FileLock,
}

impl Drop for Occupied {
    fn drop(&mut self) {
        locked(&self.ours).remove(&self.slot);
    }
}

/// How a worktree came about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Checked out anew.
    Fresh,
    /// Left clean by another task.
    Warm,
    /// As the task's last attempt left it.
    Reused,
    /// Moved to what the task came to in another place.
    Brought {
        /// Where the files are that were here, and nowhere else.
        set_aside: Option<Utf8PathBuf>,
    },
    /// Its directory was gone or broken: checked out anew at the last commit that is known.
    Rebuilt {
        /// Whether that is its own; otherwise it begins at the base again.
        is_own: bool,
        /// Where the files are that were found in its place.
        set_aside: Option<Utf8PathBuf>,
    },
}

/// Why a worktree cannot be had or given back.
#[derive(Debug, thiserror::Error)]
pub enum WorktreeError {
    /// git could not do it.
    #[error(transparent)]
    Git(#[from] GitError),
    /// Someone with a newer claim has the worktree.
    #[error("the worktree of task {task} is held with fence {held}, and {asked} is older")]
    Superseded {
        /// Which task.
        task: TaskId,
        /// The fence that counts.
        held: Fence,
        /// The fence that was named.
        asked: Fence,
    },
    /// Another process prepares or clears the same worktree, and does not come to an end.
    #[error("someone else is still busy with the worktree of task {task}")]
    Busy {
        /// Which task.
        task: TaskId,
    },
    /// It would be lost.
    #[error("the worktree `{path}` has work that is nowhere else: {}", list(.unsaved))]
    Unsaved {
        /// Where.
        path: Utf8PathBuf,
        /// What.
        unsaved: Vec<Unsaved>,
    },
    /// The setup command failed.
    #[error("the setup command `{command}` failed: {said}")]
    Setup {
        /// The command.
        command: String,
        /// Its end.
        said: String,
    },
    /// The patterns match too many or too large files.
    #[error("`.worktreeinclude` names more than can be copied into each worktree, beginning with `{file}`")]
    IncludesTooMuch {
        /// The first file that did not fit.
        file: String,
    },
    /// Worktrees in the repository would be seen by its own tools.
    #[error("worktrees cannot be kept in `{under}`, inside of the repository `{root}`")]
    Inside {
        /// The directory.
        under: Utf8PathBuf,
        /// The repository.
        root: Utf8PathBuf,
    },
}

fn list(unsaved: &[Unsaved]) -> String {
    unsaved.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

impl Worktrees {
    /// The worktrees of the repository around a directory, kept under another one that is for nothing else.
    pub fn open(
        repo: &Utf8Path,
        under: &Utf8Path,
        settings: WorktreeSettings,
    ) -> Result<Self, WorktreeError> {
        let repository = Repository::around(repo)?;
        let cannot = |source| GitError::Io { what: format!("use the directory `{under}`"), source };
        fs_err::create_dir_all(under).map_err(cannot)?;
        // git writes down paths without links; we compare with those.
        let under = under.canonicalize_utf8().map_err(cannot)?;
        if under.starts_with(&repository.root) {
            return Err(WorktreeError::Inside { under, root: repository.root });
        }
        Ok(Self { repository, under, settings, occupied: Arc::default() })
    }

    /// The repository's main checkout.
    pub fn root(&self) -> &Utf8Path {
        &self.repository.root
    }

    /// Keeps others out of a worktree for as long as the answer lives. A claim that was taken away may have an agent that
    /// does not know it yet: two never work in one place.
    pub async fn occupy(&self, worktree: &Worktree) -> Result<Occupied, WorktreeError> {
        let slot = worktree.slot;
        let is_ours = locked(&self.occupied).contains(&slot);
        let limit = if is_ours { HANDOVER_LIMIT } else { SLOT_LOCK_LIMIT };
        let cannot = GitError::io(format!("occupy `{}`", worktree.path));
        match Slot::new(&self.under, slot).occupy(limit).await.map_err(cannot)? {
            Some(lock) => {
                locked(&self.occupied).insert(slot);
                Ok(Occupied { slot, ours: Arc::clone(&self.occupied), _lock: lock })
            }
            None => Err(WorktreeError::Busy { task: worktree.task.clone() }),
        }
    }

    /// The place of a claim whose agent is at work there, left as it is. `head` is what was checked out when it began.
    pub fn at_work(&self, task: &TaskId, fence: Fence, head: Oid) -> Result<Option<Worktree>, WorktreeError> {
        let found = self.slot_of(task)?;
        let is_of_claim = |record: &slot::Record| {
            let is_owner = record.owner().is_some_and(|owner| owner.fence == fence);
            matches!(record, slot::Record::Ready { .. }) && is_owner
        };
        Ok(found.filter(|(_, record)| is_of_claim(record)).map(|(slot, _)| Worktree {
            path: slot.path(),
            task: task.clone(),
            fence,
            slot: slot.number,
            head,
            origin: Origin::Reused,
        }))
    }

    /// Whether a task has a place already.
    pub fn has(&self, task: &TaskId) -> bool {
        matches!(self.slot_of(task), Ok(Some((_, slot::Record::Ready { .. }))))
    }

    /// The tasks that have a worktree.
    pub fn owners(&self) -> Vec<TaskId> {
        let slots = self.slots().unwrap_or_default().into_iter();
        slots.filter_map(|(_, record)| record?.owner().map(|owner| owner.task.clone())).collect()
    }

    /// The slots, each with its record. One that cannot be read belongs to nobody and is left alone.
    fn slots(&self) -> Result<Vec<(Slot, Option<slot::Record>)>, GitError> {
        let cannot = GitError::io(format!("list the worktrees in `{}`", self.under));
        let slots = Slot::all(&self.under).map_err(cannot)?;
        Ok(slots.into_iter().map(|slot| (slot.clone(), slot.record().ok().flatten())).collect())
    }

    fn slot_of(&self, task: &TaskId) -> Result<Option<(Slot, slot::Record)>, GitError> {
        let mut with_owner = self.slots()?.into_iter().filter_map(|(slot, record)| Some((slot, record?)));
        Ok(with_owner.find(|(_, record)| record.owner().is_some_and(|owner| owner.task == *task)))
    }
}

impl Worktree {
    /// The ports that are its own.
    pub fn ports(&self) -> PortBlock {
        PortBlock::of_slot(self.slot)
    }

    /// What a program in it is told by its environment.
    pub fn environment(&self) -> Vec<(String, String)> {
        let ports = self.ports().ports();
        [
            ("TASK_ID", self.task.to_string()),
            ("TASK_WORKTREE", self.path.to_string()),
            ("REHEARSAL_SLOT", self.slot.to_string()),
            ("REHEARSAL_PORT", ports.start.to_string()),
            ("REHEARSAL_PORT_LAST", (ports.end - 1).to_string()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }
}

fn locked(numbers: &Mutex<BTreeSet<u32>>) -> MutexGuard<'_, BTreeSet<u32>> {
    // A set of numbers is whole even if someone panicked beside it.
    numbers.lock().unwrap_or_else(PoisonError::into_inner)
}

//! A slot: a directory with a number, which one task after another has as its worktree.

use std::io;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_core::{Fence, TaskId};
use serde::{Deserialize, Serialize};

use crate::lock::FileLock;
use crate::policy::SLOT_LOCK_LIMIT;
use rehearsal_git::Oid;

const PREFIX: &str = "rehearsal-";

/// One of the numbered places under the directory of worktrees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) number: u32,
    under: Utf8PathBuf,
}

/// What a slot is for now. On disk before git is asked for anything, so that there is no worktree without a
/// record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "stage", rename_all = "snake_case")]
pub(crate) enum Record {
    /// Being made: no agent was ever in it, and nothing in it is worth keeping.
    Preparing {
        owner: Owner,
        /// The commit to begin with, where it is the only trace of an earlier attempt.
        from: Option<Oid>,
    },
    /// An agent may have worked in it: what is there is precious.
    Ready { owner: Owner },
    /// All that was in it is known to be kept elsewhere.
    Recycling,
    /// Clean, and waiting for its next task.
    Free {
        /// The files as they were when they were found to be clean.
        #[serde(default)]
        print: Option<String>,
    },
}

/// Whose a slot is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Owner {
    pub(crate) task: TaskId,
    pub(crate) fence: Fence,
    pub(crate) boot: String,
}

impl Owner {
    pub(crate) fn new(task: &TaskId, fence: Fence) -> Self {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        Self { task: task.clone(), fence, boot: boot.trim().to_owned() }
    }

    /// Why git must leave the worktree alone.
    pub(crate) fn reason(&self) -> String {
        format!("rehearsal {}/{} {}", self.task, self.fence, self.boot)
    }
}

impl Record {
    pub(crate) fn owner(&self) -> Option<&Owner> {
        match self {
            Self::Preparing { owner, .. } | Self::Ready { owner } => Some(owner),
            Self::Recycling | Self::Free { .. } => None,
        }
    }
}

impl Slot {
    /// The name has a task's number and no task's name: the path outlives the task, and caches with it.
    pub(crate) fn new(under: &Utf8Path, number: u32) -> Self {
        Self { number, under: under.to_owned() }
    }

    pub(crate) fn path(&self) -> Utf8PathBuf {
        self.under.join(format!("{PREFIX}{}", self.number))
    }

    fn record_path(&self) -> Utf8PathBuf {
        self.under.join(format!("{PREFIX}{}.json", self.number))
    }

    /// Held by whoever prepares or clears the slot. None if someone does.
    pub(crate) fn try_lock(&self) -> io::Result<Option<FileLock>> {
        FileLock::try_take(&self.lock_path())
    }

    /// Waits for that a little: a process that is just being started has our open files for a moment.
    pub(crate) async fn lock(&self) -> io::Result<Option<FileLock>> {
        FileLock::take(&self.lock_path(), SLOT_LOCK_LIMIT).await
    }

    /// Held by whoever lets an agent work in the slot.
    pub(crate) async fn occupy(&self, limit: Duration) -> io::Result<Option<FileLock>> {
        FileLock::take(&self.under.join(format!("{PREFIX}{}.occupied", self.number)), limit).await
    }

    fn lock_path(&self) -> Utf8PathBuf {
        self.under.join(format!("{PREFIX}{}.lock", self.number))
    }

    pub(crate) fn record(&self) -> io::Result<Option<Record>> {
        match fs_err::read(self.record_path()) {
            Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Written whole or not at all, and on disk before we go on.
    pub(crate) fn write(&self, record: &Record) -> io::Result<()> {
        let (path, new) = (self.record_path(), self.under.join(format!("{PREFIX}{}.json.new", self.number)));
        let mut file = fs_err::File::create(&new)?;
        serde_json::to_writer(&mut file, record)?;
        file.sync_all()?;
        fs_err::rename(new, path)
    }

    pub(crate) fn forget(&self) -> io::Result<()> {
        match fs_err::remove_file(self.record_path()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Whether nothing is there, not even a directory of someone else's.
    pub(crate) fn is_untaken(&self) -> bool {
        !self.record_path().exists() && self.path().symlink_metadata().is_err()
    }

    /// All slots that have a record, in the order of their numbers.
    pub(crate) fn all(under: &Utf8Path) -> io::Result<Vec<Self>> {
        let mut numbers: Vec<u32> = under
            .read_dir_utf8()?
            .flatten()
            .filter_map(|entry| entry.file_name().strip_prefix(PREFIX)?.strip_suffix(".json")?.parse().ok())
            .collect();
        numbers.sort_unstable();
        Ok(numbers.into_iter().map(|number| Self::new(under, number)).collect())
    }
}

/// Whether a name is one that git gives to a slot's administrative entry.
pub(crate) fn is_slot_name(name: &str) -> bool {
    name.strip_prefix(PREFIX)
        .is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

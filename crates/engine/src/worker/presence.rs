//! Which workers of this machine are alive: each holds a lock on a file of its own, and the kernel lets go of it with
//! the process, however that ends. No process number is ever compared.

use std::io::Write;

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_core::WorkerId;
use rustix::fs::{FlockOperation, flock};

/// Held while a worker lives.
#[derive(Debug)]
pub(crate) struct Presence {
    path: Utf8PathBuf,
    file: fs_err::File,
}

/// Whoever forks at this moment has a copy of the lock until it executes its program: it is given up, not only closed.
impl Drop for Presence {
    fn drop(&mut self) {
        let _ = flock(self.file.file(), FlockOperation::Unlock);
    }
}

/// What a worker does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorkerKind {
    /// `run`: a session's tasks in the user's checkout, with agents that end with it.
    Run,
    /// `work`: tasks in worktrees, with agents that outlive it.
    Work,
}

/// What the trace of a `run` says.
const RUN: &str = "run";

/// What is known of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Alive {
    Yes,
    /// It was here, and is gone.
    No,
    /// It is not of this machine, or its traces were removed.
    Unknown,
}

fn path_of(state_dir: &Utf8Path, worker: &WorkerId) -> Utf8PathBuf {
    state_dir.join("workers").join(worker.as_str())
}

impl Presence {
    pub(super) fn announce(
        state_dir: &Utf8Path,
        worker: &WorkerId,
        kind: WorkerKind,
    ) -> std::io::Result<Self> {
        let path = path_of(state_dir, worker);
        fs_err::create_dir_all(state_dir.join("workers"))?;
        let mut file = fs_err::File::create(&path)?;
        flock(file.file(), FlockOperation::NonBlockingLockExclusive)?;
        if kind == WorkerKind::Run {
            file.write_all(RUN.as_bytes())?;
        }
        Ok(Self { path, file })
    }

    /// Leaves no trace. Who ends in another way leaves one, by which the next one knows whose work to put in order.
    pub(super) fn leave(self) {
        let _ = fs_err::remove_file(&self.path);
    }

    pub(crate) fn of(state_dir: &Utf8Path, worker: &WorkerId) -> Alive {
        let Ok(file) = fs_err::File::open(path_of(state_dir, worker)) else {
            return Alive::Unknown;
        };
        match flock(file.file(), FlockOperation::NonBlockingLockShared) {
            Ok(()) => Alive::No,
            Err(_) => Alive::Yes,
        }
    }

    /// What a worker of this machine does or did.
    pub(crate) fn kind_of(state_dir: &Utf8Path, worker: &WorkerId) -> WorkerKind {
        match fs_err::read_to_string(path_of(state_dir, worker)) {
            Ok(text) if text == RUN => WorkerKind::Run,
            Ok(_) | Err(_) => WorkerKind::Work,
        }
    }

    /// Whether a worker of this machine takes tasks of any flow.
    pub(crate) fn is_anyone_here(state_dir: &Utf8Path) -> bool {
        Self::traces(state_dir).iter().any(|worker| {
            Self::of(state_dir, worker) == Alive::Yes && Self::kind_of(state_dir, worker) == WorkerKind::Work
        })
    }

    /// Removes the traces of workers that are gone and have nothing left to be put in order.
    pub(super) fn forget(state_dir: &Utf8Path, needed: &[&WorkerId]) {
        for worker in Self::forgettable(state_dir, needed) {
            let _ = fs_err::remove_file(path_of(state_dir, &worker));
        }
    }

    /// Workers that are gone, whose traces nobody needs.
    pub(crate) fn forgettable(state_dir: &Utf8Path, needed: &[&WorkerId]) -> Vec<WorkerId> {
        let gone = |worker: &WorkerId| !needed.contains(&worker) && Self::of(state_dir, worker) == Alive::No;
        Self::traces(state_dir).into_iter().filter(gone).collect()
    }

    /// The workers that leave their traces here: what each does, and whether it is alive.
    pub(crate) fn all(state_dir: &Utf8Path) -> Vec<(WorkerId, WorkerKind, Alive)> {
        let known = |worker: WorkerId| {
            let (kind, alive) = (Self::kind_of(state_dir, &worker), Self::of(state_dir, &worker));
            (worker, kind, alive)
        };
        Self::traces(state_dir).into_iter().map(known).collect()
    }

    fn traces(state_dir: &Utf8Path) -> Vec<WorkerId> {
        let Ok(entries) = state_dir.join("workers").read_dir_utf8() else { return Vec::new() };
        entries.flatten().filter_map(|entry| WorkerId::new(entry.file_name()).ok()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_is_alive_until_it_is_gone_and_strangers_are_unknown() {
        let dir = tempfile::tempdir().unwrap();
        let state = Utf8Path::from_path(dir.path()).unwrap();
        let worker = WorkerId::new("w1").unwrap();
        let presence = Presence::announce(state, &worker, WorkerKind::Run).unwrap();
        assert_eq!(Presence::kind_of(state, &worker), WorkerKind::Run);
        assert_eq!(Presence::of(state, &worker), Alive::Yes);
        assert_eq!(Presence::of(state, &WorkerId::new("w2").unwrap()), Alive::Unknown);
        // As after a kill, or an error: the file is there, and nobody holds it, also not a child that has just been forked.
        let copy = presence.file.file().try_clone().unwrap();
        drop(presence);
        assert_eq!(Presence::of(state, &worker), Alive::No);
        drop(copy);
        Presence::forget(state, &[&worker]);
        assert_eq!(Presence::of(state, &worker), Alive::No, "it is still needed");
        Presence::forget(state, &[]);
        assert_eq!(Presence::of(state, &worker), Alive::Unknown);
        Presence::announce(state, &worker, WorkerKind::Work).unwrap().leave();
        assert_eq!(Presence::of(state, &worker), Alive::Unknown);
    }
}

//! What every repository on this machine needs.

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_git::GitError;
use rustix::fs::{Access, access};

use super::{Finding, Subject};
use crate::caller::Caller;
use crate::places::data_directory;
use crate::project::ProjectError;

/// What was found of the machine.
#[derive(Debug)]
#[expect(missing_docs, reason = "the fields are named after what they hold")]
pub enum MachineFact {
    /// The version of git.
    GitVersion(String),
    /// It is older than the oldest that can be used.
    GitTooOld { version: String, oldest: (u32, u32) },
    /// git does not answer.
    NoGit(GitError),
    /// Agents and all that they start can be ended.
    Supervised,
    /// There is no `/proc`, through which processes are found.
    NoProc,
    /// There is no place for our data.
    NoData(ProjectError),
    /// Our data directory cannot be written.
    DataNotWritable { path: Utf8PathBuf, error: std::io::Error },
    /// Free bytes of the disk.
    Free(u64),
}

/// The first that merges without a checkout (`merge-tree --write-tree`); nothing that we use is younger.
const OLDEST_GIT: (u32, u32) = (2, 38);

/// Below this an agent's build may fail half-way.
const LITTLE_SPACE: u64 = 1 << 30;

pub(super) async fn git() -> Finding {
    match rehearsal_git::version().await {
        Ok(version) if is_older(&version, OLDEST_GIT) => {
            Finding::bad(Subject::Git, MachineFact::GitTooOld { version, oldest: OLDEST_GIT })
        }
        Ok(version) => Finding::ok(Subject::Git, MachineFact::GitVersion(version)),
        Err(error) => Finding::bad(Subject::Git, MachineFact::NoGit(error)),
    }
}

/// What cannot be read is given a chance.
fn is_older(version: &str, than: (u32, u32)) -> bool {
    let mut numbers = version.split('.').map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) < than,
        _ => false,
    }
}

/// Grandchildren of agents are found through /proc and a subreaper.
pub(super) fn supervision() -> Finding {
    let works = rehearsal_process::become_subreaper().is_ok() && Utf8Path::new("/proc/self/stat").exists();
    if works {
        Finding::ok(Subject::Supervision, MachineFact::Supervised)
    } else {
        Finding::bad(Subject::Supervision, MachineFact::NoProc)
    }
}

/// Whether our data directory can be written, or created. Nothing is said of one that can.
pub(super) fn data(caller: &Caller) -> Option<Finding> {
    let directory = match data_directory(caller) {
        Ok(directory) => directory,
        Err(error) => return Some(Finding::bad(Subject::Data, MachineFact::NoData(error))),
    };
    let there = directory.ancestors().find(|path| path.exists())?;
    let error = not_writable(there)?;
    let fact = MachineFact::DataNotWritable { path: there.to_owned(), error };
    Some(Finding::bad(Subject::Data, fact))
}

/// Why a place cannot be written; none if it can.
pub(super) fn not_writable(path: &Utf8Path) -> Option<std::io::Error> {
    access(path.as_std_path(), Access::WRITE_OK).err().map(Into::into)
}

pub(super) fn disk(root: &Utf8Path) -> Option<Finding> {
    let stat = rustix::fs::statvfs(root.as_std_path()).ok()?;
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    let finding = if free < LITTLE_SPACE { Finding::note } else { Finding::ok };
    Some(finding(Subject::Disk, MachineFact::Free(free)))
}

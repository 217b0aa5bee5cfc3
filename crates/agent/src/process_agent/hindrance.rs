//! What can keep a run from being carried out, as an outcome and as a notice.

use std::io;

use camino::Utf8Path;
use rehearsal_core::{Notice, Outcome};

use rehearsal_process::SpawnError;

/// An outcome that is known without asking the agent, and what a person should know about it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Hindrance {
    pub(super) outcome: Outcome,
    pub(super) notice: Box<Notice>,
}

impl Hindrance {
    /// A file of the run that cannot be written.
    pub(super) fn of_file(path: &Utf8Path, error: &io::Error) -> Self {
        let path = path.to_string();
        if is_disk_full(error) {
            return Self {
                outcome: Outcome::DiskFull { path: path.clone() },
                notice: Box::new(Notice::DiskFull { path }),
            };
        }
        let reason = format!("cannot write `{path}`: {error}");
        let notice = Notice::NotWritable { path, error: error.to_string() };
        let outcome = match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                Outcome::PermissionDenied { reason }
            }
            _ => Outcome::Failed { reason },
        };
        Self { outcome, notice: Box::new(notice) }
    }

    /// The place to work in is gone.
    pub(super) fn working_dir_deleted(path: &Utf8Path) -> Self {
        let reason = format!("the working directory `{path}` was deleted while the agent ran");
        Self { outcome: Outcome::Failed { reason }, notice: Box::new(Notice::WorkingDirDeleted) }
    }
}

/// Also a quota counts: the user has no room.
pub(super) fn is_disk_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

impl From<SpawnError> for Hindrance {
    fn from(error: SpawnError) -> Self {
        let reason = error.to_string();
        let (outcome, notice) = match error {
            SpawnError::ProgramMissing { program } => {
                (Outcome::AgentMissing { program: program.clone() }, Notice::ProgramMissing { program })
            }
            SpawnError::InterpreterMissing { program } => {
                (Outcome::AgentMissing { program: program.clone() }, Notice::InterpreterMissing { program })
            }
            SpawnError::NotExecutable { program } => {
                (Outcome::PermissionDenied { reason }, Notice::NotExecutable { program })
            }
            SpawnError::WorkingDirMissing { path } => {
                (Outcome::Failed { reason }, Notice::WorkingDirMissing { path: path.to_string() })
            }
            SpawnError::TooLong { .. } => (Outcome::Failed { reason }, Notice::CommandTooLong),
            SpawnError::NoResources { .. } => (Outcome::SandboxUnavailable { reason }, Notice::NoResources),
            SpawnError::Supervisor { .. } => {
                (Outcome::SandboxUnavailable { reason }, Notice::SupervisorFailed)
            }
            SpawnError::Sandbox { .. } => (Outcome::SandboxUnavailable { reason }, Notice::SandboxFailed),
            SpawnError::Other { .. } => (Outcome::Failed { reason }, Notice::StartFailed),
        };
        Self { outcome, notice: Box::new(notice) }
    }
}

#[cfg(test)]
mod tests {
    use rehearsal_core::Blame;

    use super::*;

    #[test]
    fn a_failure_of_the_machine_is_not_the_tasks() {
        let full = io::Error::from_raw_os_error(libc::ENOSPC);
        let hindrance = Hindrance::of_file(Utf8Path::new("/runs/1/stdout.log"), &full);
        assert_eq!(hindrance.outcome.to_string(), "disk_full: no space left at `/runs/1/stdout.log`");
        assert_eq!(*hindrance.notice, Notice::DiskFull { path: "/runs/1/stdout.log".into() });
        for error in [
            SpawnError::ProgramMissing { program: "codex".into() },
            SpawnError::NotExecutable { program: "./x".into() },
            SpawnError::NoResources { reason: "no memory".into() },
            SpawnError::Supervisor { program: "/x".into(), reason: "gone".into() },
        ] {
            assert_eq!(Hindrance::from(error).outcome.blame(), Blame::System);
        }
    }

    #[test]
    fn a_missing_agent_is_named() {
        let hindrance = Hindrance::from(SpawnError::ProgramMissing { program: "codex".into() });
        assert_eq!(hindrance.outcome.to_string(), "agent_missing: `codex` was not found");
        assert_eq!(*hindrance.notice, Notice::ProgramMissing { program: "codex".into() });
    }
}

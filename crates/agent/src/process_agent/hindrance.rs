//! What can keep a run from being carried out, as an outcome and as advice.

use std::io;

use camino::Utf8Path;
use rehearsal_core::Outcome;

use rehearsal_process::SpawnError;

/// An outcome that is known without asking the agent, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hindrance {
    pub(super) outcome: Outcome,
    pub(super) advice: String,
}

impl Hindrance {
    /// A file of the run that cannot be written.
    pub(super) fn of_file(path: &Utf8Path, error: &io::Error) -> Self {
        let reason = format!("cannot write `{path}`: {error}");
        if is_disk_full(error) {
            let advice = format!("there is no space left for `{path}`; free some and start again");
            return Self { outcome: Outcome::DiskFull { path: path.to_string() }, advice };
        }
        let advice = format!("{reason}; check that the directory exists and is yours");
        let outcome = match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                Outcome::PermissionDenied { reason }
            }
            _ => Outcome::Failed { reason },
        };
        Self { outcome, advice }
    }

    /// The place to work in is gone.
    pub(super) fn working_dir_deleted(path: &Utf8Path) -> Self {
        let reason = format!("the working directory `{path}` was deleted while the agent ran");
        let advice =
            "what the agent did there is lost; the next run needs a new working directory".to_owned();
        Self { outcome: Outcome::Failed { reason }, advice }
    }
}

/// Also a quota counts: the user has no room.
pub(super) fn is_disk_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

impl From<SpawnError> for Hindrance {
    fn from(error: SpawnError) -> Self {
        let reason = error.to_string();
        let (outcome, advice) = match error {
            SpawnError::ProgramMissing { program } => {
                let advice =
                    format!("install `{program}`, put it on the PATH, or give its path in the configuration");
                (Outcome::AgentMissing { program }, advice)
            }
            SpawnError::InterpreterMissing { program } => {
                let advice = format!("{reason}: look at its first line and install what it names");
                (Outcome::AgentMissing { program }, advice)
            }
            SpawnError::NotExecutable { program } => {
                let advice = format!("make it executable with `chmod +x {program}`, or name another program");
                (Outcome::PermissionDenied { reason }, advice)
            }
            SpawnError::WorkingDirMissing { path } => {
                let advice = format!("make `{path}` again, or let the next run have a new working directory");
                (Outcome::Failed { reason }, advice)
            }
            SpawnError::TooLong { .. } => {
                let advice = "shorten the agent's arguments, or grant it fewer variables".to_owned();
                (Outcome::Failed { reason }, advice)
            }
            SpawnError::NoResources { .. } => {
                let advice =
                    "run fewer agents at once, or raise the limits (`ulimit -u`, `ulimit -n`)".to_owned();
                (Outcome::SandboxUnavailable { reason }, advice)
            }
            SpawnError::Supervisor { .. } => {
                let advice = "no agent runs without its supervisor; check that `/proc` is mounted".to_owned();
                (Outcome::SandboxUnavailable { reason }, advice)
            }
            SpawnError::Sandbox { .. } => {
                let advice =
                    "`rehearsal doctor` shows what the sandbox lacks; `sandbox: best_effort` runs without it"
                        .to_owned();
                (Outcome::SandboxUnavailable { reason }, advice)
            }
            SpawnError::Other { .. } => {
                let advice = "try the agent's command by hand in the same directory".to_owned();
                (Outcome::Failed { reason }, advice)
            }
        };
        Self { outcome, advice }
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
        assert_eq!(
            hindrance.advice,
            "there is no space left for `/runs/1/stdout.log`; free some and start again"
        );
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
    fn a_missing_agent_says_how_to_get_it() {
        let hindrance = Hindrance::from(SpawnError::ProgramMissing { program: "codex".into() });
        assert_eq!(hindrance.outcome.to_string(), "agent_missing: `codex` was not found");
        assert_eq!(
            hindrance.advice,
            "install `codex`, put it on the PATH, or give its path in the configuration"
        );
    }
}

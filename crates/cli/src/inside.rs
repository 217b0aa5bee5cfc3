//! Called by an agent, from inside a run: then a command reports, and changes nothing by itself.

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_agent::result_file::{ReportLine, append_report};

use crate::error::CliError;

/// The run that this call comes from.
pub(crate) struct InsideRun {
    run: String,
    directory: Utf8PathBuf,
}

impl InsideRun {
    /// Some, if an agent calls.
    pub(crate) fn detect() -> Option<Self> {
        let run = std::env::var("REHEARSAL_RUN_ID").ok().filter(|run| !run.is_empty())?;
        let directory = std::env::var("REHEARSAL_TASK_DIR").ok().filter(|dir| !dir.is_empty())?;
        Some(Self { run, directory: directory.into() })
    }

    /// The run's id.
    pub(crate) fn run(&self) -> &str {
        &self.run
    }

    /// The run's directory.
    pub(crate) fn directory(&self) -> &Utf8Path {
        &self.directory
    }

    /// Where the state is that the run belongs to: its directory is `state/runs/RUN` there.
    pub(crate) fn state_dir(&self) -> Option<Utf8PathBuf> {
        let runs = self.directory.parent()?;
        let state = runs.parent()?;
        (runs.file_name() == Some("runs") && state.file_name() == Some("state")).then(|| state.to_owned())
    }

    /// Writes to the run's report. The engine reads, checks and applies it when the run is over.
    pub(crate) fn report(&self, line: &ReportLine) -> Result<(), CliError> {
        append_report(&self.directory, line).map_err(|error| {
            CliError::usage(format!("the report of run `{}` cannot be written: {error}", self.run))
        })
    }

    /// What to say when an agent asks for what it cannot see: the address of a server may hold a password, and is not
    /// handed to agents.
    pub(crate) fn has_no_store(&self) -> CliError {
        let run = &self.run;
        CliError::usage(format!("the tasks of run `{run}` are on a server whose address agents are not given"))
            .hint("what you report is taken all the same: `rehearsal task done ID`, `rehearsal task block ID --reason …`, `rehearsal session progress TEXT`")
    }

    /// What to say when something else than a report is asked for.
    pub(crate) fn refuse_changes() -> Result<(), CliError> {
        match Self::detect() {
            None => Ok(()),
            Some(inside) => Err(CliError::usage(format!("an agent cannot do this from inside run `{}`", inside.run))
                .hint("`rehearsal task done ID`, `rehearsal task block ID --reason …` and `rehearsal session progress TEXT` report")),
        }
    }
}

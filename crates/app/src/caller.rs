//! Who asks, and what they may ask for.

use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_agent::environment::Variables;
use rehearsal_agent::result_file::{ReportLine, append_report};
use rehearsal_core::{Clock, Person, Timestamp};

/// Who asks: from which directory, in which environment, at what time.
#[derive(Clone)]
pub struct Caller {
    /// The repository is the one around it, and paths are relative to it.
    pub directory: Utf8PathBuf,
    /// The environment, as far as it is text.
    pub environment: Variables,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// The person who asks, for the log.
    pub person: Person,
    /// Whether an agent of ours started the process, whatever its environment says.
    pub is_below_agent: bool,
}

impl Caller {
    /// The current time.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// A variable of the environment that is set and not empty.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.environment.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// The run that an agent calls from; none if a person calls.
    pub fn inside_run(&self) -> Option<InsideRun> {
        let run = self.variable("REHEARSAL_RUN_ID")?.to_owned();
        let directory = self.variable("REHEARSAL_TASK_DIR")?.into();
        Some(InsideRun { run, directory })
    }

    /// An agent only reports. Everything that changes something else is for people.
    pub fn may_change(&self) -> Result<(), InsideRunError> {
        self.inside_run().map_or(Ok(()), |inside| Err(InsideRunError { run: Some(inside.run) }))
    }

    /// Only a person decides: approves, rejects, pauses, cancels, edits. No process that an agent started may, whatever its environment
    /// says.
    pub fn may_decide(&self) -> Result<(), InsideRunError> {
        self.may_change()?;
        if self.is_below_agent { Err(InsideRunError { run: None }) } else { Ok(()) }
    }
}

/// An agent asked for something that only a person may do.
#[derive(Debug, thiserror::Error)]
#[error("an agent cannot do this{}", .run.as_ref().map_or_else(|| ": it started this process".to_owned(), |run| format!(" from inside run `{run}`")))]
pub struct InsideRunError {
    /// The run that it is in, if its environment still says so.
    pub run: Option<String>,
}

/// An agent's report could not be written.
#[derive(Debug, thiserror::Error)]
#[error("the report of run `{run}` cannot be written: {source}")]
pub struct ReportError {
    /// The run that it is in.
    pub run: String,
    /// Why.
    pub source: std::io::Error,
}

/// The run that a call comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InsideRun {
    run: String,
    directory: Utf8PathBuf,
}

impl InsideRun {
    /// The run's id.
    pub fn run(&self) -> &str {
        &self.run
    }

    /// The run's directory.
    pub fn directory(&self) -> &Utf8Path {
        &self.directory
    }

    /// Where the state is that the run belongs to: its directory is `runs/RUN` there.
    pub fn state_dir(&self) -> Option<Utf8PathBuf> {
        let runs = self.directory.parent()?;
        runs.parent().filter(|_| runs.file_name() == Some("runs")).map(Utf8Path::to_owned)
    }

    /// Writes to the run's report. The engine reads, checks and applies it when the run is over.
    pub fn report(&self, line: &ReportLine) -> Result<(), ReportError> {
        append_report(&self.directory, line).map_err(|source| ReportError { run: self.run.clone(), source })
    }
}

#[cfg(test)]
mod tests {
    use rehearsal_core::{Via, VirtualClock};

    use super::*;

    fn caller(variables: &[(&str, &str)]) -> Caller {
        Caller {
            directory: "/work".into(),
            environment: variables.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
            clock: Arc::new(VirtualClock::starting_at(Timestamp(0))),
            person: Person { name: "ada".into(), host: "engine".into(), via: Via::NoTerminal },
            is_below_agent: false,
        }
    }

    #[test]
    fn a_person_may_change_things_and_an_agent_may_not() {
        assert!(caller(&[]).may_change().is_ok());
        assert!(caller(&[("REHEARSAL_RUN_ID", ""), ("REHEARSAL_TASK_DIR", "/x")]).may_change().is_ok());
        let agent = caller(&[("REHEARSAL_RUN_ID", "7qm"), ("REHEARSAL_TASK_DIR", "/r/state/runs/7qm")]);
        assert_eq!(
            agent.may_change().unwrap_err().to_string(),
            "an agent cannot do this from inside run `7qm`"
        );
        let without_its_variables = Caller { is_below_agent: true, ..caller(&[]) };
        assert!(without_its_variables.may_change().is_ok());
        assert_eq!(
            without_its_variables.may_decide().unwrap_err().to_string(),
            "an agent cannot do this: it started this process"
        );
    }

    #[test]
    fn a_run_belongs_to_the_state_that_its_directory_is_in() {
        let state = |directory| {
            let caller = caller(&[("REHEARSAL_RUN_ID", "7qm"), ("REHEARSAL_TASK_DIR", directory)]);
            caller.inside_run().and_then(|inside| inside.state_dir())
        };
        assert_eq!(state("/r/.rehearsal/state/runs/7qm"), Some("/r/.rehearsal/state".into()));
        assert_eq!(state("/tmp/7qm"), None);
    }
}

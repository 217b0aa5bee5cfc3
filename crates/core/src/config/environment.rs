//! The layer that comes from `REHEARSAL_*` variables.

use super::Overrides;
use crate::SourceError;

/// The variables that are read, and what each sets.
pub const VARIABLES: [(&str, &str); 12] = [
    ("REHEARSAL_AGENT", "the agent that `run` uses"),
    ("REHEARSAL_MODEL", "its model"),
    ("REHEARSAL_TIMEOUT", "the longest a run may take"),
    ("REHEARSAL_IDLE_TIMEOUT", "the longest it may be silent"),
    ("REHEARSAL_ITERATIONS", "at most this many iterations"),
    ("REHEARSAL_MAX_FAILURES", "stop after this many failed runs in a row"),
    ("REHEARSAL_MAX_COST", "stop when a loop has cost this many dollars"),
    ("REHEARSAL_MAX_WAIT", "the longest wait for a rate limit"),
    ("REHEARSAL_BASE_BRANCH", "the branch that work starts from"),
    ("REHEARSAL_STORE", "where tasks live, like `postgres://…`"),
    ("REHEARSAL_WORKERS", "so many tasks at once in one process"),
    ("REHEARSAL_TEST_COMMAND", "the command that runs the tests"),
];

impl Overrides {
    /// Reads the variables through `lookup`. A value that cannot be read is an error, not a silent default.
    pub fn from_environment(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, SourceError> {
        Ok(Self {
            agent: read(&lookup, "REHEARSAL_AGENT")?,
            model: lookup("REHEARSAL_MODEL"),
            timeout: read(&lookup, "REHEARSAL_TIMEOUT")?,
            idle_timeout: read(&lookup, "REHEARSAL_IDLE_TIMEOUT")?,
            iterations: read(&lookup, "REHEARSAL_ITERATIONS")?,
            max_failures: read(&lookup, "REHEARSAL_MAX_FAILURES")?,
            max_cost: read(&lookup, "REHEARSAL_MAX_COST")?,
            max_wait: read(&lookup, "REHEARSAL_MAX_WAIT")?,
            base_branch: lookup("REHEARSAL_BASE_BRANCH"),
            store: lookup("REHEARSAL_STORE"),
            workers: read(&lookup, "REHEARSAL_WORKERS")?,
            test_command: lookup("REHEARSAL_TEST_COMMAND"),
            ..Self::default()
        })
    }
}

fn read<T: std::str::FromStr>(
    lookup: &impl Fn(&str) -> Option<String>,
    name: &str,
) -> Result<Option<T>, SourceError>
where
    T::Err: std::fmt::Display,
{
    let Some(text) = lookup(name) else {
        return Ok(None);
    };
    let wrong =
        |error: T::Err| SourceError::at(None, format!("the variable `{name}` cannot be used: {error}"));
    text.parse().map(Some).map_err(wrong)
}

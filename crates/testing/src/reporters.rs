//! Reporters of our own, for runners that say too little or say it too late: one schema of JSON lines for all of them
//! (read by the format `events`), written as things happen, to a file of its own.
//!
//! **Invariant:** nothing is installed in a project, and a reporter that fails is silent: it never changes a result.

use camino::Utf8Path;

use crate::Framework;

/// Names the file (or FIFO) that a reporter appends its events to.
pub(crate) const EVENTS_VARIABLE: &str = "REHEARSAL_EVENTS";

/// How to make a runner use our reporter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Injection {
    /// Files to write into the scratch directory first: name and content.
    pub files: Vec<(&'static str, &'static str)>,
    /// Changes of the runner's environment.
    pub env: Vec<(&'static str, EnvChange)>,
    /// Arguments for the runner itself, which keep what it prints for people. They go before `--`, if there is one.
    pub args: Vec<String>,
}

/// A change of an environment variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EnvChange {
    /// It gets this value.
    Set(String),
    /// This comes first in its list of paths, whatever else is in it.
    PrependPath(String),
}

const PYTEST: (&str, &str) = ("rehearsal_pytest_events.py", include_str!("reporters/pytest_plugin.py"));
const JEST: (&str, &str) = ("jest_reporter.cjs", include_str!("reporters/jest_reporter.cjs"));
const VITEST: (&str, &str) = ("vitest_reporter.mjs", include_str!("reporters/vitest_reporter.mjs"));
const RSPEC: (&str, &str) = ("rspec_formatter.rb", include_str!("reporters/rspec_formatter.rb"));

impl Injection {
    /// For this runner, if we have a reporter for it. `version` is the runner's, as far as it is known (`"1.6.0"`):
    /// without it, only what every version understands is used. `scratch` is an absolute directory that the runner
    /// can read, `events` what the reporter writes to.
    pub fn of(
        framework: Framework,
        version: Option<&str>,
        scratch: &Utf8Path,
        events: &Utf8Path,
    ) -> Option<Self> {
        let (file, args) = match framework {
            Framework::Pytest => (PYTEST, vec!["-p".to_owned(), "rehearsal_pytest_events".to_owned()]),
            Framework::Jest => (JEST, jest_args(scratch)),
            Framework::Vitest => (VITEST, vitest_args(version, scratch)),
            Framework::Rspec => (RSPEC, vec!["--require".to_owned(), scratch.join(RSPEC.0).into_string()]),
            _ => return None,
        };
        let mut env = vec![(EVENTS_VARIABLE, EnvChange::Set(events.as_str().to_owned()))];
        if framework == Framework::Pytest {
            env.push(("PYTHONPATH", EnvChange::PrependPath(scratch.as_str().to_owned())));
        }
        Some(Self { files: vec![file], env, args })
    }
}

fn jest_args(scratch: &Utf8Path) -> Vec<String> {
    let ours = scratch.join(JEST.0);
    vec![
        "--reporters=default".to_owned(),
        format!("--reporters={ours}"),
        "--testLocationInResults".to_owned(),
    ]
}

fn vitest_args(version: Option<&str>, scratch: &Utf8Path) -> Vec<String> {
    let ours = scratch.join(VITEST.0);
    let mut args = vec!["--reporter=default".to_owned(), format!("--reporter={ours}")];
    // Vitest refuses options that it does not know; this one came with 3.0.
    if version.and_then(major).is_some_and(|major| major >= 3) {
        args.push("--includeTaskLocation".to_owned());
    }
    args
}

fn major(version: &str) -> Option<u32> {
    version.trim_start_matches('v').split('.').next()?.parse().ok()
}

//! Real processes, real git, real files.
#![expect(clippy::unwrap_used, reason = "a helper of tests fails as its test does: by a panic")]
#![expect(clippy::disallowed_methods, reason = "tests start the programs that they test")]

mod adoption;
mod agent_runs;
mod git_facts;
mod hindrances;
mod leases;
mod line_driver;
mod parent_killed;
mod sandboxed;
mod secrets;
mod supervision;
mod support;

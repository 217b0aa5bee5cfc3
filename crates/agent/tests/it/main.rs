//! Real processes, real git, real files.

mod agent_runs;
mod git_facts;
mod hindrances;
mod line_driver;
mod parent_killed;
mod secrets;
mod supervision;
mod support;

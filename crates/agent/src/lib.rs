//! Runs one agent once.
//!
//! A [`RunRequest`] goes in; a stream of [`Activity`](rehearsal_core::Activity) and at last a [`RunReport`] come
//! out. Behind the one trait [`Agent`] are the real agents, each driven by its [`Driver`] in a process of its
//! own, and their stand-ins.
//!
//! **Invariants:** an agent is a pure function: what it changed is read from git and from its run directory,
//! never from its words. No process outlives its run; one under a lease outlives its worker only to be adopted.
//! No secret leaves through a log, an error or an event.

mod agent;
pub mod clis;
mod confinement;
pub mod driver;
pub mod environment;
mod excerpt;
pub mod git;
pub mod mock;
pub mod policy;
pub mod probe;
mod process_agent;
pub mod redact;
mod request;
pub mod result_file;
mod retry;
mod scripted;

pub use agent::{Agent, Watch};
pub use clis::crew::{CrewLine, CrewOrder};
pub use clis::{AgentCli, cli_of};
pub use confinement::{
    Bounds, ConfinedBy, Confinement, Containment, NoSandbox, OBEYED_IN_PROJECT, OwnPlaces,
};
pub use driver::{CommandLine, Driver, WireParser};
pub use process_agent::{Graces, Orphan, ProcessAgent, release_git_locks};
pub use rehearsal_core::RunReport;
pub use rehearsal_process::{BootInstant, Lease, LeaseKeeper};
pub use request::{CallLimits, Permission, Rendezvous, RunRequest};
pub use retry::Retrying;
pub use scripted::{ScriptedAgent, ScriptedRun, WhenEmpty};

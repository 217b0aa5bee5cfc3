//! Runs one agent once.
//!
//! A [`RunRequest`] goes in; a stream of [`Activity`](rehearsal_core::Activity) and at last a [`RunReport`] come
//! out. Behind the one trait [`Agent`] are the real agents, each driven by its [`Driver`] in a process of its
//! own, and their stand-ins.
//!
//! **Invariants:** an agent is a pure function: what it changed is read from git and from its run directory,
//! never from its words. No process outlives its run. No secret leaves through a log, an error or an event.

mod agent;
pub mod driver;
mod excerpt;
mod mock;
mod request;
mod retry;
mod scripted;

pub use agent::{Agent, RunReport, Watch};
pub use driver::{CommandLine, Driver, WireParser};
pub use mock::{MockArgs, MockArgsError, MockEnv, WireFormat, mock_agent_main};
pub use request::{Permission, RunRequest};
pub use retry::Retrying;
pub use scripted::{ScriptedAgent, ScriptedRun, WhenEmpty};

//! The stand-in agent as a process: what it does, says and ends with.
#![expect(clippy::disallowed_methods, reason = "tests start the programs that they test")]
#![expect(clippy::unwrap_used, reason = "a test stops where something goes wrong")]

mod by_environment;
mod fixtures;
mod misbehaviour;
mod script;
mod stage;
mod wire;

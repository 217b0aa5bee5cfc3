//! The stand-in agent as a process: what it does, says and ends with.

mod by_environment;
mod fixtures;
mod misbehaviour;
mod script;
mod stage;
mod wire;

//! Hostile programs in a real sandbox, and good ones.
//!
//! The hostile program is this test binary, executed again with the name of an [act](acts).
#![expect(clippy::unwrap_used, reason = "a helper of tests fails as its test does: by a panic")]
#![expect(clippy::print_stdout, reason = "what is left out is said aloud")]
#![expect(clippy::disallowed_methods, reason = "tests start the programs that they test")]

mod acts;
mod ends;
mod exhaustion;
mod files;
mod kernel;
mod network;
mod processes;
mod rungs;
mod support;
mod users;
mod working;

//! Stories of models: clients of the vendors against a server of the test's own, and the stand-ins.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod breaker;
mod errors;
mod faults;
mod recorded;
mod scripted;
mod secrets;
mod vendor;
mod vendors;

//! The worker in process: real git, a local forge and the real store, with agents that do as they were told.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![expect(clippy::disallowed_methods, reason = "tests start the programs that they test")]

mod crashes;
mod handover;
mod lifecycle;
mod machines;
mod merging;
mod outage;
mod people;
mod studio;
mod trouble;

//! The worker in process: real git, a local forge and the real store, with agents that do as they were told.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod crashes;
mod handover;
mod lifecycle;
mod machines;
mod merging;
mod outage;
mod people;
mod studio;
mod trouble;

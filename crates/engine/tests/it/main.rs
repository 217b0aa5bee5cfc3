//! The loop in process: scripted agents, a virtual clock, and the real store in a scratch directory.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod completion;
mod dependencies;
mod durations;
mod failures;
mod money;
mod people;
mod prompts;
mod random;
mod recovery;
mod reports;
mod stage;
mod stops;
mod timeline;
mod waits;

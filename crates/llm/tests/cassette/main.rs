//! Cassettes, from the recording of a session to its replay somewhere else.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod files;
mod recording;
mod replaying;
mod scene;
mod secrets;

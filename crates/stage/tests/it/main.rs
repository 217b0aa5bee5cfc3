//! The stage over HTTP, asked by a client that speaks nothing but bytes, and by our own.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod clients;
mod conversation;
mod faults;
mod hostile;
mod matching;
mod recording;
mod theatre;

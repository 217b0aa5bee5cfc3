//! Hostile programs in a real sandbox, and good ones.
#![expect(clippy::unwrap_used, reason = "a helper of tests fails as its test does: by a panic")]

mod hostile;
mod support;
mod working;

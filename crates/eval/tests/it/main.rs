//! Evals run with an agent whose success rate is known.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has nothing to say")]

mod coin;
mod killed;
mod measured;
mod runs;

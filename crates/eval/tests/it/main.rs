//! Evals run with an agent whose success rate is known.
#![expect(clippy::disallowed_methods, reason = "tests start the programs that they test")]
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has nothing to say")]

mod coin;
mod killed;
mod measured;
mod runs;
